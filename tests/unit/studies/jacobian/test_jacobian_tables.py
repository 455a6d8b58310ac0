"""From models to cells, costs, slopes and parts: against scipy and by hand."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jacobian_recipes import (
    CEILING,
    GRADIENTS,
    LAYERS,
    cell,
    frame,
    gradient,
    layer,
    loss_rows,
    model,
)
from recall_recipes import by
from scipy import stats

from normscope.measure.names import SURROGATES
from normscope.studies.jacobian.tables import TABLES
from normscope.studies.jacobian.tabulate import (
    PARTS,
    at_chosen_rate,
    by_layer,
    choose_rates,
    costs,
    parts,
    sigma,
    slopes,
    surrogates,
)

NO_GRADIENTS = frame([], GRADIENTS)


def at_rates(losses: Mapping[float, Sequence[float | None]], **changes: Any) -> pd.DataFrame:
    """``chosen`` of a cell, from the losses of seeds 0, 1, ... at each rate."""
    rows = [
        model(seed, loss, learning_rate=rate, **changes)
        for rate, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]
    return choose_rates(frame(rows))


def surrogates_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return surrogates(choose_rates(frame(rows)), NO_GRADIENTS)


def test_every_backward_pass_has_a_rate_chosen_for_it():
    rows = [
        *loss_rows({"exact": [1.0, 1.0], "projected": [3.0, 3.0]}, learning_rate=0.1),
        *loss_rows({"exact": [2.0, 2.0], "projected": [2.5, 2.0]}, learning_rate=0.01),
    ]
    choices = by(choose_rates(frame(rows)), "norm_backward", "seed")
    rates = {rule: row["learning_rate"] for (rule, _), row in choices.items()}
    assert rates == {"exact": 0.1, "projected": 0.01}
    costs_ = by(surrogates_of(rows), "seed")
    assert [costs_[seed]["cost"] for seed in (0, 1)] == [1.5, 1.0]


EXACT = [1.0, 1.3, 1.1, 1.5]
PICKED = [
    *loss_rows(
        {
            "exact": EXACT,
            "center_scale": [1.1, 1.5, 1.15, 1.75],
            "projected": [1.0, 1.4, None, 1.4],
        }
    ),
    *loss_rows({"exact": [2.0, None], "center_scale": [2.25, 2.5]}, feedback="backprop"),
    *loss_rows({"exact": [3.0, 3.1], "center_scale": [3.4, 3.3]}, sigma_penalty=0.1),
]


def test_a_cost_is_the_mean_difference_from_the_exact_twin_of_the_same_seed():
    by_cell = by(costs(surrogates_of(PICKED), 0.9), "feedback", "sigma_penalty", "norm_backward")
    row = by_cell["fa", 0.0, "center_scale"]
    expected = stats.ttest_rel([1.1, 1.5, 1.15, 1.75], EXACT).confidence_interval(0.9)
    assert (row["n"], row["failed"], row["diverged"]) == (4, 0, 0)
    assert row["mean"] == pytest.approx(np.mean([0.1, 0.2, 0.05, 0.25]))
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    assert row["loss"] == pytest.approx(1.375)
    # each with a twin of the same penalty; losses of 3.3 and more are no better than frequencies
    row = by_cell["fa", 0.1, "center_scale"]
    assert (row["mean"], row["failed"]) == (pytest.approx(0.3), 2)
    # a run that diverged is an outcome, also of the exact twin
    row = by_cell["fa", 0.0, "projected"]
    assert (row["n"], row["failed"], row["diverged"]) == (4, 1, 1)
    assert row["mean"] == pytest.approx(np.mean([0.0, 0.1, CEILING - 1.1, -0.1]))
    row = by_cell["backprop", 0.0, "center_scale"]
    assert (row["n"], row["failed"]) == (2, 1)
    assert row["mean"] == pytest.approx(np.mean([0.25, 2.5 - CEILING]))


def test_a_slope_is_that_of_a_line_through_the_costs_of_a_seed_from_none_left_in():
    shares = {0.25: [1.1, 1.0], 0.5: [1.1, 1.2], 1.0: [1.5, 1.2]}
    rows = {f"center_scale all {share}": losses for share, losses in shares.items()}
    others = {"center_scale blocks": [2.0, 2.0], "projected": [2, 2]}
    table = slopes(surrogates_of(loss_rows({"exact": [1.0, 1.1], **rows, **others})))
    assert table["surrogates_in"].tolist() == ["all"] * 2 + ["blocks"] * 2
    by_seed = by(table, "surrogates_in", "seed")
    for seed, exact in enumerate((1.0, 1.1)):
        of_seed = [exact, *(losses[seed] for losses in shares.values())]
        line = stats.linregress([0.0, *shares], of_seed)
        assert by_seed["all", seed]["slope"] == pytest.approx(line.slope)
        assert by_seed["blocks", seed]["slope"] == pytest.approx(2.0 - exact)  # two points


def test_what_the_parts_leave_over_is_taken_seed_by_seed():
    losses = {"center_scale blocks": [1.1, 2.0], "center_scale final": [1.5, 2.6]}
    rows = loss_rows(
        {"exact": [1.0, 2.0], **losses, "center_scale": [1.8, 2.9], "projected": [2, 3]}
    )
    table = parts(surrogates_of(rows), 0.9)
    by_part = by(table, "measure")
    assert table["norm_backward"].unique().tolist() == ["center_scale"]
    assert tuple(by_part) == PARTS
    means = [by_part[part]["mean"] for part in PARTS]
    assert means == pytest.approx([0.05, 0.55, 0.85, 0.25])  # 0.8 - 0.1 - 0.5 and 0.9 - 0 - 0.6
    low, high = stats.t.interval(0.9, 1, 0.25, stats.sem([0.2, 0.3]))
    assert (by_part["interaction"]["n"], by_part["interaction"]["low"]) == (2, pytest.approx(low))
    assert high == pytest.approx(by_part["interaction"]["high"])


def test_sigma_is_a_geometric_mean_at_the_rates_that_were_chosen():
    rows = [
        cell(learning_rate=rate) | {"seed": seed, "step": step, "sigma": rate * 4.0**seed * step}
        for rate, seed, step in itertools.product((0.1, 0.01), (0, 1), (10, 20))
    ]
    models = at_rates({0.1: [2.0, 2.0], 0.01: [1.0, 1.0]})
    by_step = by(sigma(pd.DataFrame(rows), models, 0.95), "step")
    assert {step: row["mean"] for step, row in by_step.items()} == pytest.approx({10: 0.2, 20: 0.4})


@pytest.mark.parametrize("name", [*SURROGATES, "projected blocks", "projected final"])
def test_the_cosine_is_that_of_the_surrogate_in_its_exact_twin(name: str):
    rule, place = [*name.split(), "all"][:2]
    rows = loss_rows({"exact": [1.0, 1.0], name: [1.5, 1.25]})
    gradients = [gradient(seed, 0.6 + 0.1 * seed, rule, place) for seed in (0, 1)]
    # none of these is of this gradient, at this rate, or in these norms
    gradients += [gradient(1, 0.1, rule, place, signal="backprop")]
    gradients += [gradient(1, 0.1, rule, place, learning_rate=0.5)]
    gradients += [gradient(1, 0.1, rule, "blocks" if place != "blocks" else "all")]
    table = surrogates(choose_rates(frame(rows)), frame(gradients, GRADIENTS))
    assert by(table, "seed")[1]["cosine_parameters"] == pytest.approx(0.7)


def test_a_layer_has_one_row_per_cell_and_measure_that_some_model_has():
    rows = [layer(s, "final_norm", {"r_mean": x}) for s, x in enumerate((0.2, 0.5, 0.3))]
    rows += [layer(3, "final_norm", {})]
    rows += [layer(s, "final_norm", {"r_mean": 9.0}, variant="published") for s in (0, 1)]
    rows += [layer(0, "blocks.0.mlp.before", {"r_mean": 7.0, "r_radial": math.inf})]
    estimates = by_layer(frame(rows, LAYERS), 0.8)
    assert list(estimates.columns) == TABLES["layers_by_cell"].names
    columns = ["layer", "variant", "measure", "n", "mean"]
    assert estimates[columns].values.tolist() == [
        ["final_norm", "corrected", "r_mean", 3, pytest.approx(0.03 ** (1 / 3))],
        ["final_norm", "published", "r_mean", 2, pytest.approx(9.0)],
        ["blocks.0.mlp.before", "corrected", "r_mean", 1, pytest.approx(7.0)],
    ]


def test_layers_are_those_of_exact_models_at_the_rates_chosen_for_them():
    """A rate of 0.01 is chosen for seed 0, and 0.1 for seeds 1 and 2."""
    layers = [
        layer(seed, "final_norm", {"r_mean": seed + rate}, learning_rate=rate)
        for seed, rate in itertools.product(range(3), (0.1, 0.01))
    ]
    rows = frame(layers, LAYERS)
    losses = {0.1: [1.0, 3.0, 3.0], 0.01: [2.0, 2.2, 2.1]}
    kept = at_chosen_rate(rows, at_rates(losses))
    assert list(kept.columns) == list(rows.columns)
    assert dict(zip(kept["seed"], kept["learning_rate"], strict=True)) == {0: 0.01, 1: 0.1, 2: 0.1}
    assert kept["r_mean"].tolist() == pytest.approx([0.01, 1.1, 2.1])
    (row,) = by_layer(kept, 0.95).to_dict("records")  # whatever the rates of its models
    assert (row["measure"], row["n"]) == ("r_mean", 3)
    assert at_chosen_rate(rows, at_rates(losses, norm_backward="projected")).empty
