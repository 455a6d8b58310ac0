"""Every figure of the registry, drawn from planted tables: of two seeds, of one, of none."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from drawings import FIGURES, data, draw, labelled, points, ticks
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer
from planted_tables import ARMS, RULES, STEP, Case, drawn, tables_of

from normscope.nn.arms import ARMS as REGISTRY
from normscope.paper import style
from normscope.paper.hover import MEAN
from normscope.studies.arms import arm_look
from normscope.studies.folder import FOLDER
from normscope.studies.jacobian.figures import ATTENTION
from normscope.studies.pretrained.figures import NORMS
from normscope.studies.pretrained.measures import METRICS

LOST = (*ARMS, "measured")
# what a figure says if there is nothing to show
EMPTY = {
    "slice": "diverged",
    "decisive": "diverged",
    "jacobian": "all models diverged",
    "final_norm": "no model was measured",
    "blocks": "no model was measured",
    "sensitivity": "no model was measured",
    "textbook": "no token norm was measured",
}


def test_every_drawing_is_registered():
    paths = FOLDER.glob("*/figures/[!_]*.py")
    drawings = [(path.parts[-3], path.stem) for path in paths]
    assert sorted(drawings) == sorted((entry.study, name) for name, entry in FIGURES.items())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_titles_one_color_per_arm_and_the_same_bytes_again(name, tmp_path):
    colors = {arm.label: arm_look(key)["color"] for key, arm in REGISTRY.items()}
    figure = drawn(name)
    for axis in figure.axes:
        is_titled = axis.get_title() or axis.get_title(loc="left")
        assert is_titled or axis.get_label() == "<colorbar>"
        for line in axis.lines:
            assert line.get_color() == colors.get(str(line.get_label()), line.get_color())
    first, again = (f.save(tmp_path / f"{i}" / name) for i, f in enumerate((figure, drawn(name))))
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
    if study in ("main", "recall") or name in ("jacobian", "beside"):
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
    two = tables_of("rates")
    two["runs"] = two["runs"][two["runs"]["learning_rate"] != 0.01]
    figure = draw("rates", two, protocols=["nanogpt"])
    assert figure.n == "Here no arm has 3 learning rates."


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


FILLED = ("o", "s", "^", "D", "v", "<", "p")  # markers that are filled or open


@pytest.mark.parametrize("name", ["loss", "gain", "factors", "jacobian", "surrogates", "dose"])
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
    n = 25 if FIGURES[name].study == "pretrained" and name != "beside" else n
    assert re.search(rf"n = {n}\b", "\n".join(drawn(name).words))


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


def test_a_sweep_needs_three_rates_and_fills_the_best():
    figure = drawn("sweep")
    titles = [axis.get_title() for axis in figure.axes[:3]]
    assert titles == [f"recall, {x},\nn = 2" for x in ("radius sqrt(d)", "radius 1", "other norms")]
    marks = [x for x in figure.axes[0].lines if x.get_markerfacecolor() != "none"]
    filled = [data(x) for x in marks if len(data(x)[0]) == 1]
    # all rates have the same mean: the least
    assert filled == [([0.001], [pytest.approx(math.sqrt(0.1 * 0.2))])]
    tables = tables_of("sweep")
    two = tables["runs"].query("learning_rate < 0.005")
    alone = draw("sweep", {"runs": two})
    assert alone.n == "Here no arm has 3 learning rates."
    assert "no arm has 3 learning rates" in alone.words


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
    figure = drawn("beside", Case(lost=("manual_l2",)))
    trained, pretrained = figure.axes
    assert ticks(trained, "y") == [REGISTRY["layernorm"].label]
    dots = [data(x)[0] for x in trained.lines if x.get_marker() == "o"]
    assert dots == [[pytest.approx(1.1)]]
    assert ticks(pretrained, "y") == ["gpt2-xl", "ours"]
    assert "No norm" not in figure.words
    assert "Diverged, and in no mean: nanogpt Unit L2 seed 1 at step 7" in figure.n
