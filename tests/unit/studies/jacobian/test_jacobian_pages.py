"""The norms' backward pass in tables: what they show, and what they refuse."""

from typing import Any

import pandas as pd
from jacobian_recipes import LAYERS, cell, frame, layer
from page_recipes import config, shown
from scipy import stats

from normscope.paper.section import declared_numbers, named
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
from normscope.studies.jacobian.tabulate import LAYER_KEYS, PARTS, by_layer

P, C = "published", "small"  # protocols
COSTS = [
    *VARIED,
    *"n failed diverged rate at_edge rate_exact at_edge_exact loss cosine mean low high".split(),
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
    """A row of costs.csv."""
    row = {k: v for k, v in cell(protocol=C, norm_backward="center_scale").items() if k in VARIED}
    row |= {"n": 6, "failed": 1, "diverged": 0, "mean": 0.5, "loss": 2.5, "cosine": 0.75}
    row |= {"rate": 0.01, "at_edge": True, "rate_exact": 0.003, "at_edge_exact": False}
    return row | {"low": 0.4, "high": 0.6} | changes


def costs(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COSTS)


HEAD = {"arm": "LayerNorm", "attention": "softmax", "feedback": "fa", "penalty": "0"}


def test_a_cost_is_of_a_whole_surrogate_with_what_failed():
    dose = cost(radial_share=0.5, mean=9.0)
    table = costs(cost(), dose, cost(protocol=P, mean=9.0), cost(sigma_penalty=0.1, mean=-0.25))
    one, held = shown(cost_table(table, C))
    assert one == HEAD | {
        "surrogate": "center_scale",
        "in": "all",
        "n": "6",
        "failed": "1",
        "rate": "0.01 (at the edge)",
        "exact rate": "0.003",
        "cost": "+0.500",
        "interval": "[+0.400, +0.600]",
        "loss": "2.500",
        "cos of all parameters": "0.750",
    }
    assert (held["penalty"], held["cost"]) == ("0.1", "−0.250")


def slopes(*seeds: tuple[str, list[float]], protocol: str = C) -> pd.DataFrame:
    """Of places, one a seed."""
    setting = {k: v for k, v in cell(protocol=protocol).items() if k in SETTING}
    rows = [
        setting | {"surrogates_in": place, "seed": seed, "slope": slope, "failed": 0}
        for place, values in seeds
        for seed, slope in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=[*SETTING, "surrogates_in", "seed", "slope", "failed"])


def test_a_dose_has_its_costs_by_share_and_the_slope_over_seeds():
    table = costs(
        *(cost(radial_share=x, mean=x / 2) for x in (1.0, 0.25)),
        cost(surrogates_in="final", radial_share=0.25, mean=0.75),
        cost(norm_backward="projected", mean=9.0),
    )
    lines = slopes(("all", [0.2, 0.4, 0.6]), ("final", [0.5]))
    one, other = shown(dose_table(table, lines, C, 0.9))
    low, high = stats.t.interval(0.9, 2, 0.4, stats.sem([0.2, 0.4, 0.6]))
    assert one == HEAD | {
        "in": "all",
        "share 0.25": "+0.125",
        "share 1": "+0.500",
        "n": "3",
        "slope": "+0.400",
        "interval": f"[{low:+.3f}, {high:+.3f}]",
    }
    assert [other[k] for k in ("in", "share 0.25", "share 1", "slope", "interval")] == (
        ["final", "+0.750", "–", "+0.500", "–"]
    )


def parts(*means: float, protocol: str = C) -> pd.DataFrame:
    setting = {k: v for k, v in cell(protocol=protocol).items() if k in SETTING}
    rows = [
        setting
        | {"norm_backward": "center_scale", "measure": part, "n": 6, "mean": mean}
        | {"low": mean - 0.125, "high": mean + 0.125}
        for part, mean in zip(PARTS, means, strict=False)
    ]
    columns = [*SETTING, "norm_backward", "measure", "n", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def test_the_parts_of_a_cost_stand_beside_each_other():
    table = pd.concat([parts(0, 0.25, 0.5, 0.25), parts(9, 9, 9, 9, protocol=P)])
    (row,) = shown(part_table(table, C))
    assert row == HEAD | {
        "surrogate": "center_scale",
        "n": "6",
        "blocks": "+0.000 [−0.125, +0.125]",
        "final": "+0.250 [+0.125, +0.375]",
        "all": "+0.500 [+0.375, +0.625]",
        "interaction": "+0.250 [+0.125, +0.375]",
    }


def handed_over(layers: pd.DataFrame, by_cell: pd.DataFrame, of_costs: pd.DataFrame):
    whole = config()
    tables = {"layers": layers, "layers_by_cell": by_cell, "costs": of_costs}
    tables |= {"slopes": slopes(), "parts": parts()}
    return section(whole.jacobian, tables, whole.settings)


def test_a_section_shows_layers_as_published_and_costs_as_corrected():
    rows = [norm("corrected", NOW), norm("corrected", {"r_mean": 0.5}, protocol=C)]
    whole = frame(rows, LAYERS)
    of_costs = costs(cost(), cost(protocol=P, arm="rmsnorm"))
    part = handed_over(whole, by_layer(whole, 0.95), of_costs)
    assert list(part.tables) == ["formulas", "layers", "costs", "doses", "parts"]
    assert [r["r_mean x d"] for r in shown(part.tables["layers"])] == ["2.00", "–"]
    assert [r["arm"] for r in shown(part.tables["costs"])] == ["LayerNorm"]
    assert part.words["has_norms"] is True
    numbers = named(declared_numbers(TABLES["costs"], of_costs))
    assert str(numbers["small layernorm softmax fa 0.0 center_scale all 1.0 cost"]) == "+0.500"
    assert part.words["published"] == (
        "blocks: 4, heads: 4, width 128, context 64, placement pre, causal: True, head: not tied; "
        "fp32, steps: 250, windows a step: 32, learning rate 0.001"
    )
    assert part.words["corrected"].startswith("blocks: 2, heads: 4, width 64, context 32")


def test_a_section_of_no_norm_and_no_surrogate_has_tables_without_rows():
    none = pd.DataFrame([], columns=LAYERS)
    part = handed_over(none, pd.DataFrame([], columns=BY_LAYER), costs())
    assert [len(part.tables[name].rows) for name in list(part.tables)[1:]] == [0] * 4
    assert part.words["has_norms"] is False
