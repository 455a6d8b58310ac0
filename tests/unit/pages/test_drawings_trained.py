"""Figures of trained models, and of the tutorial's layer, drawn from planted tables."""

import math

import numpy as np
import pytest
from drawings import data, draw, labelled, points, ticks
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from planted_tables import ARMS, RULES, TRIED, Case, drawn, tables_of

from normscope.pages.style import MEAN
from normscope.studies.arms import arm_look
from normscope.studies.jacobian.figures import ATTENTION


def test_losses_above_the_baseline_with_mean_and_interval():
    """The difference of each seed: the hundredths cancel."""
    figure = drawn("loss", Case(lost=("none",)))
    (axis,) = figure.axes
    assert ticks(axis, "y") == ["LayerNorm, pre", "Unit L2, pre", "No norm"]
    shown = [data(x)[0] for x in axis.lines if x.get_linestyle() == "None"]
    assert shown == [pytest.approx([above] * 2) for above in (0, 0.5, 2)]
    means = [data(x)[0] for x in axis.lines if x.get_label() == MEAN]
    assert means[1:2] == [pytest.approx([0.5])]
    lines = [c for c in axis.collections if isinstance(c, LineCollection)]
    bars = [c for c in lines if np.isfinite(c.get_segments()).all()]
    assert bars[1].get_segments()[0][:, 0] == pytest.approx([0.4, 0.6])
    assert figure.n.startswith("n: nanogpt: 2 trained models each of LayerNorm pre, ")
    assert figure.n.endswith("nanogpt No norm seed 1 at step 7, nanogpt No norm seed 2 at step 7.")


def test_losses_are_drawn_by_rate_with_a_cross_for_failed_models():
    pre, _ = drawn("rates", Case(lost=("manual_l2",))).axes
    color = arm_look("layernorm")["color"]
    line, dots, *_ = [data(x) for x in pre.lines if x.get_color() == color]
    assert line == (
        pytest.approx([0.001, 0.003, 0.01], rel=0.1),
        pytest.approx([1.515, 2.015, 2.015]),
    )
    assert sorted(dots[1]) == pytest.approx([1.51, 1.52, 2.01, 2.01, 2.02, 2.02])
    assert [y for _, y in points(pre, "x")] == [0.97] * 6


def test_the_cost_of_small_batches_is_drawn_next_to_the_losses():
    losses, excess = drawn("batch_size").axes
    assert ticks(losses) == ["1\nn = 2", "8\nn = 2"]
    color = arm_look("manual_l2")["color"]
    line, dots, *_ = [data(x) for x in excess.lines if x.get_color() == color]
    # the second of three arms, which is drawn in the middle
    assert line == (pytest.approx([1, 8]), [1, 0])
    assert dots == (pytest.approx([1, 8, 1, 8]), [1, 0, 1, 0])


def test_curves_are_means_over_seeds_and_validation_points_are_runs():
    pre, _, above, _ = drawn("curves").axes
    color = arm_look("layernorm")["color"]
    train, validation = [data(x) for x in pre.lines if x.get_color() == color][:2]
    assert train == ([1, 5, 10], pytest.approx([1.5 + 3 / step for step in (1, 5, 10)]))
    assert validation == ([10, 10], pytest.approx([1.51, 1.52]))
    color = arm_look("manual_l2")["color"]
    train, validation = [data(x) for x in above.lines if x.get_color() == color][:2]
    assert train == ([1, 5, 10], pytest.approx([0.5] * 3))
    assert validation == ([10, 10], pytest.approx([0.5] * 2))


def test_the_stream_is_drawn_from_the_embedding_to_the_final_norm():
    figure = drawn("gain")
    (top, _, bottom, _) = figure.axes
    assert labelled(top, "LayerNorm")[1] == pytest.approx(np.exp([0, 0.1, 0.2]))
    assert labelled(bottom, "Unit L2")[1] == pytest.approx([1.2, 1.2])
    assert ticks(bottom) == ["emb", "0", "norm"]
    assert "16 windows of validation text, positions 1 to 31." in figure.n


