"""The scripts textbook.py and figure_textbook.py, on tiny models: several seeds, one, no norm."""

import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import processes
import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
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
SHOWN = ("scratch", "epsilon", "wild", "affine", "batches")


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


def draw(tables: Path, out: Path) -> tuple[list[Axes], list[str], str]:
    """Panels, written text and caption of the figure of tables."""
    (out / "shown.rst").write_text("What is\n  shown.\n")
    flags = {name: tables / f"{name}.csv" for name in SHOWN}
    flags |= {"caption": out / "shown.rst", "out": out / "figure"}
    look = {"width_mm": 170, "font_pt": 8, "level": 0.95}
    script = processes.SCRIPTS / "figure_textbook.py"
    with mpl.rc_context(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *processes.flags(**flags, **look)])
        patch.setattr(plt, "close", lambda *_: None)
        runpy.run_path(str(script), run_name="__main__")
        panels = plt.gcf().axes
    plt.close("all")
    svg, caption = ((out / f"figure.{kind}").read_text() for kind in ("svg", "txt"))
    # matplotlib names the text beside its glyphs, a line each
    return panels, re.findall(r"<!-- (.*?) -->", svg, re.DOTALL), caption


def line(axis: Axes, label: str) -> tuple[list[float], list[float]]:
    (found,) = [x for x in axis.lines if x.get_label() == label]
    x, y = (np.asarray(data, dtype=float).tolist() for data in found.get_data())
    return x, y


@pytest.fixture(scope="module")
def drawn(measured) -> tuple[list[Axes], list[str], str]:
    (measured / "drawn").mkdir()
    return draw(measured / "textbook", measured / "drawn")


def test_the_panels_are_what_the_tables_say(measured, drawn):
    panels, written, caption = drawn
    tables = {name: pd.read_csv(measured / "textbook" / f"{name}.csv") for name in SHOWN}
    assert len(panels) == 6
    assert set("ABCDEF") <= set(written)
    assert line(panels[0], "measured")[0] == tables["scratch"]["d"].tolist()
    assert line(panels[0], "NaN") == ([1.0], [0.0])
    assert line(panels[1], "torch")[1] == tables["epsilon"]["torch"].tolist()
    labels = [str(x.get_label()) for axis in panels[2:4] for x in axis.lines]
    assert [x for x in labels if "%" in x] == [
        *("before: 5.7%", "after: 7.8%"),
        *("before: 99.8%", "after: 98.8%"),
    ]
    means = tables["affine"].groupby("index")["std_after"].mean().tolist()
    assert line(panels[4], "std after") == ([0, 1, 2], pytest.approx(means))
    batchnorm = tables["batches"][tables["batches"]["arm"] == "batchnorm"]
    assert line(panels[5], "BatchNorm")[1][1:] == batchnorm["mean"].tolist()[1:]
    assert {"BatchNorm refuses 1 token", "LayerNorm: 0 at every size"} <= set(written)
    assert caption == "What is shown. n: 2 trained models; 20 batches of each size.\n"


def test_one_seed_has_no_interval_and_a_caption_of_one_model(measured, tmp_path):
    for name in SHOWN:
        table = pd.read_csv(measured / "textbook" / f"{name}.csv")
        one = table[table["seed"] == 1] if name == "affine" else table
        one.to_csv(tmp_path / f"{name}.csv", index=False)
    panels, _, caption = draw(tmp_path, tmp_path)
    of_seed = pd.read_csv(tmp_path / "affine.csv")["std_after"].tolist()
    assert line(panels[4], "std after")[1] == pytest.approx(of_seed)
    assert "n: 1 trained model; " in caption


def test_without_token_norms_the_panel_says_so(no_norm, tmp_path):
    _, written, caption = draw(no_norm[0] / "textbook", tmp_path)
    assert "no token norm was measured" in written
    assert "n: 0 trained models; " in caption


def test_a_diverged_model_is_in_no_mean(measured, tmp_path):
    for name in SHOWN:
        table = pd.read_csv(measured / "textbook" / f"{name}.csv")
        if name == "affine":
            table.loc[table["seed"] == 2, "mean_before":] = np.nan
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    panels, _, caption = draw(tmp_path, tmp_path)
    first = pd.read_csv(tmp_path / "affine.csv").query("seed == 1")["mean_after"].tolist()
    assert line(panels[4], "|mean| after")[1] == pytest.approx(first)
    assert "n: 1 trained model; " in caption


@pytest.mark.usefixtures("drawn")
def test_the_figure_is_the_same_bytes_again(measured, tmp_path):
    draw(measured / "textbook", tmp_path)
    again, first = (
        {p.name: p.read_bytes() for p in place.glob("figure.*")}
        for place in (tmp_path, measured / "drawn")
    )
    assert set(again) == {"figure.pdf", "figure.svg", "figure.txt"}
    assert again == first
