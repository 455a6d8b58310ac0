"""Every figure of the registry, drawn from planted tables: of two seeds, of one, of none."""

import math
import re
from functools import cache

import numpy as np
import pytest
from drawings import FIGURES, Drawn, data
from matplotlib.collections import LineCollection
from planted_tables import ARMS, STEP, Case, drawn

from normscope.nn.arms import ARMS as REGISTRY
from normscope.pages import style
from normscope.pages.style import MEAN
from normscope.studies.arms import arm_look
from normscope.studies.folder import FOLDER

LOST = (*ARMS, "measured")
# what a figure says if there is nothing to show
EMPTY = {
    "slice": "diverged",
    "decisive": "diverged",
    "jacobian": "all models diverged",
    "final_norm": "no model was measured",
    "blocks": "no model was measured",
    "sensitivity": "no model was measured",
    "removed_blocks": "no model was measured",
    "textbook": "no token norm was measured",
}


@cache
def plain(name: str) -> Drawn:
    """The figure of the planted tables, which takes seconds to draw."""
    return drawn(name)


def test_every_drawing_is_registered():
    paths = FOLDER.glob("*/figures/[!_]*.py")
    drawings = [(path.parts[-3], path.stem) for path in paths]
    of_paper = [(entry.study, name) for name, entry in FIGURES.items()]
    assert sorted(drawings) == sorted([*of_paper, ("card", "card")])  # of a card, not of the paper


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_titles_and_one_color_per_arm(name):
    colors = {arm.label: arm_look(key)["color"] for key, arm in REGISTRY.items()}
    for axis in plain(name).axes:
        is_titled = axis.get_title() or axis.get_title(loc="left")
        assert is_titled or axis.get_label() == "<colorbar>"
        for line in axis.lines:
            assert line.get_color() == colors.get(str(line.get_label()), line.get_color())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_that_is_drawn_again_has_the_same_bytes(name, tmp_path):
    first, again = (drawn(name).save(tmp_path / f"{i}" / name) for i in range(2))
    assert set(first) == {".pdf", ".svg"}
    assert first == again


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.filterwarnings("ignore:Attempt to set non-positive")
def test_a_figure_can_be_drawn_from_one_seed_and_from_lost_models(name, tmp_path):
    drawn(name, Case(seeds=(1,))).save(tmp_path / "one")
    empty = drawn(name, Case(lost=LOST))
    empty.save(tmp_path / "lost")
    assert EMPTY.get(name, "") in " ".join(empty.words).replace("\n", " ")
    study = FIGURES[name].study
    if study in ("main", "recall") or name in ("jacobian", "trained_and_pretrained"):
        assert f"at step {STEP}" in empty.n
    if study == "pretrained":
        assert empty.n.endswith("Measured: no model. Not measured: ours, gone.")
    if name in ("signals", "spectra"):
        assert empty.n.startswith("No model was measured.")


@pytest.mark.parametrize("name", [n for n, f in FIGURES.items() if f.study in ("main", "recall")])
def test_diverged_models_are_named_and_the_others_drawn(name):
    figure = drawn(name, Case(lost=("none",)))
    lost = figure.n.partition("Diverged, ")[2].partition(": ")[2]
    assert re.findall(r"(\w+)(?: recall [\d.]+)? seed \d at step 7", lost)
    assert "layernorm" not in lost
    words = " ".join(figure.words)
    assert "radius 1" in words if name in ("factors", "sweep") else "Unit L2" in words


FILLED = ("o", "s", "^", "D", "v", "<", "p")  # markers that are filled or open


@pytest.mark.parametrize(
    "name", ["loss", "gain", "factors", "jacobian", "surrogates", "dose", "literature_loss"]
)
def test_one_model_is_open_and_has_no_bar_and_several_have_one(name):
    for seeds in ((1,), (1, 2)):
        axes = drawn(name, Case(seeds=seeds)).axes
        lines = [x for axis in axes for x in axis.lines if len(data(x)[0])]
        marks = [x for x in lines if x.get_marker() in FILLED]
        means = [x for x in marks if x.get_markerfacecolor() not in ("none", "white")]
        means += [x for x in lines if x.get_label() == MEAN]
        groups = [c for axis in axes for c in axis.collections if isinstance(c, LineCollection)]
        bars = [s for c in groups for s in c.get_segments() if s.size and np.isfinite(s).all()]
        assert bool(means) == bool(bars) == (len(seeds) > 1)


@pytest.mark.parametrize("name", FIGURES)
def test_sample_sizes_are_written_into_the_figure(name):
    n = {"notebook": 1, "slice": 1, "final_norm": 25}.get(name, 2)
    n = 25 if FIGURES[name].study == "pretrained" and name != "trained_and_pretrained" else n
    assert re.search(rf"n = {n}\b", "\n".join(plain(name).words))


def test_a_line_of_single_models_and_means_is_open_where_there_is_no_interval():
    style.use(8)
    _, axes = style.canvas(80, 60, 1, 1)
    ends = [math.nan, 1.5, math.nan], [math.nan, 2.5, math.nan]
    style.estimates(axes[0, 0], [0, 1, 2], [1, 2, math.nan], ends, color="k", marker="o")
    line, filled, alone = axes[0, 0].lines
    assert (line.get_marker(), data(line)) == ("", ([0, 1], [1, 2]))
    assert (filled.get_markerfacecolor(), data(filled)) == ("k", ([1], [2]))
    assert (alone.get_markerfacecolor(), data(alone)) == ("white", ([0], [1]))


def test_a_difference_axis_shades_where_it_is_logarithmic():
    style.use(8)
    _, axes = style.canvas(80, 60, 1, 1)
    axis = axes[0, 0]
    axis.set_xlim(-0.05, 1)
    style.symlog(axis, 0.1)
    (shade,) = axis.patches
    assert shade.get_extents().transformed(axis.transData.inverted()).intervalx == (
        pytest.approx([0.1, 1])
    )
    assert axis.get_xlim() == (-0.05, 1)
