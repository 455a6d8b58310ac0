"""The norms' backward pass in the template of the summary."""

from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd
import pytest
from jacobian_evidence import (
    EMPTY,
    GRID,
    C,
    P,
    layers,
    models,
    picked,
)
from jacobian_recipes import LAYERS, frame
from test_jacobian_grid import grid
from test_jacobian_summary import BY_LAYER, COSTS, correlations, cost, costs, of
from test_recall_claims import cells, recall
from test_recall_summary import NO_BEST, NO_FACTORS

from normscope.jacobian.summary import cost_table, layer_table, section
from normscope.jacobian.tables import ANY, by_layer
from normscope.recall.summary import section as recall_section
from normscope.recipe import Model, Training
from normscope.tables import markdown

TEMPLATE = (Path(__file__).parents[2] / "workflow" / "report" / "summary.md").read_text()


def backward_part() -> str:
    _, _, after = TEMPLATE.partition("## The backward pass of a norm")
    part, _, _ = after.partition("## Residuals, depth and placement")
    assert len(part) > 1000
    return part


def tables(**changes: Any) -> dict[str, pd.DataFrame]:
    """What the section is of: every table with rows."""
    of_layers = layers()
    found = {
        "layers": of_layers,
        "layers_by_cell": by_layer(of_layers, 0.95),
        "chosen": picked(),
        "costs": costs(cost()),
        "expected": models({"softmax fa center_scale all": [0.5] * 6}),
        "predictions": correlations(("center_scale", "all"), (ANY, ANY)),
    }
    return found | changes


@pytest.fixture(scope="module")
def whole() -> dict[str, object]:
    return section(GRID, tables(), 0.95)


def test_the_section_has_the_names_of_the_template_and_no_other(whole):
    names = {name for _, name, _, _ in Formatter().parse(backward_part()) if name}
    assert set(whole) == names
    assert not set(whole) & {*Model.model_fields, *Training.model_fields}
    assert not set(whole) & set(recall_section(recall(), cells({}), NO_BEST, NO_FACTORS))
    assert backward_part().format(**whole)


def test_the_section_has_the_settings_of_both_protocols(whole):
    assert whole["jacobian_published"] == (
        "blocks: 1, heads: 2, width 8, context 8, placement peri, causal: True, head: "
        "not tied; fp32, steps: 9, windows a step: 2, learning rate 0.01"
    )
    assert whole["jacobian_corrected"] == (
        "blocks: 1, heads: 2, width 16, context 8, placement pre, causal: True, head: "
        "not tied; fp32, steps: 9, windows a step: 2, learning rate 0.01"
    )
    assert (whole["jacobian_windows"], whole["jacobian_seeds"]) == (3, 6)


def test_settings_name_precision_mask_and_head_of_their_protocol():
    changes = {"model.causal": False, "model.tied_head": True, "training.precision": "bf16"}
    other = grid(**{f"protocols.published.{key}": value for key, value in changes.items()})
    found = section(other, tables(), 0.95)
    assert "causal: False, head: tied to the embedding; bf16, " in str(found["jacobian_published"])
    assert "causal: True, head: not tied; fp32, " in str(found["jacobian_corrected"])


@pytest.mark.parametrize(("unigram", "is_ceiling"), [(3.51, False), (3.49, True)])
def test_claims_take_the_loss_of_character_frequencies_from_the_costs(unigram, is_ceiling):
    """Models lose 2.5 on average, and two standard deviations of the exact ones are 1."""
    found = section(GRID, tables(costs=costs(cost(unigram=unigram))), 0.95)
    words = "undecided: models do no better than character frequencies"
    assert (words in str(found["jacobian_claims"])) == is_ceiling


def test_the_section_shows_layers_as_published_and_costs_as_corrected():
    both = costs(cost(), cost(protocol=P, arm="rmsnorm"))
    found = section(GRID, tables(costs=both), 0.95)
    by_cell = tables()["layers_by_cell"]
    assert found["jacobian_layers"] == markdown(layer_table(by_cell, P))
    assert found["jacobian_costs"] == markdown(cost_table(both, C))
    assert "RMSNorm" not in str(found["jacobian_costs"])
    assert str(found["jacobian_claims"]).count("\n") == 1 + 8


@pytest.mark.parametrize("changes", [{"arm": "rmsnorm"}, {"learning_rate": 0.1}])
def test_claims_are_of_layernorm_at_the_rates_chosen_for_it(changes, whole):
    one = tables()
    other = layers(({}, {"r_radial": 0.9, "alignment": 0.0, "error_without_gain": 9.0}))
    more = {"layers": pd.concat([one["layers"], other.assign(**changes)])}
    if "arm" in changes:
        lost = one["chosen"].assign(diverged=True, **changes)
        costly = one["expected"].assign(cost=99.0, **changes)
        more["chosen"] = pd.concat([one["chosen"], lost])
        more["expected"] = pd.concat([one["expected"], costly])
    found = section(GRID, tables(**more), 0.95)["jacobian_claims"]
    assert found == whole["jacobian_claims"]


def test_every_row_of_a_table_has_the_columns_of_its_header(whole):
    for name in ("claims", "layers", "costs", "predictions"):
        lines = str(whole[f"jacobian_{name}"]).splitlines()
        assert len(lines) > 2
        assert len({line.count("|") for line in lines}) == 1, name


def empty(kind: Any) -> dict[str, pd.DataFrame]:
    made = kind()
    return {
        "layers": made["layers"],
        "layers_by_cell": pd.DataFrame([], columns=BY_LAYER),
        "chosen": made["picked"],
        "costs": pd.DataFrame([], columns=COSTS),
        "expected": made["models"],
        "predictions": made["predictions"],
    }


@pytest.mark.parametrize("kind", EMPTY)
def test_a_section_of_empty_tables_is_formatted(kind, tmp_path):
    for name, table in empty(kind).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    of_kind = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in empty(kind)}
    text = backward_part().format(**section(GRID, of_kind, 0.95))
    assert "No surrogate was trained." in text


def test_where_no_model_has_a_norm_layer_the_section_says_so():
    none = pd.DataFrame([], columns=LAYERS)
    by_cell = pd.DataFrame([], columns=BY_LAYER)
    found = section(GRID, tables(layers=none, layers_by_cell=by_cell), 0.95)
    assert found["jacobian_layers"] == "No model has a norm layer."


def test_where_all_models_diverged_the_section_says_so():
    """Their layers are named, without measures."""
    lost = frame([of("corrected", {}, seed, protocol=P) for seed in range(3)], LAYERS)
    found = section(GRID, tables(layers=lost, layers_by_cell=by_layer(lost, 0.95)), 0.95)
    assert found["jacobian_layers"] == "All models diverged."


def test_a_table_without_layernorm_is_a_section_of_other_arms():
    one = {name: t for name, t in tables().items() if name != "predictions"}
    others = {name: t.assign(arm="rmsnorm") for name, t in one.items()}
    found = section(GRID, tables(**others), 0.95)
    assert "RMSNorm" in str(found["jacobian_costs"])
    assert "LayerNorm" not in str(found["jacobian_layers"])