def test_the_notebook_shows_the_published_cells_and_first_seed():
    losses, cuts, values = drawn("notebook").axes
    color = arm_look("manual_l2")["color"]
    for axis, y in (
        # the geometric mean of all three steps, 3 / step + 1
        (losses, [(4.0 * 1.6 * 1.3) ** (1 / 3)]),
        (cuts, [2.25, 2, 2.25]),
        (values, [2, 1, 0.5, 0.25]),
    ):
        (line,) = [x for x in axis.lines if x.get_color() == color and len(data(x)[0])]
        assert data(line)[1] == pytest.approx(y)
    assert "n: 1 trained model each of" in drawn("notebook").n
    assert "n: 2 trained models each of" in drawn("decisive").n


def test_slices_are_published_restored_and_means_of_filtered_ones():
    """In nats above the trained model's loss, which is 2 for Unit L2: ratios would be half."""
    figure = drawn("slice")
    top, bottom = figure.axes[1], figure.axes[4]
    assert labelled(top, "published: offsets accumulate")[1] == pytest.approx([0.25, 0, 0.25])
    assert labelled(bottom, "same direction, restored")[1] == pytest.approx([0.25, 0, 0.25])
    # directions 0 and 1 lose alpha^2 and 2 alpha^2
    assert labelled(top, "filter-normalized, restored")[1] == pytest.approx([0.375, 0, 0.375])
    assert top.get_yscale() == "linear"
    assert figure.n.startswith("2 such directions. ")


def test_factors_are_drawn_at_the_rates_chosen_with_geometric_means_on_logarithmic_axes():
    tables = tables_of("factors", Case(lost=("none",)))
    runs = tables["runs"]
    runs.loc[(runs["arm"] == "manual_l2") & (runs["learning_rate"] != 0.003), "loss"] = 9.0
    figure = draw("factors", tables, task="recall")
    rows = figure.axes[::5]  # of five measures the loss
    assert [axis.get_ylabel().partition(",")[0] for axis in rows] == [
        "radius sqrt(d)",
        "radius 1",
        "other norms",
    ]
    root, unit, other = rows
    # LayerNorm has gain and bias and centers, the unit L2 norm neither
    assert points(root, "^") == [(pytest.approx(x), 0) for x in (0.1, 0.2)]
    assert ticks(root, "y") == ["both, centered"]
    assert points(unit, "o") == [(pytest.approx(x), 0) for x in (0.2, 0.3)]
    assert {"n = 2 at 0.001 edge", "n = 2 at 0.003"} <= set(figure.words)
    assert labelled(unit, MEAN) == ([pytest.approx(math.sqrt(0.2 * 0.3))], [0])
    (bar,) = [c for c in unit.collections if isinstance(c, LineCollection)]
    half = 12.706205 * math.log(0.3 / 0.2) / 2  # t of 1 degree of freedom
    ends = np.sqrt(0.2 * 0.3) * np.exp([-half, half])
    assert bar.get_segments()[0][:, 0] == pytest.approx(ends)
    accuracy = figure.axes[5 + 2]
    assert labelled(accuracy, MEAN) == ([pytest.approx(0.25)], [0])
    assert points(other, "x") == [(0.97, 0)] * 2
    assert ticks(other, "y") == ["No norm"]


def test_a_sweep_fills_the_best_rate():
    figure = drawn("sweep")
    titles = [axis.get_title() for axis in figure.axes[:3]]
    assert titles == [f"recall, {x},\nn = 2" for x in ("radius sqrt(d)", "radius 1", "other norms")]
    marks = [x for x in figure.axes[0].lines if x.get_markerfacecolor() != "none"]
    filled = [data(x) for x in marks if len(data(x)[0]) == 1]
    # all rates have the same mean: the least
    assert filled == [([0.001], [pytest.approx(math.sqrt(0.1 * 0.2))])]


