"""Figures of residual gain from made-up measurements: what they show and say is missing."""

import math
import re
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from normscope.studies.pretrained.figure import NORMS
from pretrained_evidence import (
    DATA,
    collect,
    grid,
    run,
    write_missing,
    write_model,
)
from pretrained_evidence import (
    write_two_and_a_missing_one as write_two,
)
from recall_recipes import by

from normscope.io.csvfile import write_csv
from normscope.studies.main.tables import by_arm
from normscope.studies.pretrained.measures import METRICS

# the tables that each takes
TAKES = {
    "residual": ("observations", "by_model"),
    "comparison": ("by_model",),
    "final_norm": ("sensitivity", "h25_models", "layers"),
    "blocks": ("layers",),
    "sensitivity": ("sensitivity",),
    "beside": ("by_model",),
}
PUBLISHED = "gpt-j-6b gpt2-large gpt2-medium gpt2-xl pythia-6.9b gemma-7b llama-3.1-8b mistral-7b"


class Drawn(NamedTuple):
    written: list[str]
    caption: str
    files: dict[str, bytes]
    axes: list[Axes]


def write_trained(place: Path) -> None:
    """runs.csv and gain_by_arm.csv of five runs, of which one diverged and has no gain."""
    kept = [("layernorm", "pre", 1), ("layernorm", "pre", 2), ("rmsnorm", "pre", 1)]
    kept += [("layernorm", "post", 1)]
    rows = [
        {"arm": arm, "placement": placement, "seed": seed, "site": f"block_{depth - 1}"}
        | {"depth": depth, "position": position, "log_gain": 0.1 * depth + 0.01 * seed}
        for arm, placement, seed in kept
        for depth in (1, 2)
        for position in (0, 1)
    ]
    write_csv(place / "gain_by_arm.csv", by_arm(pd.DataFrame(rows), 0.95))
    runs = pd.DataFrame([*kept, ("dyt", "pre", 1)], columns=["arm", "placement", "seed"])
    lost = [7.0 if arm == "dyt" else math.nan for arm in runs["arm"]]
    write_csv(place / "runs.csv", runs.assign(val_loss=1.9, diverged_at=lost))


def draw(name: str, place: Path, out: str = "figures") -> Drawn:
    """Run a figure's script on the tables; what it wrote."""
    words: list[object] = []
    for table in (*TAKES[name], "models"):
        words += [f"--{table.replace('_', '-')}", place / f"{table}.csv"]
    if name == "final_norm":
        words += ["--references", DATA / "reference_gains.csv"]
    if name == "beside":
        words += ["--gains", place / "gain_by_arm.csv", "--runs", place / "runs.csv"]
    words += ["--width-mm", 170, "--font-pt", 8, "--level", 0.95]
    stem = place / out / name
    words += ["--caption", place / "shown.rst", "--out", stem]
    with mpl.rc_context(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "close", lambda *_: None)
        run(f"figure_{name}", words)
        axes = plt.gcf().axes
    plt.close("all")
    files = {p.name: p.read_bytes() for p in stem.parent.glob(f"{name}.*")}
    svg, caption = (files[f"{name}.{kind}"].decode() for kind in ("svg", "txt"))
    return Drawn(re.findall(r"<!-- (.*?) -->", svg, re.DOTALL), caption, files, axes)


class Scene:
    """Tables, and what is drawn of them, each once."""

    def __init__(self, place: Path, models: str) -> None:
        self.place, self.drawn = place, {}
        collect(place / "measured", models, place)
        write_trained(place)
        (place / "shown.rst").write_text("What is\n  shown.\n")

    def __getitem__(self, name: str) -> Drawn:
        if name not in self.drawn:
            self.drawn[name] = draw(name, self.place)
        return self.drawn[name]

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.place / f"{name}.csv")


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Scene:
    place = tmp_path_factory.mktemp("two")
    return Scene(place, write_two(place / "measured"))


@pytest.fixture(scope="module")
def none(tmp_path_factory) -> Scene:
    place = tmp_path_factory.mktemp("none")
    write_missing(place / "measured", "gone")
    return Scene(place, grid("gone"))


@pytest.fixture(scope="module")
def again(tmp_path_factory) -> Scene:
    """Two published models are measured here under their names."""
    place = tmp_path_factory.mktemp("again")
    for name in ("gpt2-medium", "pythia-6.9b"):
        write_model(place / "measured", name)
    return Scene(place, grid("gpt2-medium", "pythia-6.9b"))


