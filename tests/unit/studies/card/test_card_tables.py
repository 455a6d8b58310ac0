"""What a card says of losses and learning rates, on tables that the tests write."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from normscope.verdicts.entry import load
from pydantic import ValidationError

from normscope.columns import Table
from normscope.custom_arms import name_card_norms
from normscope.errors import Explained
from normscope.nn.arms import ARMS, Row, add, added
from normscope.statistics.levels import FEWEST
from normscope.studies.card import tabulate
from normscope.studies.card.grid import COMPARED, UNTRAINED, Card, Regime, budgets
from normscope.studies.card.lines import (
    SHARES,
    TYPICAL,
    Cards,
    cost_line,
    function_line,
    identity_line,
    rates,
    training_line,
    with_length,
)
from normscope.studies.card.recipe import CardTables
from normscope.studies.card.statements import statements
from normscope.studies.card.tables import TABLES

ROOT = Path(__file__).parents[4]
SEEDS = range(11, 19)
NOISE = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 0.0]


def recipe() -> CardTables:
    return Card(norm=["dyt"]).tabulation(0.95)


def models(losses: dict[tuple[str, str], float], failed: int = 0) -> pd.DataFrame:
    """Runs of arms under regimes, with these mean losses and the same noise by seed."""
    rows = [
        {
            "arm": arm,
            "regime": regime,
            "seed": seed,
            "learning_rate": 0.01,
            "at_edge": False,
            "capped_loss": loss + (0 if arm == "layernorm" else noise),
            "failed": int(arm != "layernorm" and i < failed),
        }
        for (arm, regime), loss in losses.items()
        for i, (seed, noise) in enumerate(zip(SEEDS, NOISE, strict=True))
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("difference", "failed", "reads"),
    [
        (0.3, 0, "worse"),
        (0.03, 0, "worse, by less than 0.05"),
        (-0.3, 0, "better"),
        (-0.03, 0, "better, by less than 0.05"),
        (0.0, 0, "no difference above 0.05"),
        (0.3, 5, "5 of 8 models fail"),
        (0.3, 1, "1 of 8 models fail"),
    ],
)
def test_readings_of_a_difference(difference: float, failed: int, reads: str):
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 2.0 + difference}, failed)
    by_arm = tabulate.compare(runs, recipe()).set_index("arm")
    assert by_arm.loc["dyt", "difference"] == pytest.approx(difference)
    assert by_arm.loc["dyt", "reads"] == reads
    assert by_arm.loc["layernorm", "reads"] == "the reference"


def test_few_or_scattered_models_decide_nothing():
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 2.3})
    few = tabulate.compare(runs[runs["seed"] < 16], recipe()).set_index("arm")
    assert few.loc["dyt", "reads"] == "5 seeds decide nothing"
    assert math.isnan(few.loc["dyt", "resolved"])  # pyright: ignore[reportArgumentType]
    scattered = runs.assign(capped_loss=runs["capped_loss"] + 5 * (runs["seed"] % 2))
    scattered.loc[scattered["arm"] == "layernorm", "capped_loss"] = 4.5
    wide = tabulate.compare(scattered, recipe()).set_index("arm")
    assert wide.loc["dyt", "reads"] == "not told apart"


def test_a_norm_that_fails_at_first_is_not_called_a_failure():
    losses = {("layernorm", r): 2.0 for r in COMPARED}
    slow = losses | {("dyt", r): loss for r, loss in zip(COMPARED, (3.3, 2.3, 3.3), strict=True)}
    runs = models(slow)
    runs.loc[(runs["arm"] == "dyt") & (runs["regime"] != "long"), "failed"] = 1
    tables = {"compared": tabulate.compare(runs, recipe())}
    cards = Cards(Card(norm=["dyt"]), tables, pd.DataFrame(), {}, 0.95)
    assert training_line(cards, "dyt").endswith("8 of 8 models fail; after 1,000 steps, none does.")
    runs.loc[
        (runs["regime"] == "long") & (runs["arm"] == "dyt") & (runs["seed"] < 13), "failed"
    ] = 1
    tables = {"compared": tabulate.compare(runs, recipe())}
    assert with_length(cards._replace(tables=tables), "dyt").endswith(
        "after 1,000 steps, 2 of 8 do."
    )
    runs.loc[runs["arm"] == "dyt", "failed"] = 1
    tables = {"compared": tabulate.compare(runs, recipe())}
    line = with_length(cards._replace(tables=tables), "dyt")
    assert line == "Models fail after 300 and after 1,000 steps."
    for long, said in ((2.3, ""), (2.1, "better"), (2.5, "worse")):
        other = losses | {("dyt", r): x for r, x in zip(COMPARED, (2.3, long, 2.3), strict=True)}
        tables = {"compared": tabulate.compare(models(other), recipe())}
        line = with_length(cards._replace(tables=tables), "dyt")
        assert line == (
            f"After 1,000 steps it is {said}, next to LayerNorm, than after 300." if said else ""
        )


@pytest.mark.parametrize(
    ("nearest", "difference", "large", "starts", "line"),
    [
        ("layernorm", 1e-9, 1e-9, True, "this is LayerNorm."),
        ("dyt", 1e-9, math.nan, False, "this is DyT, with other starting values."),
        (
            "layernorm_gain",
            1e-9,
            1e-9,
            None,
            "this is LayerNorm, gain only, with 1 parameter more.",
        ),
        ("rmsnorm_affine", 1e-9, 1e-9, None, "this is RMSNorm, affine, with 63 parameters fewer."),
        ("rmsnorm", 0.01, 1e-9, True, "for large tokens, this is RMSNorm; at sizes"),
        ("derf", 0.2, math.nan, False, "no known norm computes the same; nearest: Derf; its"),
        ("rmsnorm dyt", 0.01, 0.01, True, "no known norm computes the same; nearest: RMSNorm and"),
        ("none", 0.0, math.nan, True, "this is the identity."),
        (None, 1.0, 1.0, None, "no known norm computes nearly the same."),
        (None, math.nan, math.nan, None, "not measured"),
    ],
)
def test_what_a_card_says_a_norm_is(
    nearest: str, difference: float, large: float, starts: bool | None, line: str
):
    row = {"nearest": nearest, "difference": difference, "large": large, "starts": starts}
    table = pd.DataFrame([{"arm": "dyt", "parameters": 65, **row}])
    said = identity_line(table, "dyt", 64)
    assert said.startswith(f"Identity: {line}")
    assert "nan" not in said


def test_a_card_says_that_a_backward_pass_is_not_the_derivative():
    custom = {"name": "n.py:N", "code": "0", "is_exact": False}
    before = added()
    add(Row("mine", "Mine", "n.py:N", {"statistic": "custom", "custom": custom}))
    row = {"nearest": "rmsnorm", "difference": 0.0, "large": 0.0, "starts": True}
    line = identity_line(pd.DataFrame([{"arm": "mine", "parameters": 64, **row}]), "mine", 64)
    add(*before)
    assert "RMSNorm. Its backward pass is not the derivative of its forward pass" in line


MEASURED = {"scale": 0.0, "shift": 1.0, "rotation": 1.0, "tokens": 0.0, "batch": 0.0}


@pytest.mark.parametrize("column", MEASURED)
def test_no_sentence_is_made_of_what_was_not_measured(column: str):
    layers = pd.DataFrame([{"arm": "dyt", "state": "trained"} | dict.fromkeys(SHARES, math.nan)])
    for value, said in ((MEASURED[column], "invariant to the scale"), (math.nan, "not measured")):
        norms = pd.DataFrame([{"arm": "dyt", "elementwise": False, **MEASURED, column: value}])
        line = function_line({"norm": norms, "layers": layers}, "dyt")
        assert said in line
        assert line.count(";") == (said != "not measured")
        assert "nan" not in line
    speed = {
        "arm": "dyt",
        "width": TYPICAL,
        "mode": "eager",
        "to_layernorm": 1.0,
        "to_rmsnorm": 1.0,
    }
    assert cost_line(pd.DataFrame([speed | {"step": math.nan}]), "dyt") == "Cost: not measured."


def test_ranges_of_learning_rates():
    losses = {0.001: 2.04, 0.003: 2.0, 0.01: 2.2, 0.03: 2.01, 0.1: 4.0}
    trials = pd.DataFrame(
        {"arm": "dyt", "learning_rate": r, "val_loss": x, "failed": int(x > 3)}
        for r, x in losses.items()
    )
    runs = pd.DataFrame({"arm": "dyt", "learning_rate": 0.003, "failed": [0, 0]})
    (row,) = tabulate.sensitivity(trials, runs).to_dict("records")
    # 0.03 is as good, but not in the range without a gap
    assert row == {
        "arm": "dyt",
        "best": 0.003,
        "from": 0.001,
        "to": 0.003,
        "stable": 0.03,
        "largest": 0.1,
    }
    (row,) = tabulate.sensitivity(trials.assign(failed=1), runs).to_dict("records")
    assert all(math.isnan(row[key]) for key in ("from", "to", "stable"))


def test_a_rate_at_which_a_compared_model_failed_is_not_stable():
    trials = pd.DataFrame(
        {"arm": "dyt", "learning_rate": r, "val_loss": x, "failed": 0}
        for r, x in {0.01: 2.2, 0.03: 2.0}.items()
    )
    runs = pd.DataFrame({"arm": "dyt", "learning_rate": 0.03, "failed": [0, 1]})
    (row,) = tabulate.sensitivity(trials, runs).to_dict("records")
    assert (row["best"], row["stable"]) == (0.03, 0.01)
    said = rates({"from": 0.03, "to": 0.03, "stable": 0.03, "largest": 0.03})
    assert said.endswith("0.03, the largest tried")


def test_the_card_of_another_norm_is_not_replaced(tmp_path):
    card = Card(norm=["dyt"])
    card.check_free(tmp_path)
    path = tmp_path / "dyt/card.json"
    path.parent.mkdir()
    for source, is_free in ((ARMS["dyt"].source, True), ("a/n.py:DyT", False)):
        path.write_text(json.dumps({"source": source}))
        if is_free:
            card.check_free(tmp_path)
        else:
            with pytest.raises(Explained, match=r"dyt has the card of a/n\.py:DyT: remove this"):
                card.check_free(tmp_path)


def test_a_rate_at_the_edge_is_named_whosever_it_is():
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 1.7})
    runs.loc[runs["arm"] == "layernorm", "at_edge"] = True
    by_arm = tabulate.compare(runs, recipe()).set_index("arm")
    assert by_arm.loc["dyt", "reads"] == "better at the rates tried"
    same = runs.assign(capped_loss=2.0 + 0.001 * runs["seed"] * (runs["arm"] == "dyt"))
    by_arm = tabulate.compare(same, recipe()).set_index("arm")
    assert by_arm.loc["dyt", "reads"] == "worse at the rates tried, by less than 0.05"
    close = same.assign(capped_loss=2.0 + (-1) ** same["seed"] * 0.01 * (same["arm"] == "dyt"))
    by_arm = tabulate.compare(close, recipe()).set_index("arm")
    assert by_arm.loc["dyt", "reads"] == "no difference above 0.05 at the rates tried"


def test_the_reported_rate_is_the_one_that_was_trained():
    pilots = pd.DataFrame(
        {
            "arm": "dyt",
            "regime": "short",
            "learning_rate": [0.001, 0.001, 0.003, 0.003, 0.01, 0.01],
            "val_loss": [2.2, 2.2, 2.1, 2.1, 1.9, math.nan],
        }
    )
    (row,) = tabulate.best_rates(pilots).to_dict("records")
    assert (row["learning_rate"], row["at_edge"]) == (0.003, False)


def test_budgets_can_decide_what_they_compare():
    for name, regimes in budgets().items():
        resolved = Card(norm=["dyt"], budget=name).resolved()
        assert {*COMPARED} <= {*regimes}
        assert name == "demo" or all(nats < 0.05 for nats in resolved.values())
        assert all(
            not set(range(1, 1 + r.pilots)) & {*range(11, 11 + r.seeds)} for r in regimes.values()
        )
    assert Regime().training.learning_rate == 0.001
    assert UNTRAINED >= FEWEST


def test_statements_are_those_of_the_ledger_with_its_bounds():
    entries: dict[str, Any] = load(sorted((ROOT / "data/claims").glob("*.yaml"))).entries
    assert statements().keys() <= entries.keys()
    healthy, stays = (statements()[key].within for key in ("healthy_range", "stays"))
    margin = entries["healthy_range"].readings["stream"].margin
    assert healthy == pytest.approx([1 / margin, margin])
    assert stays[0] == entries["stays"].readings["strong"].bound
    for one in statements().values():
        table: Table = TABLES[one.table]
        assert {one.measure, *one.where} <= {*table.names}


def test_a_statement_is_decided_by_a_sign_test():
    growth = pd.DataFrame(
        {"arm": "dyt", "depth": 48, "init": "xavier", "seed": SEEDS, "stream": 5.0, "gradient": 0.1}
    )
    outputs = pd.DataFrame({"arm": "dyt", "seed": [11, 12], "last_gain": 0.5})
    runs = models({("dyt", "batch_1"): 2.0}, failed=4)
    tables = {"growth": growth, "outputs": outputs, "runs": runs}

    def verdicts() -> dict[str, str]:
        table = tabulate.asked(tables)
        return dict(zip(table["statement"], table["verdict"], strict=True))

    expected = {
        "healthy_range": "holds",
        "stays": "fails",
        "dampens": "undecided",  # two models
        "batch_size": "undecided",  # four of eight
    }
    assert verdicts() == expected
    growth["gradient"] = math.nan  # as of a norm that starts at 0
    assert verdicts() == expected | {"stays": "undecided"}


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ({"norm": []}, "at least 1 item"),
        ({"norm": "dyt dyt"}, "given twice: dyt"),
        ({"norm": "nonsense"}, "unknown arm 'nonsense'"),
        ({"norm": "dyt", "budget": "5 mn"}, "no budget '5 mn'; did you mean 5 min?"),
        ({"norm": "dyt", "seeds": 3}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_cards(card: dict[str, Any], reason: str):
    with pytest.raises(ValidationError, match=re.escape(reason)):
        Card.model_validate(card)


def test_classes_become_arms():
    raw: dict[str, Any] = {
        "arms": {"mine": {"module": "a.py:Mine", "label": "Mine"}},
        "card": {
            "norm": "x/a.py:MyNorm torch.nn:LayerNorm  b.py:LayerNorm\nc.py:Dyt d.py:_Null dyt "
            "mine a.py:Mine my  norms/it's.py:N"
        },
    }
    name_card_norms(raw)
    assert raw["card"]["norm"] == [
        *(
            "my_norm",
            "layer_norm",
            "b_layer_norm",
            "c_dyt",
            "norm_null",
            "dyt",
            "mine",
            "a_mine",
            "n",
        )
    ]
    assert raw["arms"] == {
        "mine": {"module": "a.py:Mine", "label": "Mine"},
        "my_norm": {"module": "x/a.py:MyNorm"},
        "layer_norm": {"module": "torch.nn:LayerNorm"},
        "b_layer_norm": {"module": "b.py:LayerNorm"},
        "c_dyt": {"module": "c.py:Dyt"},
        "norm_null": {"module": "d.py:_Null"},
        "a_mine": {"module": "a.py:Mine"},
        "n": {"module": "my  norms/it's.py:N"},
    }
    unchanged: list[Any] = [{}, {"card": None}, {"card": {}}, {"card": {"norm": 3}}, []]
    for other in unchanged:
        name_card_norms(other)
