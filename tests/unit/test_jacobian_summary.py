"""The norms' backward pass in tables: what they show, and what they refuse."""

import math
from typing import Any

import pandas as pd
import pytest
from jacobian_evidence import (
    PREDICTIONS,
    C,
    P,
    prediction,
)
from jacobian_recipes import LAYERS, cell, frame, layer

from normscope.studies.jacobian.pages import AVERAGE, cost_table, layer_table, prediction_table
from normscope.studies.jacobian.tables import ANY, LAYER_KEYS, PREDICTORS, VARIED, by_layer

NAN = math.nan
OF_COSTS = "n diverged alpha margin loss unigram mean low high joint_low joint_high"
COSTS = [*VARIED, *OF_COSTS.split()]
BY_LAYER = [*LAYER_KEYS, "measure", "n", "mean", "low", "high"]


def measured(*rows: dict[str, Any]) -> pd.DataFrame:
    """layers_by_cell.csv of rows of layers.csv."""
    return by_layer(frame(list(rows), LAYERS), 0.95)


def layers_of(table: pd.DataFrame, protocol: str = P) -> pd.DataFrame:
    """The lines of layers, without those of averages."""
    found = layer_table(table, protocol)
    return found[found["layer"] != AVERAGE]


WAS = {"r_mean": 0.01, "r_radial": 0.02, "sigma_mean": 0.25}
WAS |= {"cos_center_scale": 0.75, "cos_straight_through": 0.5}
NOW = {"r_mean": 0.125, "r_radial": 0.25, "cos_center_scale": 0.875}
NOW |= {"cos_straight_through": 0.625, "error_center_scale": 0.3, "error_projected": 0.9}
NOW |= {"error_straight_through": 0.95, "alignment": 0.0625, "sigma_mean": 7.0}


def of(variant: str, measures: dict[str, float], seed: int = 0, **changes: Any) -> dict[str, Any]:
    changes = {"protocol": P, "d": 16} | changes
    name = changes.pop("layer", "final_norm")
    return layer(seed, name, measures, variant=variant, **changes)


