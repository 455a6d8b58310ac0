"""The norms' backward pass in tables: what they show, and what they refuse."""

import math
from typing import Any

import pandas as pd
import pytest
from jacobian_recipes import LAYERS, cell, frame, layer
from page_recipes import config, shown

from normscope.paper.section import named
from normscope.paper.table import PageTable
from normscope.studies.jacobian.pages import (
    AVERAGE,
    cost_table,
    formula_table,
    layer_table,
    prediction_table,
    section,
)
from normscope.studies.jacobian.tables import ANY, LAYER_KEYS, PREDICTORS, VARIED, by_layer

NAN = math.nan
P, C = "published", "small"  # protocols
COSTS = [
    *VARIED,
    *"n diverged alpha margin loss unigram mean low high joint_low joint_high".split(),
]
BY_LAYER = [*LAYER_KEYS, "measure", "n", "mean", "low", "high"]
WAS = {"r_mean": 0.01, "r_radial": 0.02, "sigma_mean": 0.25}
WAS |= {"cos_center_scale": 0.75, "cos_straight_through": 0.5}
NOW = {"r_mean": 0.125, "r_radial": 0.25, "cos_center_scale": 0.875}
NOW |= {"cos_straight_through": 0.625, "error_center_scale": 0.3, "error_projected": 0.9}
NOW |= {"error_straight_through": 0.95, "alignment": 0.0625, "sigma_mean": 7.0}


def measured(*rows: dict[str, Any]) -> pd.DataFrame:
    """layers_by_cell.csv of rows of layers.csv."""
    return by_layer(frame(list(rows), LAYERS), 0.95)


def norm(variant: str, measures: dict[str, float], seed: int = 0, **changes: Any) -> dict[str, Any]:
    """A row of layers.csv."""
    changes = {"protocol": P, "d": 16} | changes
    name = changes.pop("layer", "final_norm")
    return layer(seed, name, measures, variant=variant, **changes)


def lines(table: pd.DataFrame, protocol: str = P) -> list[dict[str, str]]:
    """The lines of layers, without those of averages."""
    return [row for row in shown(layer_table(table, protocol)) if row["layer"] != AVERAGE]


def test_a_layer_has_the_published_numbers_beside_the_corrected_ones_times_d():
    assert lines(measured(norm("corrected", NOW), norm("published", WAS))) == [
        {
            "attention": "softmax",
            "feedback": "fa",
            "layer": "final_norm",
            "r_mean, published": "0.0100",
            "r_radial, published": "0.0200",
            "sigma, published": "0.2500",
            "cos center, published": "0.7500",
            "cos STE, published": "0.5000",
            "r_mean x d": "2.00",
            "r_radial x d": "4.00",
            "cos center": "0.875",
            "cos STE": "0.625",
            "error center": "0.300",
            "error projected": "0.900",
            "error STE": "0.950",
            "cos to backprop": "0.062",
        }
    ]


def test_layers_are_means_over_models_of_one_protocol_and_their_own_signal():
    rows = [norm("corrected", {"r_mean": x}, seed) for seed, x in enumerate((0.1, 0.2, 0.6))]
    rows += [
        norm("corrected", {"r_mean": 0.5}, protocol=C),
        norm("corrected", {"r_mean": 0.5}, signal="backprop", layer="blocks.0.mlp.before"),
    ]
    (line,) = lines(measured(*rows))
    assert line.pop("r_mean x d") == "4.80"
    assert {v for k, v in line.items() if k not in ("attention", "feedback", "layer")} == {"–"}
    assert [r["r_mean x d"] for r in lines(measured(*rows), C)] == ["8.00"]


def test_arms_are_named_where_they_are_several_and_settings_always():
    settings = [(a, f) for a in ("softmax", "sigmoid") for f in ("fa", "dfa", "backprop")]
    rows = [
        norm("corrected", {"r_mean": i / 16}, attention=a, feedback=f)
        for i, (a, f) in enumerate(settings)
    ]
    table = lines(measured(*rows))
    assert [(r["attention"], r["feedback"]) for r in table] == settings
    assert [r["r_mean x d"] for r in table] == [f"{i}.00" for i in range(6)]
    assert "arm" not in table[0]
    other = norm("corrected", {"r_mean": 0.5}, arm="rmsnorm_plain")
    named_ = lines(measured(rows[0], other))
    assert [r["arm"] for r in named_] == ["LayerNorm", "RMSNorm, no gain"]


