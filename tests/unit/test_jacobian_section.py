"""The norms' backward pass in the template of the summary."""

from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd
import pytest
from jacobian_evidence import (
    ALL,
    COSTS,
    EMPTY,
    ENTRIES,
    GRID,
    NOW,
    WAS,
    C,
    P,
    layers,
    models,
    picked,
)
from jacobian_recipes import LAYERS, frame
from recall_evidence import cells, recall
from test_jacobian_grid import grid
from test_jacobian_summary import BY_LAYER, correlations, cost, costs, of
from test_jacobian_summary import COSTS as OF_COSTS
from test_recall_summary import NO_BEST, NO_FACTORS

from normscope.nn.recipe import Model
from normscope.paper.words import markdown
from normscope.studies.jacobian.claims import claims
from normscope.studies.jacobian.pages import (
    cost_table,
    evidence,
    layer_table,
    prediction_table,
    section,
)
from normscope.studies.jacobian.tables import ANY, by_layer
from normscope.studies.recall.pages import section as recall_section
from normscope.train.recipe import Training

OF_ALL = {"margin_sds"}  # of the whole summary
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
        "expected": models({**COSTS, ALL: [0.5] * 6}),
        "predictions": correlations(("center_scale", "all"), (ANY, ANY)),
    }
    return found | changes


def shown(**changes: Any) -> dict[str, object]:
    """The section's words, with its tables in Markdown."""
    return section(GRID, tables(**changes)).rendered()


@pytest.fixture(scope="module")
def whole() -> dict[str, object]:
    return shown()


def test_the_section_has_the_names_of_the_template_and_no_other(whole):
    """But the statements, which are the ledger's; its tables have the names of figures."""
    names = {name for _, name, _, _ in Formatter().parse(backward_part()) if name}
    texts, of_section = section(GRID, tables())
    assert set(whole) == set(texts) == names - OF_ALL
    assert not set(whole) & {*Model.model_fields, *Training.model_fields}
    others = recall_section(recall(), cells({}), NO_BEST, NO_FACTORS)
    assert not set(whole) & set(others.texts)
    assert set(of_section) == {"jacobian", "surrogates", "predictions"}
    assert not set(of_section) & set(others.tables)
    assert "[[table claims_script]]" in backward_part()
    assert "[[table predictions]]" in backward_part()
    assert backward_part().format(**texts, margin_sds=2)


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
    found = section(other, tables()).texts
    assert "causal: False, head: tied to the embedding; bf16, " in str(found["jacobian_published"])
    assert "causal: True, head: not tied; fp32, " in str(found["jacobian_corrected"])


def told(level: float = 0.95, margin_sds: float = 2.0, **changes: Any):
    """What the statements' table says of these tables."""
    found = claims(evidence(GRID, tables(**changes), level, ENTRIES, margin_sds))
    return {c.key: (c.published, getattr(c, WAS), c.corrected, getattr(c, NOW)) for c in found}


@pytest.mark.parametrize(
    ("unigram", "sds", "is_ceiling"), [(3.51, 2.0, False), (3.49, 2.0, True), (3.49, 1.9, False)]
)
def test_claims_take_the_loss_of_character_frequencies_from_the_costs(unigram, sds, is_ceiling):
    """Models lose 2.5 on average, and two standard deviations of the exact ones are 1."""
    found = told(costs=costs(cost(unigram=unigram)), margin_sds=sds)
    words = "undecided: models do no better than character frequencies"
    assert found["softmax_costs_more"][-1] == (words if is_ceiling else "holds")


def test_the_section_shows_layers_as_published_and_costs_as_corrected():
    both = costs(cost(), cost(protocol=P, arm="rmsnorm"))
    found = shown(costs=both)
    by_cell = tables()["layers_by_cell"]
    assert found["jacobian_layers"] == markdown(layer_table(by_cell, P))
    assert found["jacobian_costs"] == markdown(cost_table(both, C))
    assert "RMSNorm" not in str(found["jacobian_costs"])


def test_the_section_has_the_correlations_of_the_corrected_protocol():
    table = correlations(("center_scale", "all"), (ANY, ANY))
    _, of_section = section(GRID, tables(predictions=table))
    pd.testing.assert_frame_equal(of_section["predictions"], prediction_table(table, C))


@pytest.mark.parametrize("changes", [{"arm": "rmsnorm"}, {"learning_rate": 0.1}])
def test_claims_are_of_layernorm_at_the_rates_chosen_for_it(changes):
    one = tables()
    other = layers(({}, {"r_radial": 0.9, "alignment": 0.0, "error_without_gain": 9.0}))
    more: dict[str, Any] = {"layers": pd.concat([one["layers"], other.assign(**changes)])}
    if "arm" in changes:
        lost = one["chosen"].assign(diverged=True, **changes)
        costly = one["expected"].assign(cost=99.0, **changes)
        more["chosen"] = pd.concat([one["chosen"], lost])
        more["expected"] = pd.concat([one["expected"], costly])
    assert told(**more) == told()


def test_every_row_of_a_table_has_the_columns_of_its_header(whole):
    texts = [str(whole["jacobian_layers"]), str(whole["jacobian_costs"])]
    for text in (*texts, markdown(section(GRID, tables()).tables["predictions"])):
        lines = text.splitlines()
        assert len(lines) > 2
        assert len({line.count("|") for line in lines}) == 1, text


def empty(kind: Any) -> dict[str, pd.DataFrame]:
    made = kind()
    return {
        "layers": made["layers"],
        "layers_by_cell": pd.DataFrame([], columns=BY_LAYER),
        "chosen": made["picked"],
        "costs": pd.DataFrame([], columns=OF_COSTS),
        "expected": made["models"],
        "predictions": made["predictions"],
    }


@pytest.mark.parametrize("kind", EMPTY)
def test_a_section_of_empty_tables_is_formatted(kind, tmp_path):
    for name, table in empty(kind).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    of_kind = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in empty(kind)}
    text = backward_part().format(**section(GRID, of_kind).rendered(), margin_sds=2)
    assert "No surrogate was trained." in text


def test_where_no_model_has_a_norm_layer_the_section_says_so():
    none = pd.DataFrame([], columns=LAYERS)
    by_cell = pd.DataFrame([], columns=BY_LAYER)
    found = section(GRID, tables(layers=none, layers_by_cell=by_cell)).rendered()
    assert found["jacobian_layers"] == "No model has a norm layer."


def test_where_all_models_diverged_the_section_says_so():
    """Their layers are named, without measures."""
    lost = frame([of("corrected", {}, seed, protocol=P) for seed in range(3)], LAYERS)
    found = section(GRID, tables(layers=lost, layers_by_cell=by_layer(lost, 0.95))).rendered()
    assert found["jacobian_layers"] == "All models diverged."


def test_a_table_without_layernorm_is_a_section_of_other_arms():
    one = {name: t for name, t in tables().items() if name != "predictions"}
    others = {name: t.assign(arm="rmsnorm") for name, t in one.items()}
    found = section(GRID, tables(**others)).rendered()
    assert "RMSNorm" in str(found["jacobian_costs"])
    assert "LayerNorm" not in str(found["jacobian_layers"])
