"""The norms' backward pass in tables of the page: what they show."""

from typing import Any

import pandas as pd
from jacobian_recipes import LAYERS, cell, frame, layer
from page_recipes import config, shown
from scipy import stats

from normscope.studies.jacobian.pages import (
    AVERAGE,
    cost_table,
    dose_table,
    layer_table,
    part_table,
    section,
)
from normscope.studies.jacobian.recipe import SETTING, VARIED
from normscope.studies.jacobian.tables import TABLES
from normscope.studies.jacobian.tabulate import PARTS, by_layer

P, C = "published", "small"  # protocols
HEAD = {"arm": "LayerNorm", "attention": "softmax", "feedback": "fa", "penalty": "0"}
WAS = {"r_mean": 0.01, "r_radial": 0.02, "sigma_mean": 0.25}
WAS |= {"cos_center_scale": 0.75, "cos_straight_through": 0.5}
NOW = {"r_mean": 0.125, "r_radial": 0.25, "cos_center_scale": 0.875}
NOW |= {"cos_straight_through": 0.625, "error_center_scale": 0.3, "error_projected": 0.9}
NOW |= {"error_straight_through": 0.95, "alignment": 0.0625, "sigma_mean": 7.0}


def norm(variant: str, measures: dict[str, float], seed: int = 0, **changes: Any) -> dict[str, Any]:
    """A row of layers.csv."""
    changes = {"protocol": P, "d": 16} | changes
    name = changes.pop("layer", "final_norm")
    return layer(seed, name, measures, variant=variant, **changes)


def lines(*rows: dict[str, Any], protocol: str = P) -> list[dict[str, str]]:
    """The page's table of rows of layers.csv, without the lines of averages."""
    table = layer_table(by_layer(frame(list(rows), LAYERS), 0.95), protocol)
    return [row for row in shown(table) if row["layer"] != AVERAGE]


def test_a_layer_has_the_published_and_the_corrected_numbers_times_d():
    assert lines(norm("corrected", NOW), norm("published", WAS)) == [
        {
            **{"attention": "softmax", "feedback": "fa", "layer": "final_norm"},
            **{"r_mean, published": "0.0100", "r_radial, published": "0.0200"},
            **{"sigma, published": "0.2500", "cos center, published": "0.7500"},
            **{"cos STE, published": "0.5000", "r_mean x d": "2.00", "r_radial x d": "4.00"},
            **{"cos center": "0.875", "cos STE": "0.625", "error center": "0.300"},
            **{"error projected": "0.900", "error STE": "0.950", "cos to backprop": "0.062"},
        }
    ]


def test_layers_are_means_over_models_of_one_protocol_and_their_own_signal():
    rows = [norm("corrected", {"r_mean": x}, seed) for seed, x in enumerate((0.1, 0.2, 0.6))]
    rows += [
        norm("corrected", {"r_mean": 0.5}, protocol=C),
        norm("corrected", {"r_mean": 0.5}, signal="backprop", layer="blocks.0.mlp.before"),
    ]
    (line,) = lines(*rows)
    assert line.pop("r_mean x d") == "3.66"  # 16 times the geometric mean, 0.012^(1/3)
    assert {v for k, v in line.items() if k not in ("attention", "feedback", "layer")} == {"–"}
    assert [row["r_mean x d"] for row in lines(*rows, protocol=C)] == ["8.00"]
    assert "arm" not in line  # which is named only where there are several
    other = norm("corrected", {"r_mean": 0.5}, arm="rmsnorm_plain")
    assert [row["arm"] for row in lines(rows[0], other)] == ["LayerNorm", "RMSNorm, no gain"]


def test_averages_are_over_all_norms_as_published_and_over_block_norms_as_corrected():
    rows = []
    for i, name in enumerate(("blocks.0.mlp.before", "blocks.1.mlp.before", "final_norm")):
        rows += [norm("published", {"r_mean": (0.1, 0.2, 0.9)[i]}, layer=name, index=i)]
        rows += [norm("corrected", {"r_mean": (0.1, 0.3, 0.9)[i]}, layer=name, index=i)]
    rows += [row | {"attention": "sigmoid"} for row in rows]
    table = shown(layer_table(by_layer(frame(rows, LAYERS), 0.95), P))
    assert [i for i, row in enumerate(table) if row["layer"] == AVERAGE] == [3, 7]
    # (0.1 + 0.2 + 0.9)/3, and 16 times (0.1 + 0.3)/2
    assert (table[3]["r_mean, published"], table[3]["r_mean x d"]) == ("0.4000", "3.20")