def test_averages_are_of_all_norms_as_published_and_of_block_norms_corrected():
    rows = []
    for i, name in enumerate(("blocks.0.mlp.before", "blocks.1.mlp.before", "final_norm")):
        rows += [norm("published", {"r_mean": (0.1, 0.2, 0.9)[i]}, layer=name, index=i)]
        rows += [norm("corrected", {"r_mean": (0.1, 0.3, 0.9)[i]}, layer=name, index=i)]
    sigmoid = [r | {"attention": "sigmoid"} for r in rows]
    table = shown(layer_table(measured(*rows, *sigmoid), P))
    assert [i for i, row in enumerate(table) if row["layer"] == AVERAGE] == [3, 7]
    # (0.1 + 0.2 + 0.9)/3, and 16 times (0.1 + 0.3)/2
    assert (table[3]["r_mean, published"], table[3]["r_mean x d"]) == ("0.4000", "3.20")


def cost(**changes: Any) -> dict[str, Any]:
    """A cost above the margin, of 6 seeds, the only comparison of its protocol."""
    row = {k: v for k, v in cell(protocol=C, norm_backward="center_scale").items() if k in VARIED}
    row |= {"n": 6, "diverged": 0, "alpha": 0.05, "margin": 0.1, "mean": 0.5}
    row |= {"loss": 2.5, "unigram": 9.0}
    return row | {"low": 0.4, "high": 0.6, "joint_low": 0.3, "joint_high": 0.7} | changes


def costs(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COSTS)


def test_a_cost_stands_beside_its_intervals_and_the_spread_of_exact_models():
    lost = dict.fromkeys(("low", "high", "joint_low", "joint_high", "margin", "mean", "loss"), NAN)
    table = costs(cost(), cost(protocol=P, mean=9.0), cost(arm="rmsnorm", n=0, diverged=6, **lost))
    one, other = shown(cost_table(table, C))
    assert one == {
        "arm": "LayerNorm",
        "attention": "softmax",
        "feedback": "fa",
        "surrogate": "center_scale",
        "in": "all",
        "n": "6",
        "cost": "+0.500",
        "interval": "[+0.400, +0.600]",
        "joint interval": "[+0.300, +0.700]",
        "margin": "0.100",
        "loss": "2.500",
        "reads": "costs more than the margin",
    }
    assert (other["arm"], other["n"]) == ("RMSNorm", "0, 6 diverged")
    assert {other[k] for k in ("cost", "interval", "joint interval", "margin", "loss")} == {"–"}


BETTER = {"mean": -0.5, "low": -0.6, "high": -0.4, "joint_low": -0.7}
BETWEEN = {"joint_low": -0.05, "joint_high": 0.05}
ALONE = dict.fromkeys(("low", "high", "joint_low", "joint_high", "margin"), NAN)
LOST = ALONE | {"mean": NAN, "loss": NAN}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({}, "costs more than the margin"),
        ({"joint_low": 0.101}, "costs more than the margin"),
        ({"joint_low": 0.099}, "not told apart from the margin"),
        (BETWEEN, "within the margin"),
        ({**BETTER, "joint_high": -0.101}, "better by more than the margin"),
        ({**BETTER, "joint_high": -0.099}, "not told apart from the margin"),
        ({**BETWEEN, "joint_low": -0.101}, "not told apart from the margin"),
        ({**BETWEEN, "joint_high": 0.101}, "not told apart from the margin"),
        # by its own interval it would cost more
        ({"joint_low": 0.05, "low": 0.2}, "not told apart from the margin"),
        # 2^(1 - n) <= alpha: 6 seeds for 5%, 7 for 1 in 60, 10 for 5% over 16 comparisons
        ({"n": 5}, "5 seeds, 6 needed"),
        ({"n": 1, **ALONE}, "1 seed, 6 needed"),
        ({"n": 6, "alpha": 1 / 60}, "6 seeds, 7 needed"),
        ({"n": 7, "alpha": 1 / 60}, "costs more than the margin"),
        ({"n": 9, "alpha": 0.05 / 16}, "9 seeds, 10 needed"),
        ({"n": 10, "alpha": 0.05 / 16, **BETWEEN}, "within the margin"),
        ({"n": 12, "diverged": 1}, "1 diverged: no claim"),
        ({"n": 0, "diverged": 3, **LOST}, "3 diverged: no claim"),
        # the margin is 0.1
        ({"loss": 8.89}, "costs more than the margin"),
        ({"loss": 8.91}, "no better than character frequencies, 9.000"),
        ({"loss": 3.25, "unigram": 3.3125}, "no better than character frequencies, 3.312"),
        ({"loss": 8.91, **BETWEEN}, "no better than character frequencies, 9.000"),
        ({"loss": 8.91, "n": 5}, "no better than character frequencies, 9.000"),
        ({"loss": 8.91, "diverged": 1}, "1 diverged: no claim"),
        ({"loss": 8.99, "n": 1, **ALONE}, "1 seed, 6 needed"),
        ({"loss": 9.01, "n": 1, **ALONE}, "no better than character frequencies, 9.000"),
    ],
)
def test_what_a_cost_reads(changes, reads):
    (row,) = shown(cost_table(costs(cost(**changes)), C))
    assert row["reads"] == reads


