"""Figures of pretrained models, drawn from planted tables."""

import math

import numpy as np
import pandas as pd
import pytest
from drawings import data, draw, labelled, points, ticks
from matplotlib.container import BarContainer
from planted_tables import Case, drawn, tables_of

from normscope.nn.arms import ARMS as REGISTRY
from normscope.pages import style
from normscope.studies.pretrained.figures import NORMS
from normscope.studies.pretrained.measures import METRICS


def test_gains_of_prompts_and_their_means():
    figure = drawn("residual")
    _, scatter, category, means = figure.axes
    published, ours = (points(scatter, mark) for mark in style.MARKERS[:2])
    assert published == [(1, 1), (2, pytest.approx(math.exp(0.1)))]
    assert ours == [(1, 2), (2, pytest.approx(math.exp(0.1) + 1))]
    assert ticks(category) == ["Factual", "Novel"]
    (bars,) = [c for c in means.containers if isinstance(c, BarContainer)]
    assert [bar.get_width() for bar in bars] == pytest.approx(np.exp([0.2, -0.3]))
    assert ticks(means, "y") == ["gpt2-xl (fp32, published)", "ours"]
    assert figure.n == "n: 25 prompts of each model. Measured: ours. Not measured: gone."


def test_a_comparison_draws_a_model_once_and_fine_tuned_ones_apart():
    tables = tables_of("comparison")
    rows = tables["by_model"].assign(base=tables["by_model"]["model"].map({"ours": "theirs"}))
    again = rows[rows["experiment"] != "measured"].assign(experiment="twins", dtype="bf16")
    base, tuned = draw("comparison", tables | {"by_model": pd.concat([rows, again])}).axes
    for axis, name, marker, gain, norm in (
        (base, "gpt2-xl (fp32, published)", "D", 0.2, "LayerNorm"),
        (tuned, "ours", "P", -0.3, "RMSNorm"),
    ):
        assert ticks(axis, "y") == [name]
        (mark,) = [x for x in axis.lines if x.get_marker() == marker and len(data(x)[0])]
        assert data(mark) == ([pytest.approx(math.exp(gain))], [0])
        assert mark.get_color() == NORMS[norm]


def test_three_ratios_rho_and_the_sites_of_a_model():
    ratios, rho, depth = drawn("final_norm").axes
    assert ticks(ratios, "y") == ["pythia-6.9b (published)", "gpt-j-6b (published)", "ours"]
    bars = {str(c.get_label()): c for c in ratios.containers if isinstance(c, BarContainer)}
    lengths = {label: [bar.get_width() for bar in c] for label, c in bars.items()}
    # of data/reference_gains.csv: as the notebook prints them
    assert lengths[METRICS["gain_with_final_norm"]][:2] == pytest.approx([0.3199, 0.3727], abs=6e-5)
    assert lengths[METRICS["gain_hidden_states"]][:2] == pytest.approx([0.9867, 1.1328], abs=6e-5)
    assert lengths[METRICS["last_gain"]][:2] == pytest.approx([0.8047, 1.0652], abs=6e-5)
    assert [values[2] for values in lengths.values()] == pytest.approx([math.exp(0.5)] * 3)
    assert data(rho.lines[0]) == ([0.5], [1.2])
    assert labelled(depth, "ours")[0] == pytest.approx([0, 1 / 3, 2 / 3])
    (cross,) = [x for x in depth.lines if x.get_marker() == "x"]
    assert data(cross) == ([1], [pytest.approx(math.exp(0.3))])


def test_blocks_are_drawn_from_the_second_on():
    figure = drawn("blocks")
    assert len(figure.axes) == 3 * 2
    for axis in figure.axes:
        assert labelled(axis, "ours") == ([1], [pytest.approx(math.exp(0.2))])
    assert [axis.get_title() for axis in figure.axes[:2]] == [
        f"{bos}, n = 25 prompts of each model" for bos in ("no BOS", "BOS")
    ]


def test_a_matrix_has_a_number_with_its_side_of_1_or_a_dash():
    tables = tables_of("sensitivity")
    tables["sensitivity"].loc[0, "log_gain"] = math.nan
    matrix = draw("sensitivity", tables).axes[0]
    cells = [text.get_text() for text in matrix.texts]
    assert sorted(cells) == sorted([f"{math.exp(0.5):.3g} +"] * (len(METRICS) * 6 - 1) + ["–"])


def test_many_models_are_one_matrix_of_medians():
    tables = tables_of("sensitivity")
    gains = {"a": -0.1, "b": 0.1, "c": 0.2, "d": 0.3}
    one = tables["sensitivity"]
    reads = {name: "below 1" if gain < 0 else "above 1" for name, gain in gains.items()}
    parts = [one.assign(model=m, log_gain=g, reads=reads[m]) for m, g in gains.items()]
    figure = draw("sensitivity", tables | {"sensitivity": pd.concat(parts, ignore_index=True)})
    assert figure.axes[0].get_title(loc="left") == "4 models, n = 25 prompts"
    assert {text.get_text() for text in figure.axes[0].texts} == {"1.16\n3+ 1−"}


def test_trained_arms_in_pre_placement_are_compared_with_pretrained_models():
    figure = drawn("trained_and_pretrained", Case(lost=("manual_l2",)))
    trained, pretrained = figure.axes
    assert ticks(trained, "y") == [REGISTRY["layernorm"].label]
    dots = [data(x)[0] for x in trained.lines if x.get_marker() == "o"]
    assert dots == [[pytest.approx(1.1)]]
    assert ticks(pretrained, "y") == ["gpt2-xl", "ours"]
    assert "No norm" not in figure.words
    assert "Diverged, and in no mean: nanogpt Unit L2 seed 1 at step 7" in figure.n
