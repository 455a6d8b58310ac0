"""The script textbook_tables.py, on tiny models: several seeds, one, no norm."""

from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import torch
from recall_recipes import by, moved
from recipes import DATA, recipe

from normscope.nn.model import Transformer
from normscope.nn.recipe import Placement
from normscope.studies.textbook.recipe import TextbookTables
from normscope.train.outputs import write_run
from normscope.train.trained import transformer

WINDOWS, T = 3, 8
COLUMNS = {
    "scratch": "d,ratio,theory,error_forward,error_backward,error_ours,finite",
    "epsilon": "token_std,textbook,torch",
    "affine": "seed,layer,index,d,tokens,mean_before,std_before,mean_after,std_after,std_after_sd,"
    "gain_min,gain_max,recovered",
    "sharing": "arm,mode,itself,same_token,same_window,other_windows,elsewhere",
    "batches": "tokens,arm,n,mean,low,high,theory,error",
    "wild": "index,value,normalized,outlier,outlier_normalized",
    "wild_summary": "vector,mean,std,std_unbiased,largest,share,bound",
    "undo": "sd_ln_scale,sd_mean,r2,theory",
}
ROWS = {"scratch": 8, "epsilon": 17, "affine": 6, "sharing": 5, "batches": 18}
ROWS |= {"wild": 100, "wild_summary": 4, "undo": 12}
NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]


def write(place: Path, seed: int, arm: str = "layernorm", placement: Placement = "pre") -> Path:
    """A run's files, of a model that is away from its start."""
    run = recipe(arm, placement, seed=seed)
    model = Transformer(run.model, run.norm, run.placement, DATA.vocab_size)
    moved(model, seed)
    config = run.model_dump() | {"vocab_size": DATA.vocab_size}
    out = place / f"{arm}-{seed}"
    write_run(out, model, config=config, columns=["step"], curve=[], metrics={"val_loss": 2.0})
    return out / "model.safetensors"


def textbook(place: Path, data: Path, *models: Path) -> processes.Script:
    names = [model.parent.name for model in models]
    recipe = TextbookTables(models=names, windows=WINDOWS, level=0.95)
    paths = {"models": models[0].parents[1], "data": data, "out": place / "textbook"}
    arguments = processes.flags(recipe=recipe, **paths)
    return processes.Script("textbook_tables", arguments, place / "log")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, data) -> Path:
    """Tables of two seeds, and the models that they are of."""
    place = tmp_path_factory.mktemp("measured")
    assert textbook(place, data, *(write(place, seed) for seed in (1, 2))).succeed() == ""
    return place


def test_every_table_has_its_columns_and_rows(measured):
    for name, columns in COLUMNS.items():
        lines = (measured / "textbook" / f"{name}.csv").read_text().splitlines()
        assert lines[0] == columns
        assert len(lines) == 1 + ROWS[name], name
    assert {p.stem for p in (measured / "textbook").glob("*.csv") if p.name[0] != "."} == set(
        COLUMNS
    )


def test_every_norm_of_every_seed_has_a_row(measured):
    table = pd.read_csv(measured / "textbook" / "affine.csv")
    keys = list(table[["seed", "layer", "index"]].itertuples(index=False, name=None))
    assert keys == [(seed, name, i) for seed in (1, 2) for i, name in enumerate(NAMES)]
    assert set(table["tokens"]) == {WINDOWS * T}
    assert table.notna().all(axis=None)


def test_trained_norms_are_seen_on_windows_spread_over_the_validation_split(measured):
    """At the first norm, from the embeddings of windows cut by hand."""
    _, model = transformer(measured / "layernorm-2" / "model.safetensors")
    val = DATA.val.astype(int)
    starts = [0, (len(val) - 1 - T) // 2, len(val) - 1 - T]
    tokens = torch.tensor(np.stack([val[i : i + T] for i in starts]))
    x = model.double().token_embedding(tokens) + model.position_embedding.weight
    std = x.std(-1, correction=0)
    row = by(pd.read_csv(measured / "textbook" / "affine.csv"), "seed", "layer")[2, NAMES[0]]
    expected = (std / (std.square() + 1e-5).sqrt()).mean().item()
    assert row["std_before"] == pytest.approx(expected, rel=1e-8)


def test_again_the_tables_are_the_same_bytes(measured, data, tmp_path):
    models = [measured / f"layernorm-{seed}" / "model.safetensors" for seed in (1, 2)]
    textbook(tmp_path, data, *models).succeed()
    for name in COLUMNS:
        again, first = (p / "textbook" / f"{name}.csv" for p in (tmp_path, measured))
        assert again.read_bytes() == first.read_bytes()


@pytest.fixture(scope="module")
def no_norm(tmp_path_factory, data) -> tuple[Path, str]:
    """Tables of models without token statistics, and what the log says."""
    place = tmp_path_factory.mktemp("none")
    models = [write(place, 1, "none", "none"), write(place, 2, "dyt")]
    return place, textbook(place, data, *models).succeed()


def test_models_without_token_norms_have_an_empty_table_and_are_named(no_norm):
    place, log = no_norm
    assert (place / "textbook" / "affine.csv").read_text() == COLUMNS["affine"] + "\n"
    for name in ("none-1", "dyt-2"):
        model = place / name / "model.safetensors"
        assert f"{model}: no norm of the model has token statistics" in log


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_missing_file_is_an_error_that_names_it_and_leaves_no_table(missing, data, tmp_path):
    model = write(tmp_path, 1)
    (model.with_name(missing)).unlink()
    assert str(model.with_name(missing)) in textbook(tmp_path, data, model).fail()
    assert not (tmp_path / "textbook").exists()


def test_a_missing_dataset_is_an_error_that_names_it(tmp_path):
    message = textbook(tmp_path, tmp_path / "nowhere", write(tmp_path, 1)).fail()
    assert message.startswith(f"{tmp_path / 'nowhere' / 'meta.pkl'} is missing")