@pytest.mark.parametrize("name", TAKES)
def test_a_figure_is_the_same_bytes_again(name, two):
    drawn = two[name]
    assert set(drawn.files) == {f"{name}.pdf", f"{name}.svg", f"{name}.txt"}
    assert drawn.files[f"{name}.pdf"].startswith(b"%PDF")
    assert draw(name, two.place, "again").files == drawn.files


@pytest.mark.parametrize("name", TAKES)
def test_a_caption_says_n_and_what_was_not_measured(name, two):
    caption = two[name].caption
    assert caption.startswith("What is shown. n: ")
    assert caption.endswith(" Measured: a-base, a-tuned. Not measured: gone.\n")
    assert re.search(r"25 prompts (of each (pretrained )?model|a model)", caption)


@pytest.mark.parametrize("name", TAKES)
def test_without_a_measured_model_a_figure_says_so(name, none):
    drawn = none[name]
    assert set(drawn.files) == {f"{name}.pdf", f"{name}.svg", f"{name}.txt"}
    assert drawn.caption.endswith(" Measured: no model. Not measured: gone.\n")
    shows_published = name in ("residual", "comparison", "beside")
    assert ("no model was measured" in drawn.written) != shows_published


def ticks(axis: Axes, which: str = "x") -> list[str]:
    labels = axis.get_xticklabels() if which == "x" else axis.get_yticklabels()
    return [label.get_text() for label in labels]


def test_means_are_of_every_model_in_their_order(two):
    """Bars: mean and standard deviation; dashes: the geometric mean."""
    axis = two["residual"].axes[3]
    names = ticks(axis)
    expected = {f"{m} " for m in PUBLISHED.split()} | {"a-base", "a-tuned"}
    assert {re.sub(r"\(\w+, published\)", "", name) for name in names} == expected
    (bars,) = [c for c in axis.containers if isinstance(c, BarContainer)]
    heights = [bar.get_height() for bar in bars]
    assert heights == sorted(heights)
    assert dict(zip(names, heights, strict=True))["gpt2-xl (fp32, published)"] == pytest.approx(
        1.0191, abs=5e-5
    )


def test_prompts_of_gpt2_and_of_measured_models_are_shown(two):
    distribution, scatter, category, _ = two["residual"].axes
    published = {f"gpt2-{size} (fp32, published)" for size in ("medium", "large", "xl")}
    shown = published | {"a-base", "a-tuned"}
    points = {str(line.get_label()): line for line in scatter.lines if len(line.get_xydata()) == 25}
    assert set(points) == shown
    of = by(two.table("observations").query("experiment == 'measured'"), "model", "prompt")
    y = [row["gain"] for (model, _), row in of.items() if model == "a-tuned"]
    assert sorted(np.asarray(points["a-tuned"].get_ydata())) == pytest.approx(sorted(y))
    assert ticks(category) == ["Factual", "Syntactic", "Cliche", "Novel", "Nonsense"]
    assert len(distribution.patches) == len(shown)


def test_a_model_that_is_published_and_measured_is_shown_twice(again):
    """gpt2-medium as published, and here."""
    scatter = again["residual"].axes[1]
    points = [line for line in scatter.lines if len(line.get_xydata()) >= 25]
    assert [len(line.get_xydata()) for line in points] == [25] * 5
    assert len({str(line.get_label()) for line in points}) == 5


@pytest.mark.parametrize(("name", "which"), [("comparison", "y"), ("final_norm", "x")])
def test_published_and_measured_models_have_names_of_their_own(name, which, again):
    names = ticks(again[name].axes[0], which)
    assert len(set(names)) == len(names)
    assert [name for name in names if name.startswith("pythia-6.9b")] != ["pythia-6.9b"] * 2


def test_a_comparison_has_a_row_a_model_sorted_by_the_geometric_mean(two):
    axis = two["comparison"].axes[0]
    table = two.table("by_model").sort_values("log_gain")
    names = ticks(axis, "y")
    assert [name.split(" (")[0] for name in names] == list(table["model"])
    assert len(names) == 14 + 2
    assert names.count("gemma-7b (fp16, published)") == names.count("gemma-7b (bf16, published)")
    marks = [line for line in axis.lines if line.get_marker() == "o" and len(line.get_xydata())]
    assert [float(line.get_xdata()[0]) for line in marks] == pytest.approx(
        list(np.exp(table["log_gain"]))
    )
    # measured ones are filled, in the colour of their norm
    for line, row in zip(marks, table.to_dict("records"), strict=True):
        filled = line.get_markerfacecolor()
        measured = row["experiment"] == "measured"
        assert (filled == NORMS[row["norm"]]) == measured
        assert to_hex(line.get_color()) == to_hex(NORMS[row["norm"]])


