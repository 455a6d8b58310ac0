"""The script make_tables.py, on tiny models: several seeds, one, no norm."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import stored_models
import torch
from recall_recipes import by
from recipes import DATA, recipe

from normscope.nn.recipe import Placement
from normscope.studies.textbook.recipe import TextbookTables
from normscope.train.trained import transformers

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
ROWS = {"scratch": 8, "epsilon": 17, "affine": 9, "sharing": 5, "batches": 18}
ROWS |= {"wild": 100, "wild_summary": 4, "undo": 12}
NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]


def write(place: Path, arm: str, seeds: Sequence[int], placement: Placement = "pre") -> Path:
    """The files of a job, of models that are away from their start."""
    stack = recipe(arm, placement, seeds=seeds)
    return stored_models.write(place / f"{arm}-{seeds[0]}", stack, [2.0] * len(seeds))


def textbook(place: Path, data: Path, *jobs: Path) -> processes.Script:
    names = [job.name for job in jobs]
    recipe = TextbookTables(models=names, windows=WINDOWS, level=0.95)
    models = jobs[0].parent
    paths = {"models": models, "probes": place, "data": data, "out": place / "textbook"}
    arguments = processes.flags(recipe=recipe, **paths)
    return processes.Script("make_tables textbook", arguments, place / "log")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, data) -> Path:
    """Tables of two jobs of three seeds, and the models that they are of."""
    place = tmp_path_factory.mktemp("measured")
    jobs = [write(place, "layernorm", seeds) for seeds in ([10, 2], [1])]
    assert textbook(place, data, *jobs).succeed() == ""
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
    assert keys == [(seed, name, i) for seed in (2, 10, 1) for i, name in enumerate(NAMES)]
    assert set(table["tokens"]) == {WINDOWS * T}
    assert table.notna().all(axis=None)


def test_trained_norms_are_seen_on_windows_spread_over_the_validation_split(measured):
    """At the first norm, from the embeddings of windows cut by hand."""
    model = transformers(measured / "layernorm-10")[1][2]
    val = DATA.val.astype(int)
    starts = [0, (len(val) - 1 - T) // 2, len(val) - 1 - T]
    tokens = torch.tensor(np.stack([val[i : i + T] for i in starts]))
    x = model.double().token_embedding(tokens) + model.position_embedding.weight
    std = x.std(-1, correction=0)
    row = by(pd.read_csv(measured / "textbook" / "affine.csv"), "seed", "layer")[2, NAMES[0]]
    expected = (std / (std.square() + 1e-5).sqrt()).mean().item()
    assert row["std_before"] == pytest.approx(expected, rel=1e-8)


@pytest.fixture(scope="module")
def no_norm(tmp_path_factory, data) -> tuple[Path, str]:
    """Tables of models without token statistics, and what the log says."""
    place = tmp_path_factory.mktemp("none")
    jobs = [write(place, "none", [1], "none"), write(place, "dyt", [2])]
    return place, textbook(place, data, *jobs).succeed()


def test_models_without_token_norms_have_an_empty_table_and_are_named(no_norm):
    place, log = no_norm
    assert (place / "textbook" / "affine.csv").read_text() == COLUMNS["affine"] + "\n"
    for name in ("none-1", "dyt-2"):
        assert f"{name}: no norm has token statistics; affine.csv has no row of it" in log


def test_what_rests_on_no_model_is_the_same_bytes_again(measured, no_norm):
    for name in COLUMNS.keys() - {"affine"}:
        again, first = (p / "textbook" / f"{name}.csv" for p in (no_norm[0], measured))
        assert again.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("missing", ["config.json", "models.safetensors"])
def test_a_missing_file_is_an_error_that_names_it_and_leaves_no_table(missing, data, tmp_path):
    job = write(tmp_path, "layernorm", [1])
    (job / missing).unlink()
    assert str(job / missing) in textbook(tmp_path, data, job).fail()
    assert not (tmp_path / "textbook").exists()