def test_shares_of_the_gradient_are_drawn_in_units_of_the_width():
    figure = drawn("jacobian")
    assert len(figure.axes) == 2 * 4
    for axis in figure.axes:
        lines = [data(x) for x in axis.lines if len(data(x)[0]) > 2]
        # three kinds of gradient for two kinds of attention; the final norm is drawn separately
        means = pytest.approx([0.8, 1.6, 2.4])
        assert lines == [(pytest.approx([0, 1, 2], abs=0.1), means)] * 6
    assert ticks(figure.axes[-1]) == ["0a", "0m", "0m'", "final"]
    tables = tables_of("jacobian")
    layers = tables["layers_by_cell"]
    layers.loc[layers["measure"] == "r_mean", "mean"] = 9e-7  # rounding
    without = draw("jacobian", tables, protocols=["script", "small"])
    assert {axis.get_ylabel() for axis in without.axes} == {"r_radial x d", ""}
    layers["arm"] = "none"
    bare = draw("jacobian", tables | {"layers_by_cell": layers[:0]}, protocols=["small"])
    assert "no model has a norm layer" in bare.words


def test_a_cost_has_its_models_and_a_cross_for_one_that_failed():
    figure = drawn("surrogates")
    axis = figure.axes[0]
    kinds = [f"{rule.replace('_', ' ')}, " for rule, *_ in RULES]
    names = ticks(axis, "y")
    assert all(label.startswith(kind) for label, kind in zip(names, kinds, strict=True))
    for mark, seed in (("o", 1), ("x", 2)):  # the second seed has failed
        costs = [x for x, _ in points(axis, mark)]
        assert costs == pytest.approx(
            [0.1 * (i + seed) for i in (1, 2, 3)] * 2
        )  # of each attention
    assert {x.get_color() for x in axis.lines if x.get_marker() == "x"} == set(ATTENTION.values())
    assert "Diverged or no better than character frequencies: 0." in figure.n


def test_a_dose_is_a_line_from_nothing_left_in_and_sigma_a_line_over_steps():
    figure = drawn("dose")
    costs, sigma = figure.axes[0], figure.axes[2]  # of feedback alignment
    curves = [data(x) for x in costs.lines if x.get_marker() == "o" and len(data(x)[0])]
    assert curves == [
        (pytest.approx([0.5, 1], abs=0.02), pytest.approx([0.4, 0.1])),
        (pytest.approx([1], abs=0.02), [pytest.approx(0.2)]),
    ]
    lines = [data(x) for x in sigma.lines if len(data(x)[0])]
    assert lines == [([10, 20], pytest.approx([i] * 2)) for i in (1, 2, 3)]


def test_missing_surrogates_are_reported():
    tables = tables_of("surrogates")
    exact = {name: table[:0] for name, table in tables.items() if name != "losses"}
    figure = draw("surrogates", tables | exact, protocol="small")
    assert "no surrogate was trained" in figure.words


def test_the_deepest_networks_at_both_starts_and_the_published_curve():
    figure = drawn("signals")
    titles = [axis.get_title() for axis in figure.axes[:4]]
    kinds = ("with residuals", "without residuals")
    starts = ("GPT-2's start", "Xavier's start")
    assert titles == [f"{start},\n{r}\nn = 2" for r in kinds for start in starts]
    stream = figure.axes[1]  # of 5 blocks
    assert [data(x)[1] for x in stream.lines] == [pytest.approx(1.1 ** np.arange(6))] * 3
    *_, gradient = figure.axes  # without
    # the tutorial's layer is a sublayer: a block has two, and four matrices
    for layer, per_block in (("block", 1), ("sublayer", 2), ("matrix", 4)):
        x, y = labelled(gradient, f"as drawn, by {layer}")
        assert (x, y) == ([1, 2, 3, 4, 5], pytest.approx(0.8 ** (per_block * (5 - np.array(x)))))
    assert "RMS of the stream, Xavier's start: pre-norm 1e-20, post-norm 1e-20" in figure.n
    assert points(figure.axes[3], "v") == [(4, 0)] * 3  # 1e-16; block 3 is at the lowest, 1e-12
    assert figure.n.startswith("n: 2 models (seeds) behind every mean")


