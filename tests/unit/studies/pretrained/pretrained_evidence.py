"""Made-up measurements of pretrained models, as rule measure writes them, and what is made of them.

Log-norms grow by a step a block that depends on the model, the prompt and the position.
"""

import gc
import json
import math
import runpy
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from processes import ROOT, SCRIPTS, flags

from normscope.hub.prompts import read_prompts
from normscope.io.csvfile import write_csv
from normscope.io.files import write_json
from normscope.measure.residual import site_names
from normscope.studies.pretrained.grid import Pretrained, PretrainedTables
from normscope.studies.pretrained.measures import GAIN_COLUMNS, NORM_COLUMNS, POSITIONS
from normscope.studies.study import Settings

DATA = ROOT / "data"
PROMPTS = read_prompts(DATA / "prompts.yaml")
SHAPE = {"n_layers": 3, "n_embd": 8, "n_heads": 2, "n_kv_heads": 2, "head_dim": 4, "rho": 0.5}
DOCUMENT = "residual_gain.json"
MISSING = "no space left: remove something, or else wait"


def log_norms(name: str, prompt: str, bos: str, positions: str, blocks: int) -> np.ndarray:
    """At every site, the final norm's last."""
    seed = zlib.crc32(" ".join((name, prompt, bos, positions)).encode())
    return np.random.default_rng(seed).normal(0.2, 0.1, blocks + 2).cumsum()


def write_model(
    place: Path,
    name: str,
    norm: str = "LayerNorm",
    *,
    bos: tuple[str, ...] = ("off",),
    one_token: bool = False,
    **facts: Any,
) -> None:
    """A model's folder.

    Args:
        norm: none if the model has no final norm.
        one_token: whether the first prompt is a single token, so that nothing is later.
    """
    final, blocks = norm != "none", SHAPE["n_layers"]
    gains, norms = [], []
    for i, prompt in enumerate(PROMPTS):
        for policy in bos:
            for positions in POSITIONS:
                key = {"prompt": prompt.name, "bos": policy, "positions": positions}
                logs = log_norms(name, prompt.name, policy, positions, int(blocks))
                if one_token and i == 0 and positions == "later":
                    logs = np.full_like(logs, math.nan)
                steps = [math.nan, *np.diff(logs)]
                for depth, site in enumerate(site_names(int(blocks), final)):
                    at = {"depth": depth, "site": site}
                    values = {"norm": math.exp(logs[depth]), "log_gain": steps[depth]}
                    norms.append(key | at | values)
                row = {"tokens": 1 if one_token and i == 0 else 7}
                row |= {"last_gain": math.exp(steps[-2]), "total_amp": math.exp(logs[-2] - logs[1])}
                row |= {"gain_hidden_states": math.exp(steps[-3])}
                row |= {"total_amp_embedding": math.exp(logs[-2] - logs[0])}
                ratio = math.exp(logs[-1] - logs[-3])  # as hidden_states have it
                row |= {"gain_with_final_norm": ratio if final else math.nan}
                if positions == "last":
                    words = {"top_token": TOKENS[i % len(TOKENS)], "top_prob": 0.5}
                    row |= {"entropy": 1 + 0.1 * i, "entropy_as_published": 1 + 0.1 * i} | words
                gains.append(key | row)
    write_csv(place / name / "gains.csv", pd.DataFrame(gains, columns=GAIN_COLUMNS))
    write_csv(place / name / "norms.csv", pd.DataFrame(norms, columns=NORM_COLUMNS))
    known = {"class": "Made", "norm": norm, "grouped_queries": False, "rho_as_published": 0.5}
    known |= {"parameters": 134515008, "stored": "F32", "computed": "fp32", "streamed": False}
    known |= {"device": "cpu", "threads": 1, "source": "directory made", "commit": None}
    known |= {"tokenizer_adds_bos": False, "missing": None, "transformers": "5"}
    write_json(place / name / "model.json", SHAPE | known | facts)


# likeliest next tokens that a table may lose
TOKENS = ("NA", "null", "nan", "\n", ",", '"', " the", "", "\u2028", "1")


def write_missing(place: Path, name: str) -> None:
    """The folder of a model that could not be had."""
    write_csv(place / name / "gains.csv", pd.DataFrame(columns=GAIN_COLUMNS))
    write_csv(place / name / "norms.csv", pd.DataFrame(columns=NORM_COLUMNS))
    write_json(place / name / "model.json", {"missing": MISSING})


def section(*models: str | tuple[str, str]) -> Pretrained:
    """Models by their names, with the base that they were tuned from, as the workflow has them."""
    rows = []
    for model in models:
        name, base = (model, None) if isinstance(model, str) else model
        source = {"kind": "directory", "path": "made"}
        rows.append({"name": name, "family": f"F {name[0]}", "base": base, "source": source})
    values = {"models": rows, "memory_gb": 1, "threads": 1, "resamples": 99}
    return Pretrained.model_validate(values)


def grid(*models: str | tuple[str, str]) -> PretrainedTables:
    """What the job that makes the tables is told of these models."""
    return section(*models).tabulation(Settings(level=0.95, baseline=[]))


def run(name: str, arguments: list[str]) -> None:
    """A script of the project in this process."""
    script = SCRIPTS / f"{name}.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *arguments])
        runpy.run_path(str(script), run_name="__main__")


def collect(probes: Path, recipe: PretrainedTables, out: Path) -> None:
    """The tables and the document, side by side."""
    files = json.dumps({name: str(DATA / name) for name in Pretrained.FILES})
    words = flags(recipe=recipe, models=probes, probes=probes, out=out, files=files)
    # statsmodels collects garbage at every correction, which takes longer than all the rest
    gc.freeze()
    run("make_tables", ["pretrained", *words])
    document = flags(tables=out, prompts=DATA / "prompts.yaml", out=out / DOCUMENT)
    run("residual_gain", document)
    gc.unfreeze()


def write_two_and_a_missing_one(place: Path) -> PretrainedTables:
    """Base with BOS rows and tuned one without, and one that was not measured; their grid."""
    write_model(place, "a-base", bos=("on", "off"), tokenizer_adds_bos=True)
    write_model(place, "a-tuned", tokenizer_adds_bos=None)
    write_missing(place, "gone")
    return grid("a-base", ("a-tuned", "a-base"), "gone")


def strict(path: Path) -> Any:
    """JSON that has no NaN and no infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{path}: {word} is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)