def prediction(
    predictor: str, kind: tuple[str, str], rho: float, n: int, protocol: str = C
) -> dict[str, Any]:
    rule, place = kind
    keys = {"protocol": protocol, "norm_backward": rule, "surrogates_in": place}
    return keys | {"predictor": predictor, "n": n, "seeds": 6, "diverged": 0, "rho": rho}


def predictions() -> pd.DataFrame:
    kinds = [
        ("center_scale", "all", 0.5, 4),
        ("projected", "blocks", -1.0, 5),
        (ANY, ANY, 0.125, 9),
    ]
    rows = [
        prediction(p, (rule, place), rho, n) for rule, place, rho, n in kinds for p in PREDICTORS
    ]
    rows += [prediction(p, ("straight_through", "all"), 1.0, 3, P) for p in PREDICTORS]
    table = pd.DataFrame(rows)
    lost = (table["predictor"] == "error_final") & (table["norm_backward"] == "projected")
    table.loc[lost, "rho"] = NAN
    return table


def test_predictions_are_a_row_a_predictor_and_a_column_a_surrogate_and_place():
    table = prediction_table(predictions(), C)
    assert table.columns == ("predictor", "center_scale, all", "projected, blocks", "all cells")
    assert table.cells(0) == tuple(PREDICTORS.values())
    assert set(table.cells(1)) == {"0.50 (n 4)"}
    lost = list(PREDICTORS).index("error_final")
    assert table.cells(2)[lost] == "–"
    assert {*table.cells(2)[:lost], *table.cells(2)[lost + 1 :]} == {"−1.00 (n 5)"}
    assert set(table.cells(3)) == {"0.12 (n 9)"}


def handed_over(layers: pd.DataFrame, by_cell: pd.DataFrame, of_costs: pd.DataFrame):
    whole = config()
    tables = {"layers": layers, "layers_by_cell": by_cell, "costs": of_costs}
    return section(whole.jacobian, tables | {"predictions": predictions()}, whole.settings)


def test_a_section_shows_layers_as_published_and_costs_as_corrected():
    rows = [norm("corrected", NOW), norm("corrected", {"r_mean": 0.5}, protocol=C)]
    whole = frame(rows, LAYERS)
    of_costs = costs(cost(), cost(protocol=P, arm="rmsnorm"))
    part = handed_over(whole, by_layer(whole, 0.95), of_costs)
    assert list(part.tables) == ["formulas", "layers", "costs", "predictions"]
    assert [r["r_mean x d"] for r in shown(part.tables["layers"])] == ["2.00", "–"]
    assert [r["arm"] for r in shown(part.tables["costs"])] == ["LayerNorm"]
    assert part.words["has_norms"] is True
    assert named(part.numbers)["small layernorm softmax fa center_scale all cost"] == "0.500"
    assert part.words["published"] == (
        "blocks: 4, heads: 4, width 128, context 64, placement pre, causal: True, head: not tied; "
        "fp32, steps: 250, windows a step: 32, learning rate 0.001"
    )
    assert part.words["corrected"].startswith("blocks: 2, heads: 4, width 64, context 32")


def test_a_section_of_no_norm_and_no_surrogate_has_tables_without_rows():
    none = pd.DataFrame([], columns=LAYERS)
    part = handed_over(none, pd.DataFrame([], columns=BY_LAYER), costs())
    assert [len(part.tables[name].rows) for name in ("layers", "costs")] == [0, 0]
    assert part.words["has_norms"] is False


def test_the_formulas_are_those_of_four_passes():
    table: PageTable = formula_table()
    assert table.cells(0) == ("exact", "center_scale", "projected", "straight_through")