def cost(**changes: Any) -> dict[str, Any]:
    """A row of costs.csv."""
    row = {k: v for k, v in cell(protocol=C, norm_backward="center_scale").items() if k in VARIED}
    row |= {"n": 6, "failed": 1, "diverged": 0, "mean": 0.5, "loss": 2.5, "cosine": 0.75}
    row |= {"rate": 0.01, "at_edge": True, "rate_exact": 0.003, "at_edge_exact": False}
    return row | {"low": 0.4, "high": 0.6} | changes


def setting(protocol: str = C) -> dict[str, Any]:
    return {key: value for key, value in cell(protocol=protocol).items() if key in SETTING}


def test_a_cost_is_that_of_a_whole_surrogate_with_the_models_that_failed():
    others = [cost(radial_share=0.5, mean=9.0), cost(protocol=P, mean=9.0)]
    table = pd.DataFrame([cost(), *others, cost(sigma_penalty=0.1, mean=-0.25)])
    one, held = shown(cost_table(table, C))
    assert one == HEAD | {
        **{"surrogate": "center_scale", "in": "all", "n": "6", "failed": "1"},
        **{"rate": "0.01 (at the edge)", "exact rate": "0.003"},
        **{"cost": "+0.500", "interval": "[+0.400, +0.600]"},
        **{"loss": "2.500", "cos of all parameters": "0.750"},
    }
    assert (held["penalty"], held["cost"]) == ("0.1", "−0.250")


def test_a_dose_has_its_costs_by_share_and_the_slope_over_seeds():
    costs = [
        *(cost(radial_share=x, mean=x / 2) for x in (1.0, 0.25)),
        cost(surrogates_in="final", radial_share=0.25, mean=0.75),
        cost(norm_backward="projected", mean=9.0),
    ]
    slopes = [
        setting() | {"surrogates_in": place, "seed": seed, "slope": slope}
        for place, values in (("all", [0.2, 0.4, 0.6]), ("final", [0.5]))
        for seed, slope in enumerate(values)
    ]
    one, other = shown(dose_table(pd.DataFrame(costs), pd.DataFrame(slopes), C, 0.9))
    low, high = stats.t.interval(0.9, 2, 0.4, stats.sem([0.2, 0.4, 0.6]))
    assert one == HEAD | {
        **{"in": "all", "share 0.25": "+0.125", "share 1": "+0.500"},
        **{"n": "3", "slope": "+0.400", "interval": f"[{low:+.3f}, {high:+.3f}]"},
    }
    assert [other[k] for k in ("in", "share 0.25", "share 1", "slope", "interval")] == (
        ["final", "+0.750", "–", "+0.500", "–"]
    )


def test_the_parts_of_a_cost_are_columns_of_one_row():
    rows = [
        setting(protocol) | {"norm_backward": "center_scale", "measure": part, "n": 6, **of_part}
        for protocol, mean in ((C, 0.25), (P, 9.0))
        for part in PARTS
        for of_part in [{"mean": mean, "low": mean - 0.125, "high": mean + 0.125}]
    ]
    (row,) = shown(part_table(pd.DataFrame(rows), C))
    estimates = dict.fromkeys(PARTS, "+0.250 [+0.125, +0.375]")
    assert row == HEAD | {"surrogate": "center_scale", "n": "6"} | estimates


def test_a_section_shows_layers_as_published_and_costs_as_corrected():
    whole = config()
    tables = {name: pd.DataFrame(columns=table.names) for name, table in TABLES.items()}
    empty = section(whole.jacobian, tables, whole.settings)
    assert list(empty.tables) == ["formulas", "layers", "costs", "doses", "parts"]
    assert [len(table.rows) for table in empty.tables.values()] == [4, 0, 0, 0, 0]
    assert empty.words["has_norms"] is False
    layers = [norm("corrected", NOW), norm("corrected", {"r_mean": 0.5}, protocol=C)]
    tables["layers"] = frame(layers, LAYERS)
    tables["layers_by_cell"] = by_layer(tables["layers"], 0.95)
    tables["costs"] = pd.DataFrame([cost(), cost(protocol=P, arm="rmsnorm")])
    part = section(whole.jacobian, tables, whole.settings)
    assert [row["r_mean x d"] for row in shown(part.tables["layers"])] == ["2.00", "–"]
    assert [row["arm"] for row in shown(part.tables["costs"])] == ["LayerNorm"]
    assert part.words["has_norms"] is True
    assert part.words["published"].startswith("blocks: 4, heads: 4, width 128, context 64")
    assert part.words["corrected"].startswith("blocks: 2, heads: 4, width 64, context 32")