def test_a_layer_has_the_published_numbers_beside_the_corrected_ones_times_d():
    found = layers_of(measured(of("corrected", NOW), of("published", WAS)))
    assert found.to_dict("records") == [
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


def test_layers_are_means_over_models():
    rows = [of("corrected", {"r_mean": x}, seed) for seed, x in enumerate((0.1, 0.2, 0.6))]
    assert layers_of(measured(*rows))["r_mean x d"].tolist() == ["4.80"]


def test_layers_of_another_protocol_or_signal_are_not_shown():
    rows = [
        of("corrected", NOW),
        of("corrected", {"r_mean": 0.5}, protocol=C),
        of("corrected", {"r_mean": 0.5}, signal="backprop", layer="blocks.0.mlp.before"),
    ]
    found = layers_of(measured(*rows))
    assert found["r_mean x d"].tolist() == ["2.00"]
    assert layers_of(measured(*rows), C)["r_mean x d"].tolist() == ["8.00"]


def test_a_layer_that_the_script_has_no_numbers_of_has_dashes():
    found = layers_of(measured(of("corrected", {"cos_straight_through": 0.5})))
    (row,) = found.to_dict("records")
    assert row.pop("cos STE") == "0.500"
    assert {v for k, v in row.items() if k not in ("attention", "feedback", "layer")} == {"–"}


def test_where_arms_are_several_they_are_named():
    rows = [of("corrected", NOW), of("published", WAS)]
    other = of("corrected", {"r_mean": 0.5}, arm="rmsnorm_plain")
    found = layers_of(measured(*rows, other))
    assert found["arm"].tolist() == ["LayerNorm", "RMSNorm, no gain"]
    assert found["r_mean x d"].tolist() == ["2.00", "8.00"]
    assert "arm" not in layers_of(measured(*rows))


def test_every_kind_of_feedback_and_attention_has_its_rows():
    settings = [(a, f) for a in ("softmax", "sigmoid") for f in ("fa", "dfa", "backprop")]
    rows = [
        of("corrected", {"r_mean": i / 16}, attention=a, feedback=f)
        for i, (a, f) in enumerate(settings)
    ]
    found = layers_of(measured(*rows))
    assert list(zip(found["attention"], found["feedback"], strict=True)) == settings
    assert found["r_mean x d"].tolist() == [f"{i}.00" for i in range(6)]


def test_averages_are_of_all_norms_as_published_and_of_block_norms_corrected():
    rows = []
    for i, name in enumerate(("blocks.0.mlp.before", "blocks.1.mlp.before", "final_norm")):
        rows += [of("published", {"r_mean": (0.1, 0.2, 0.9)[i]}, layer=name, index=i)]
        rows += [of("corrected", {"r_mean": (0.1, 0.3, 0.9)[i]}, layer=name, index=i)]
    found = layer_table(measured(*rows), P)
    assert found["layer"].tolist()[-1] == AVERAGE
    assert found["layer"].tolist().count(AVERAGE) == 1
    row = found.iloc[-1]
    assert (row["r_mean, published"], row["r_mean x d"]) == ("0.4000", "3.20")
    sigmoid = [r | {"attention": "sigmoid"} for r in rows]
    both = layer_table(measured(*rows, *sigmoid), P)
    assert [i for i, name in enumerate(both["layer"]) if name == AVERAGE] == [3, 7]


def cost(**changes: Any) -> dict[str, Any]:
    """A cost above the margin, of 6 seeds, the only comparison of its protocol."""
    row = {k: v for k, v in cell(protocol=C, norm_backward="center_scale").items() if k in VARIED}
    row |= {"n": 6, "diverged": 0, "alpha": 0.05, "margin": 0.1, "mean": 0.5}
    row |= {"loss": 2.5, "unigram": 9.0}
    return row | {"low": 0.4, "high": 0.6, "joint_low": 0.3, "joint_high": 0.7} | changes


def costs(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COSTS)


def test_a_cost_stands_beside_its_intervals_and_the_spread_of_exact_models():
    assert cost_table(costs(cost()), C).to_dict("records") == [
        {
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
    ]


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
    (row,) = cost_table(costs(cost(**changes)), C).to_dict("records")
    assert row["reads"] == reads


def test_diverged_models_are_counted_and_leave_dashes():
    rows = [cost(n=4, diverged=2), cost(n=0, diverged=6, **LOST)]
    found = cost_table(costs(*rows), C)
    assert found["n"].tolist() == ["4, 2 diverged", "0, 6 diverged"]
    assert found["cost"].tolist() == ["+0.500", "–"]
    dashes = found.iloc[1][["cost", "interval", "joint interval", "margin", "loss"]]
    assert set(dashes) == {"–"}


def test_costs_have_the_rows_of_one_protocol_with_all_settings():
    rows = [
        cost(arm="rmsnorm", feedback="dfa", mean=0.25),
        cost(protocol=P, mean=9.0),
        cost(attention="sigmoid", norm_backward="straight_through", surrogates_in="final", mean=1),
    ]
    found = cost_table(costs(*rows), C)
    keys = ["arm", "attention", "feedback", "surrogate", "in", "cost"]
    assert found[keys].to_numpy().tolist() == [
        ["RMSNorm", "softmax", "dfa", "center_scale", "all", "+0.250"],
        ["LayerNorm", "sigmoid", "fa", "straight_through", "final", "+1.000"],
    ]
    assert cost_table(costs(*rows)[:0], C).empty


def correlations(*kinds: tuple[str, str], **changes: Any) -> pd.DataFrame:
    rows = [
        prediction(norm_backward=rule, surrogates_in=place, predictor=name, **changes)
        for rule, place in kinds
        for name in PREDICTORS
    ]
    return pd.DataFrame(rows, columns=PREDICTIONS)


def test_predictions_are_a_row_a_predictor_and_a_column_a_surrogate_and_place():
    table = pd.concat(
        [
            correlations(("center_scale", "all"), rho=0.5, n=4),
            correlations(("projected", "blocks"), rho=-1.0, n=5),
            correlations((ANY, ANY), rho=0.125, n=9),
            correlations(("straight_through", "all"), protocol=P),
        ]
    )
    lost = (table["predictor"] == "error_final") & (table["norm_backward"] == "projected")
    table.loc[lost, "rho"] = NAN
    found = prediction_table(table, C).set_index("predictor")
    assert list(found.index) == list(PREDICTORS.values())
    assert list(found.columns) == ["center_scale, all", "projected, blocks", "all cells"]
    assert set(found["center_scale, all"]) == {"0.50 (n 4)"}
    without = found["projected, blocks"].drop(PREDICTORS["error_final"])
    assert set(without) == {"−1.00 (n 5)"}
    assert found.loc[PREDICTORS["error_final"], "projected, blocks"] == "–"
    assert set(found["all cells"]) == {"0.12 (n 9)"}