def test_singular_values_below_the_panel_are_drawn_at_its_foot():
    figure = drawn("spectra")
    *_, top, _, bottom, _ = figure.axes  # without residual connections; with them, at the start
    assert min(y for _, y in points(top, "v")) == 3e-3
    assert {y for x in bottom.lines[:-1] for y in data(x)[1]} == {80.0}


def test_losses_by_rate_have_one_panel_per_depth():
    figure = drawn("trainability")
    axis = figure.axes[0]
    shown = [y for mark in "oD" for _, y in points(axis, mark)]
    losses = tables_of("trainability")["losses"].query("depth == 2")["capped_loss"]
    assert sorted(shown) == pytest.approx(sorted(losses))  # every model, and no mean
    assert ticks(axis) == ["0.001", "0.01"]
    assert {f"{n} blocks, n = 2 at each setting" for n in (2, 5)} == {
        axis.get_title() for axis in figure.axes
    }
    lost = drawn("trainability", Case(lost=("none",)))
    assert lost.n.endswith(" 32 of 96 failed, of which 32 diverged.")
    # of 2 blocks: a cross each, a plus without residual connections
    assert len(points(lost.axes[0], "x")) == len(points(lost.axes[0], "+")) == 8


def test_the_tutorials_layer_is_what_the_tables_say():
    figure = drawn("textbook")
    scratch, _, wild, outlier, affine, batches = figure.axes
    assert labelled(scratch, "measured") == ([2, 4], [0.7, 0.87])
    assert labelled(scratch, "NaN") == ([1], [0])
    assert labelled(wild, "before: 25.0%")[1] == [1, 1, 1, 1]
    assert labelled(wild, "after: 75.0%")[1] == [1, 1, 1, 3]  # 9 of 12
    assert labelled(outlier, "after: 100.0%")[1] == [0, 0, 0, 1]
    assert labelled(affine, "std after") == ([0, 1], pytest.approx([2.5, 3.5]))
    assert labelled(batches, "BatchNorm") == ([2, 4], pytest.approx([0.45, 0.225]))
    said = "\n".join(figure.words)
    assert "BatchNorm refuses 1 token\nLayerNorm: 0 at every size" in said
    assert figure.n == "n: 2 trained models; 20 batches of each size."
    assert drawn("textbook", Case(lost=("layernorm",))).n.startswith("n: 0 trained models;")


def medians(axis: Axes) -> list[tuple[list[float], list[float]]]:
    """x and y of the lines without markers."""
    lines = [line for line in axis.lines if line.get_marker() == ""]
    return [data(line) for line in lines if len(data(line)[0]) > 1]


def test_losses_of_the_literature_have_a_row_per_cell_and_a_panel_for_single_ones():
    small, single = drawn("literature_loss", Case(lost=("none",))).axes
    assert [axis.get_title() for axis in (small, single)] == ["small", "protocols with one norm"]
    assert ticks(small, "y") == ["LayerNorm, pre-norm", "LayerNorm, post-norm", "No norm"]
    assert ticks(single, "y") == [f"{name}: LayerNorm, pre-norm" for name in ("sweep", "sweep_qk")]
    rows = [pytest.approx(x) for x in (2.01, 2.02, 2.51, 2.52)]
    assert points(small, "s") == list(zip(rows, (0, 0, 1, 1), strict=True))
    assert points(small, "x") == [(pytest.approx(x), 2) for x in (3.51, 3.52)]
    means = [data(line)[0] for line in small.lines if line.get_label() == MEAN]
    assert means == [[2.0], [2.5], [3.5]]
    assert "n = 2 at 0.001 edge" in [text.get_text() for text in small.texts]