def test_three_ratios_are_the_published_and_the_measured_ones(two):
    axis = two["final_norm"].axes[0]
    published = ["pythia-6.9b (published)", "gpt-j-6b (published)"]
    assert ticks(axis) == [*published, "a-base", "a-tuned"]
    bars = [c for c in axis.containers if isinstance(c, BarContainer)]
    heights = {str(c.get_label()): [bar.get_height() for bar in c] for c in bars}
    assert set(heights) == {METRICS[m] for m in METRICS if not m.startswith("total")}
    assert heights[METRICS["gain_with_final_norm"]][:2] == pytest.approx([0.3199, 0.3727], abs=6e-5)
    assert heights[METRICS["gain_hidden_states"]][:2] == pytest.approx([0.9867, 1.1328], abs=6e-5)
    assert heights[METRICS["last_gain"]][:2] == pytest.approx([0.8047, 1.0652], abs=6e-5)
    rows = by(two.table("by_model"), "model")
    measured = [np.exp(rows[m]["log_gain"]) for m in ("a-base", "a-tuned")]
    assert heights[METRICS["last_gain"]][2:] == pytest.approx(measured)


def test_rho_is_shown_of_the_sweep_the_16_models_and_the_measured_ones(two):
    axis = two["final_norm"].axes[1]
    points = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xydata()) for line in points) == 8 + 16 + 2
    assert {"Pythia", "OPT", "BLOOM", "GPT-Neo", "F a"} <= {str(p.get_label()) for p in points}


def test_the_final_norm_is_a_cross_at_the_end_of_a_models_sites(two):
    axis = two["final_norm"].axes[2]
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    assert [float(line.get_xdata()[0]) for line in crosses] == [1, 1]
    lines = [line for line in axis.lines if str(line.get_label()).startswith("a-")]
    # the embedding has no gain; three blocks of four steps
    for line in lines:
        there = np.asarray(line.get_xdata())[np.isfinite(np.asarray(line.get_ydata()))]
        assert list(there) == [0.25, 0.5, 0.75]


def test_blocks_are_drawn_from_the_second_on_where_they_were_measured(two):
    axes = two["blocks"].axes
    assert len(axes) == 3 * 2
    for i, axis in enumerate(axes):
        lines = {
            str(x.get_label()): list(x.get_xdata()) for x in axis.lines if x.get_marker() == "None"
        }
        lines = {name: x for name, x in lines.items() if name.startswith("a-")}
        expected = {"a-base"} if i % 2 else {"a-base", "a-tuned"}
        assert set(lines) == expected
        assert all(x == [1, 2] for x in lines.values())
    assert [axis.get_title() for axis in axes[:2]] == ["no BOS", "BOS"]
    assert two["blocks"].written.count("no model was measured") == 0


def test_a_matrix_has_a_number_with_its_side_of_1_or_a_dash(two):
    matrices = [axis for axis in two["sensitivity"].axes if axis.get_images()]
    matrices = [axis for axis in matrices if axis.get_title(loc="left")]
    assert [axis.get_title(loc="left") for axis in matrices] == ["a-base", "a-tuned"]
    cells = {axis.get_title(loc="left"): [t.get_text() for t in axis.texts] for axis in matrices}
    n = len(METRICS) * 2 * 3
    assert (len(cells["a-base"]), len(cells["a-tuned"])) == (n, n)
    assert "–" not in cells["a-base"]
    assert cells["a-tuned"].count("–") == n // 2
    rows = by(two.table("sensitivity"), "model", "metric", "bos", "positions")
    row = rows["a-base", "last_gain", "off", "first"]
    number, side = cells["a-base"][0].split()
    assert float(number) == pytest.approx(np.exp(row["log_gain"]), abs=0.005)
    assert side == {"above 1": "+", "below 1": "−", "covers 1": "0"}[row["reads"]]


def test_trained_arms_of_the_pre_placement_stand_beside_pretrained_models(two):
    drawn = two["beside"]
    trained, pretrained = drawn.axes
    assert ticks(trained) == ["LayerNorm", "RMSNorm"]
    dots = [line for line in trained.lines if line.get_marker() == "o"]
    # the last block: exp 0.2 x 1.01 and 1.02 in the mean of two seeds
    gains = [float(line.get_ydata()[0]) for line in dots]
    assert gains == pytest.approx(np.exp([0.215, 0.21]))
    assert sorted(ticks(pretrained)) == sorted([*PUBLISHED.split(), "a-base", "a-tuned"])
    assert "n: 2 trained models of layernorm pre; 1 trained model each of rmsnorm pre, dyt pre" in (
        drawn.caption
    )
    assert "Diverged, and in no mean: dyt pre seed 1 at step 7." in drawn.caption
    assert "layernorm post" not in drawn.caption
