"""Which values a comparison tests: sides, pairs, and what leaves nothing to test."""

import math
from typing import Any

import pandas as pd
import pytest

from normscope.columns import Column, Table, count, key
from normscope.errors import Explained
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.sample import DIVERGED, FAILED, LEARNED_NOTHING, NO_DATA, Sample, sample
from normscope.verdicts.vocabulary import Vocabulary

COLUMNS = (
    key("task", "task"),
    key("arm", "norm"),
    key("depth", "blocks", int),
    key("seed", "seed", int),
    Column("loss", "loss", unit="nats"),
    Column("rank", "rank"),
    Column("growth", "growth", unit="times"),
    Column("accuracy", "accuracy"),
    count("failed", "whether it failed"),
    count("diverged_at", "step"),
)
TABLE = Table("a model", COLUMNS, "here", learned="accuracy >= 0.9")
WORDS = Vocabulary(
    {"arm": ["layernorm", "rmsnorm", "none"], "task": ["copy", "recall", "none"]},
    {"task": {"both": [{"task": "copy"}, {"task": "recall", "depth": 2}]}},
)


def model(arm: str, seed: int, **changes: Any) -> dict[str, Any]:
    base = {"task": "copy", "arm": arm, "depth": 2, "seed": seed, "loss": 1.0, "rank": 8.0}
    base |= {"growth": 2.0, "accuracy": 1.0, "failed": 0, "diverged_at": math.nan}
    return base | changes


def found(rows: list[dict[str, Any]], measure: str = "loss", **fields: Any) -> Sample:
    of = f"median s.t.{measure[7:]}" if measure.startswith("median ") else f"s.t.{measure}"
    comparison = Comparison(measure=of, expect=fields.pop("expect", "below 0"), **fields)
    return sample(comparison, pd.DataFrame(rows), TABLE, WORDS)


def test_sides_are_paired_by_seed_and_a_seed_of_one_side_is_left_out():
    rows = [model("layernorm", s, loss=1.0 + s) for s in (1, 2, 3)]
    rows += [model("rmsnorm", s, loss=5.0 * s) for s in (3, 1, 4)]
    given = found(rows, compare="rmsnorm - layernorm")
    assert sorted(given.values) == [3.0, 11.0]
    assert given.means == (40 / 3, 3.0)
    assert found(rows, compare="rmsnorm / layernorm").values == pytest.approx([15 / 4, 5 / 2])


def test_words_are_values_of_the_one_column_that_has_them_or_name_theirs():
    rows = [model("rmsnorm", 1, depth=d, loss=float(d)) for d in (2, 4)]
    assert found(rows, compare="depth=4 - depth=2").values == (2.0,)
    with pytest.raises(Explained, match="arm=none or task=none"):
        found(rows, compare="none - rmsnorm")
    with pytest.raises(Explained, match="no column has the value 'rmsnrm'; did you mean rmsnorm"):
        found(rows, compare="rmsnrm - layernorm")
    with pytest.raises(Explained, match="'two' is not int"):
        found(rows, compare="depth=two - depth=2")


def test_a_name_stands_for_cells_and_a_list_pools_them():
    rows = [model("rmsnorm", 1), model("rmsnorm", 2, task="recall", depth=3)]
    rows += [model("rmsnorm", 3, task="recall"), model("none", 4)]
    assert len(found(rows, models={"task": "both"}).values) == 3
    assert len(found(rows, models={"task": "both", "arm": ["rmsnorm"]}).values) == 2
    assert len(found(rows, models={"arm": ["rmsnorm", "none"]}).values) == 4


def test_factors_are_averaged_in_logarithms_and_infinity_is_one():
    rows = [model("rmsnorm", s, growth=g) for s, g in enumerate((1.0, math.inf, math.nan))]
    given = found(rows, "growth")
    assert given.is_log
    assert given.values == (1.0, math.inf)
    assert not found(rows, "rank").is_log
    assert found(rows, "rank * 2").values == (16.0,) * 3


@pytest.mark.parametrize(
    ("changes", "measure", "expect", "reason"),
    [
        ({}, "loss", "below 0", ""),
        ({"loss": math.nan, "diverged_at": 7}, "loss", "below 0", DIVERGED),
        ({"failed": 1}, "loss", "below 0", FAILED),
        ({"failed": 1}, "median loss", "below 0", ""),
        ({"failed": 1}, "failed", "below 0", ""),
        ({"failed": 1}, "loss", "always below 0", ""),
        ({"accuracy": 0.5}, "loss", "below 0", ""),  # the other side learned
        ({"accuracy": 0.5}, "rank", "below 0", LEARNED_NOTHING),
        ({"accuracy": 0.5}, "accuracy", "below 0", ""),
        ({"rank": math.nan}, "rank", "below 0", NO_DATA),
    ],
)
def test_what_leaves_nothing_to_test_is_said(changes, measure, expect, reason):
    rows = [model("layernorm", s) for s in (1, 2)] + [
        model("rmsnorm", s, **changes) for s in (1, 2)
    ]
    given = found(rows, measure, expect=expect, compare="rmsnorm - layernorm")
    assert given.reason == reason
    assert bool(given.values) == (not reason)


def test_where_neither_side_learned_losses_are_not_compared():
    rows = [model(arm, s, accuracy=0.1) for s in (1, 2) for arm in ("layernorm", "rmsnorm")]
    assert found(rows, compare="rmsnorm - layernorm").reason == LEARNED_NOTHING
    assert found(rows, models={"task": "recall"}).reason == NO_DATA


def test_several_models_of_a_seed_are_no_sample():
    rows = [model("rmsnorm", 1), model("rmsnorm", 1, task="recall")]
    with pytest.raises(Explained, match="several models of seed 1: give a value of task"):
        found(rows)
    assert len(found(rows, expect="always below 2").values) == 2


def test_rows_without_seeds_are_paired_by_model_unless_the_sides_name_it():
    table = Table("a gain", (key("model", "model"), key("of", "block"), Column("gain", "")), "here")
    rows = pd.DataFrame([{"model": m, "of": o, "gain": g} for m, o, g in GAINS])
    compared = Comparison(measure="s.t.gain", compare="of=last - of=first", expect="below 0")
    assert sample(compared, rows, table, Vocabulary()).values == (1.0, 3.0)
    named = compared.model_copy(update={"compare": "model=b - model=a", "models": {"of": "last"}})
    assert sample(named, rows, table, Vocabulary()).values == (3.0,)


GAINS = [("a", "first", 1.0), ("b", "first", 2.0), ("a", "last", 2.0), ("b", "last", 5.0)]