def test_rates_of_the_literature_are_joined_by_medians_with_failed_models_at_the_top():
    (axis,) = drawn("literature_sweep").axes
    first, second = medians(axis)
    assert first == (pytest.approx(TRIED, rel=0.1), pytest.approx([3.515, 4.015, 4.015]))
    assert second[1] == pytest.approx([4.015, 4.515, 4.515])
    assert axis.get_legend_handles_labels()[1] == ["sweep", "sweep_qk"]
    assert axis.get_title() == "n = 2 at each setting"
    (axis,) = drawn("literature_sweep", Case(lost=("layernorm",))).axes
    assert [y for _, y in points(axis, "x")] == [0.97] * 12


def test_losses_without_a_block_have_a_panel_per_protocol_and_norm():
    figure = drawn("removed_blocks", Case(lost=("none",)))
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [f"{name}, LayerNorm, n = 2" for name in ("small", "sweep", "sweep_qk")]
    pre, post = medians(figure.axes[0])
    assert pre == (pytest.approx([1, 2], abs=0.3), pytest.approx([0.115, 0.215]))
    assert pre[0][0] < post[0][0]
    assert figure.axes[0].get_legend_handles_labels()[1] == ["pre-norm", "post-norm"]
    assert figure.n == "Models of 2 blocks."


def test_untrained_networks_have_a_line_of_geometric_means_per_placement():
    change, gradient, towers = drawn("untrained_depth").axes
    root = math.sqrt(2)  # of the seeds 1 and 2
    assert medians(change) == [([2, 8], pytest.approx([2 * root, 8 * root]))] * 2
    assert medians(gradient) == [([2, 8], pytest.approx([root / 2, root / 8]))] * 2
    assert sorted(points(change, "s")) == [(2, 2), (2, 4), (8, 8), (8, 16)]
    assert ticks(towers, "y") == [
        f"{norm},\n{mask}" for norm in ("No norm", "LayerNorm") for mask in ("causal", "no mask")
    ]
    assert points(towers, "s") == [(-seed, row) for row in (2, 3) for seed in (1, 2)]
    means = [data(line) for line in towers.lines if line.get_marker() == "|"]
    assert means == [([-1.5], [row]) for row in range(4)]


def test_measures_have_a_row_per_cell_in_which_they_are_known():
    case = Case(seeds=(1, 2, 6), lost=("none",))
    (unselectable,) = drawn("literature_measures", case).axes  # no growth over two blocks
    tables = tables_of("literature_measures", case)
    tables["blocks"]["block"] += 1
    growth, unselectable = draw("literature_measures", tables).axes
    sweeps = [f"{name}: LayerNorm, pre-norm" for name in ("sweep", "sweep_qk")]
    known = ["small: LayerNorm, pre-norm", "small: LayerNorm, post-norm", *sweeps]
    assert ticks(growth, "y") == known
    assert ticks(unselectable, "y") == sweeps[:1]
    numbers = (0, 1, 3, 4)  # of the cells: the third has no norm
    rows = [(seed + i, y) for y, i in enumerate(numbers) for seed in (1, 2, 6)]
    assert points(growth, "s") == rows
    medians = [data(line) for line in growth.lines if line.get_marker() == "|"]
    assert medians == [([2 + i], [y]) for y, i in enumerate(numbers)]
    assert (growth.get_xscale(), unselectable.get_xscale()) == ("log", "linear")
    tables = tables_of("literature_measures", Case(lost=ARMS))
    assert draw("literature_measures", tables).n == "Here no model was measured."


def test_scales_have_a_median_over_the_models_that_go_on_and_a_line_per_model():
    figure = drawn("scales")
    sigma, gain, _ = figure.axes
    name = "sweep: LayerNorm, pre-norm, n = 2"
    assert labelled(sigma, name) == ([1, 2, 10], [1.5, 3, 10])
    assert labelled(gain, name) == ([1, 2, 10], [2, 2, 2])
    lines = [data(line) for line in sigma.lines if line.get_alpha()]
    assert lines == [([1, 2, 10], [1, 2, 10]), ([1, 2], [2, 4])] * 2  # of two protocols
    tables = tables_of("scales")
    empty = {"scales": tables["scales"][:0]}
    assert draw("scales", empty).n == "Here no training recorded its scales."
