"""Every figure of the registry, drawn from planted tables: of two seeds, of one, of none."""

import math
import re
from functools import cache

import numpy as np
import pytest
from drawings import FIGURES, Drawn, data
from planted_tables import ARMS, Case, draw_planted

from normscope.pages import style
from normscope.studies.stage import FOLDER

LOST = (*ARMS, "dyt", "measured")
ROOT = math.sqrt(2)
NOT_SAID = (
    "tuning",
    "untrained_depth",
    "logits",
    "comparison",
    "heads",
    "prompts",
)  # of lost models
LOSSES = (1.5, 2.0, 2.5)  # of the arms at pre, pre and none
STEPS = (1, 5, 10)


@cache
def plain(name: str) -> Drawn:
    """The figure of the planted tables."""
    return draw_planted(name)


def test_every_drawing_is_registered():
    paths = FOLDER.glob("*/figures/[!_]*.py")
    drawings = [(path.parts[-3], path.stem) for path in paths]
    of_paper = [(entry.study, name) for name, entry in FIGURES.items()]
    assert sorted(drawings) == sorted([*of_paper, ("card", "card")])  # of a card, not of the paper


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_titles_and_sample_sizes(name):
    figure = plain(name)
    figure.figure.draw_without_rendering()
    for axis in figure.axes:
        is_titled = axis.get_title() or axis.get_title(loc="left")
        assert is_titled or axis.get_label() == "<colorbar>"
    n = {"slice": 1, "heads": 25, "comparison": 25, "prompts": 1}
    assert name == "tuning" or re.search(rf"n = {n.get(name, 2)}\b", "\n".join(figure.words))


# the lines of a panel: x and y, or one of them, from the formulas of planted_tables.py
LINES = [
    ("norms", 0, [1.5, 1.5], [0, 0]),  # both models in post-norm, above those in pre-norm
    ("tuning", 0, [0.001, 0.003, 0.01], [2, 1, 3]),
    ("tuning", 0, [0.003], [1]),  # the rate that was chosen
    ("loss", 0, [0.5], None),  # above the baseline's, which has the same seeds
    ("rates", 0, None, [LOSSES[0] + 0.015 + more for more in (0, 0.5, 0.5)]),
    ("batch_size", 0, None, [1, 0]),
    ("decisive", 0, STEPS, [1 + 3 / step for step in STEPS]),
    ("decisive", 1, None, [1.25, 1, 1.25]),
    ("decisive", 4, None, [math.sqrt(1.25 * 1.5), 1, math.sqrt(1.25 * 1.5)]),
    ("decisive", 5, None, [1, 0.5, 0.25, 0.125]),
    ("slice", 1, None, [0.25, 0, 0.25]),  # in nats above the trained model's loss
    ("slice", 1, None, [0.375, 0, 0.375]),  # the mean over the directions
    ("factors", 0, [math.sqrt(0.1 * 0.2)], [0]),
    ("dose", 0, None, [0.4, 0.1]),
    ("dose", 1, [10, 20], [2, 2]),
    ("signals", 1, None, 1.1 ** np.arange(2, 6)),
    ("placement", 0, [0.5], None),
    ("optimizer", 0, [0.5], None),
    ("rates", 0, None, [4.015, 4.515, 4.515]),
    ("untrained_depth", 0, [2, 8], [ROOT / 2, ROOT / 8]),
    ("mean_direction", 0, [ROOT], None),
    ("textbook", 0, [2, 4], [0.7, 0.87]),
    ("textbook", 2, None, [1, 1, 1, 3]),
    ("textbook", 3, None, [0, 0, 0, 1]),
    ("textbook", 4, [0, 1], [2.5, 3.5]),
    ("textbook", 5, [2, 4], [0.45, 0.225]),
    ("comparison", 0, [math.exp(0.2)], None),
    ("heads", 1, [0.5], [1.2]),
    ("heads", 0, [0], [0.9]),
    ("prompts", 1, [3], [1.1]),
    ("layers", 0, [0.25, 0.5], [0, 1]),
    ("signals", 2, None, 0.8 ** np.repeat([6, 4, 2, 0], 3)),
]


@pytest.mark.parametrize(("name", "panel", "x", "y"), LINES)
def test_a_line_has_the_numbers_of_its_table(name, panel, x, y):
    lines = [data(line) for line in plain(name).axes[panel].lines]
    assert [
        line
        for line in lines
        if (x is None or line[0] == pytest.approx(x, rel=0.1))  # overlapping points are shifted
        and (y is None or line[1] == pytest.approx(y))
    ], lines


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.filterwarnings("ignore:Attempt to set non-positive")
def test_a_figure_can_be_drawn_from_one_seed_and_says_what_lost_models_leave_out(name):
    draw_planted(name, Case(seeds=(1,))).figure.draw_without_rendering()
    empty = draw_planted(name, Case(lost=LOST))
    empty.figure.draw_without_rendering()
    said = " ".join([*empty.words, empty.n]).replace("\n", " ")
    if name not in NOT_SAID:
        assert re.search("diverged|failed|at step 7|no model|n: 0", said, re.IGNORECASE)


OF_PAPERS = ("placement", "optimizer", "mean_direction", "untrained_depth")


@pytest.mark.parametrize(
    "name",
    [n for n, f in FIGURES.items() if f.study in ("main", "recall") and n not in OF_PAPERS],
)
def test_diverged_models_are_named_and_the_others_drawn(name):
    figure = draw_planted(name, Case(lost=("none",)))
    lost = figure.n.partition("Diverged, ")[2].partition(": ")[2]
    assert re.findall(r"(\w+)(?: recall [\d.]+)? seed \d at step 7", lost)
    assert "layernorm" not in lost
    assert "Unit L2" in " ".join(figure.words)


def test_a_figure_that_is_drawn_again_has_the_same_bytes(tmp_path):
    first, again = (draw_planted("loss").save(tmp_path / f"{i}" / "loss") for i in range(2))
    assert set(first) == {".pdf", ".svg"}
    assert first == again


def test_a_line_of_single_models_and_means_is_open_where_there_is_no_interval():
    style.use(8)
    _, axes = style.canvas(80, 60, 1, 1)
    ends = [math.nan, 1.5, math.nan], [math.nan, 2.5, math.nan]
    style.estimates(axes[0, 0], [0, 1, 2], [1, 2, math.nan], ends, color="k", marker="o")
    line, filled, alone = axes[0, 0].lines
    assert (line.get_marker(), data(line)) == ("", ([0, 1], [1, 2]))
    assert (filled.get_markerfacecolor(), data(filled)) == ("k", ([1], [2]))
    assert (alone.get_markerfacecolor(), data(alone)) == ("white", ([0], [1]))
