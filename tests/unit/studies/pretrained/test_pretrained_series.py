"""Checkpoints of one training on disk, whose residual gain is known from theory.

Every token of the model has one unit-variance embedding u, attention adds nothing, and the MLP of
block k is linear and adds c_k LayerNorm(x). As x is a positive multiple of u in every block, the
stream after block k is (1 + c_0 + ... + c_k) u, and the logits are those of u.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from pretrained_hub import Job, measure
from pretrained_models import LAYERS, WIDTH, random_model, save
from processes import ROOT
from recall_recipes import by
from torch import nn

from normscope.errors import Explained
from normscope.io.tables import as_declared
from normscope.studies.pretrained.grid import Pretrained, check_steps
from normscope.studies.pretrained.tables import TABLES
from normscope.studies.pretrained.tabulate import tabulate
from normscope.studies.stage import TableInputs
from normscope.studies.study import Settings

BEFORE = LAYERS  # the embedding, and 1 of each block before the last
LAST = {0: -2.0, 1: 1.0, 1000: 8.0}  # what the last block adds, by step
DAMAGED = 20  # a step without a tokenizer


def save_checkpoint(directory: Path, last: float) -> float:
    """A GPT-NeoX model whose last block adds ``last`` and every other block 1.

    Returns:
        The standard deviation of its logits.
    """
    model = random_model("gpt_neox", hidden_act="linear", layer_norm_eps=1e-12)
    tokens = model.gpt_neox.embed_in.weight
    tokens[:] = tokens[0].clone()
    tokens -= tokens.mean(1, keepdim=True)
    tokens /= tokens.std(1, keepdim=True, unbiased=False)
    for block in model.gpt_neox.layers:
        for weight in block.parameters():
            weight.zero_()
        block.post_attention_layernorm.weight.fill_(1)
        nn.init.eye_(block.mlp.dense_h_to_4h.weight)
        nn.init.eye_(block.mlp.dense_4h_to_h.weight)
    model.gpt_neox.layers[-1].mlp.dense_4h_to_h.weight *= last
    head = model.get_output_embeddings().weight
    head *= 3 + last
    save(model, directory)
    return float(np.std((head @ model.gpt_neox.final_layer_norm(tokens[0])).numpy()))


def study(folder: Path, *steps: int) -> Pretrained:
    """A series, and its last checkpoint as a single model."""
    path = f"{folder}/at{{step}}"
    series = {"name": "series", "family": "F", "steps": steps}
    single = {"name": "final", "family": "F"}
    models = [
        entry | {"source": {"kind": "directory", "path": place}}
        for entry, place in ((series, path), (single, path.replace("{step}", "1000")))
    ]
    keys = {"models": models, "memory_gb": 1, "threads": 1, "resamples": 99}
    return Pretrained.model_validate(keys)


class Made(NamedTuple):
    folder: Path
    tables: Mapping[str, pd.DataFrame]
    logits: Mapping[int, float]  # their standard deviations by step


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    """The tables of the single model and of the series with a step that cannot be measured."""
    folder = tmp_path_factory.mktemp("checkpoints")
    logits = {
        step: save_checkpoint(folder / f"at{step}", last)
        for step, last in {**LAST, DAMAGED: 0.0}.items()
    }
    for path in (folder / f"at{DAMAGED}").glob("tokenizer*"):
        path.unlink()
    models = study(folder, 1000, DAMAGED, 0, 1)
    check_steps(models)
    probes = folder / "probes"
    probes.mkdir()
    for name, recipe in models.probes().items():
        job = Job(folder / name, json.loads(recipe.model_dump_json()), folder / "revisions")
        measure(job, folder / "home")
        job.out.rename(probes / name)
    files = {name: ROOT / "data" / name for name in Pretrained.FILES}
    recipe = models.tabulation(Settings(level=0.95, baseline=[]))
    tables = tabulate(recipe, TableInputs(models=probes, probes=probes, files=files))
    return Made(folder, as_declared(tables, TABLES), logits)


def test_a_row_is_one_step_with_the_gain_of_theory(made):
    series = made.tables["series"]
    assert list(series["step"]) == sorted([*LAST, DAMAGED])
    assert set(series["model"]) == {"series"}
    rows = by(series, "step")
    for step, last in LAST.items():
        row, gain = rows[step], (BEFORE + last) / BEFORE
        values = [row[k] for k in ("gain", "log_gain", "norm_before", "norm_after")]
        unit = math.sqrt(WIDTH)  # norm of an embedding
        expected = [gain, math.log(gain), BEFORE * unit, (BEFORE + last) * unit]
        assert values == pytest.approx(expected, rel=1e-5)
        assert row["sigma"] == pytest.approx(BEFORE + last, rel=1e-5)
        assert row["logit_sd"] == pytest.approx(made.logits[step], rel=1e-5)
        assert (row["n"], row["norm"], row["family"]) == (25, "LayerNorm", "F")
        assert row["source"] == f"directory {made.folder}/at{step}"
        assert pd.isna(row["missing"])
    assert "no tokenizer" in rows[DAMAGED]["missing"]
    assert pd.isna(
        [rows[DAMAGED][k] for k in ("gain", "log_gain", "n", "norm_after", "sigma", "logit_sd")]
    ).all()


def test_checkpoints_are_no_models_of_any_other_table(made):
    for name, table in made.tables.items():
        if name != "series" and "model" in table:
            assert not table["model"].str.startswith("series").any(), name
    assert list(made.tables["models"]["model"]) == ["final"]
    units = by(made.tables["by_norm"], "comparison", "unit")
    assert units["measured", "model"]["layernorm"] == 1
    (final,) = made.tables["by_model"].query("experiment == 'measured'").to_dict("records")
    assert final["log_gain"] == pytest.approx(math.log((BEFORE + LAST[1000]) / BEFORE), rel=1e-5)


def test_missing_directories_are_named_before_anything_is_measured(made):
    with pytest.raises(Explained) as error:
        check_steps(study(made.folder, 0, 7, 1000, 9))
    assert str(error.value).splitlines()[1:] == [
        f"  series: step {step}: directory {made.folder}/at{step} has no config.json"
        for step in (7, 9)
    ]
