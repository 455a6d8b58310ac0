"""Samples, tests and verdicts."""

import itertools
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW
from verdicts.test_document import ENTRY

from normscope.columns import Column, Table, count, key
from normscope.errors import Explained
from normscope.statistics.levels import DECISIVE_P
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.document import Claims, Document, Statement
from normscope.verdicts.frozen import Frozen, Plan, digest
from normscope.verdicts.sample import DIVERGED, FAILED, LEARNED_NOTHING, NO_DATA, Sample, sample
from normscope.verdicts.test import Result, result
from normscope.verdicts.verdict import StudyData, Verdict, judge, read
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


def sample_of(rows: list[dict[str, Any]], measure: str = "loss", **fields: Any) -> Sample:
    of = f"median s.t.{measure[7:]}" if measure.startswith("median ") else f"s.t.{measure}"
    comparison = Comparison(measure=of, expect=fields.pop("expect", "below 0"), **fields)
    return sample(comparison, pd.DataFrame(rows), TABLE, WORDS)


def test_sides_are_paired_by_seed_and_a_seed_of_one_side_is_left_out():
    rows = [model("layernorm", s, loss=1.0 + s) for s in (1, 2, 3)]
    rows += [model("rmsnorm", s, loss=5.0 * s) for s in (3, 1, 4)]
    given = sample_of(rows, compare="rmsnorm - layernorm")
    assert sorted(given.values) == [3.0, 11.0]
    assert given.means == (40 / 3, 3.0)
    assert sample_of(rows, compare="rmsnorm / layernorm").values == pytest.approx([15 / 4, 5 / 2])


@pytest.mark.parametrize(
    ("measure", "compare", "expected"),
    [
        ("loss", "rmsnorm - layernorm", [statistics.mean([1, 2, 6]), 10.0]),
        ("median loss", "rmsnorm - layernorm", [2.0, 10.0]),
        ("loss", "rmsnorm / layernorm", [statistics.geometric_mean([2, 3, 7]), 11.0]),
    ],
)
def test_of_several_texts_each_is_one_unit(measure: str, compare: str, expected: list[float]):
    """However many of its models there are; pairs are those of a seed."""
    above = {1: ("austen", 1.0), 2: ("austen", 2.0), 3: ("austen", 6.0), 101: ("woolf", 10.0)}
    rows = [
        model(arm, seed, text=text, loss=1.0 + more * (arm == "rmsnorm"))
        for seed, (text, more) in above.items()
        for arm in ("layernorm", "rmsnorm")
    ]
    assert sample_of(rows, measure, compare=compare).values == pytest.approx(expected)
    one = [row for row in rows if row["text"] == "austen"]
    assert len(sample_of(one, measure, compare=compare).values) == 3


def test_words_are_values_of_the_one_column_that_has_them_or_name_theirs():
    rows = [model("rmsnorm", 1, depth=d, loss=float(d)) for d in (2, 4)]
    assert sample_of(rows, compare="depth=4 - depth=2").values == (2.0,)
    with pytest.raises(Explained, match="arm=none or task=none"):
        sample_of(rows, compare="none - rmsnorm")
    with pytest.raises(Explained, match="no column has the value 'rmsnrm'; did you mean rmsnorm"):
        sample_of(rows, compare="rmsnrm - layernorm")
    with pytest.raises(Explained, match="'two' is not int"):
        sample_of(rows, compare="depth=two - depth=2")


def test_a_name_stands_for_cells_and_a_list_pools_them():
    rows = [model("rmsnorm", 1), model("rmsnorm", 2, task="recall", depth=3)]
    rows += [model("rmsnorm", 3, task="recall"), model("none", 4)]
    assert len(sample_of(rows, models={"task": "both"}).values) == 3
    assert len(sample_of(rows, models={"task": "both", "arm": ["rmsnorm"]}).values) == 2
    assert len(sample_of(rows, models={"arm": ["rmsnorm", "none"]}).values) == 4


def test_factors_are_averaged_in_logarithms_and_infinity_is_one():
    rows = [model("rmsnorm", s, growth=g) for s, g in enumerate((1.0, math.inf, math.nan))]
    given = sample_of(rows, "growth")
    assert given.is_log
    assert given.values == (1.0, math.inf)
    assert not sample_of(rows, "rank").is_log
    assert sample_of(rows, "rank * 2").values == (16.0,) * 3


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
        ({"rank": math.nan}, "rank", "below 0", f"{NO_DATA} of rmsnorm"),
    ],
)
def test_what_leaves_nothing_to_test_is_said(changes, measure, expect, reason):
    rows = [model("layernorm", s) for s in (1, 2)] + [
        model("rmsnorm", s, **changes) for s in (1, 2)
    ]
    given = sample_of(rows, measure, expect=expect, compare="rmsnorm - layernorm")
    assert given.reason == reason
    assert bool(given.values) == (not reason)


def test_where_neither_side_learned_losses_are_not_compared():
    rows = [model(arm, s, accuracy=0.1) for s in (1, 2) for arm in ("layernorm", "rmsnorm")]
    assert sample_of(rows, compare="rmsnorm - layernorm").reason == LEARNED_NOTHING
    assert sample_of(rows, models={"task": "recall"}).reason == NO_DATA


def test_several_models_of_a_seed_are_no_sample():
    rows = [model("rmsnorm", 1), model("rmsnorm", 1, task="recall")]
    with pytest.raises(Explained, match="several models of seed 1: give a value of task"):
        sample_of(rows)
    assert len(sample_of(rows, expect="always below 2").values) == 2


def test_rows_without_seeds_are_paired_by_model_unless_the_sides_name_it():
    table = Table("a gain", (key("model", "model"), key("of", "block"), Column("gain", "")), "here")
    rows = pd.DataFrame([{"model": m, "of": o, "gain": g} for m, o, g in GAINS])
    compared = Comparison(measure="s.t.gain", compare="of=last - of=first", expect="below 0")
    assert sample(compared, rows, table, Vocabulary()).values == (1.0, 3.0)
    named = compared.model_copy(update={"compare": "model=b - model=a", "models": {"of": "last"}})
    assert sample(named, rows, table, Vocabulary()).values == (3.0,)


GAINS = [("a", "first", 1.0), ("b", "first", 2.0), ("a", "last", 2.0), ("b", "last", 5.0)]


RNG = np.random.default_rng(5)
VALUES = tuple(RNG.normal(0.3, 0.2, 12))


def outcome_of(
    values, expect: str, measure: str = "s.t.loss", *, log: bool = False, count: bool = False
) -> Result:
    comparison = Comparison(measure=measure, expect=expect)
    return result(comparison, Sample(tuple(values), (), log), is_count=count, level=0.95)


def test_a_mean_is_tested_by_students_t():
    for expect, bound in (("above 0.1", 0.1), ("below 0.1", 0.1), ("above 0.5", 0.5)):
        found = outcome_of(VALUES, expect)
        reference = stats.ttest_1samp(VALUES, bound)
        assert found.p == pytest.approx(reference.pvalue)
        interval = stats.ttest_1samp(VALUES, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx(interval)
        is_above = np.mean(VALUES) > bound
        outcome = "as claimed" if is_above == expect.startswith("above") else "opposite"
        assert found.outcome == (outcome if reference.pvalue < DECISIVE_P else "undecided")


def test_between_two_ends_both_one_sided_tests_must_agree():
    p, *_ = DescrStatsW(np.array(VALUES)).ttost_mean(0.0, 0.6)
    assert outcome_of(VALUES, "between 0 and 0.6").p == pytest.approx(2 * p)
    wide = outcome_of(VALUES, "within 2")
    assert wide.outcome == "as claimed"
    outside = outcome_of(VALUES, "within 0.01")
    assert outside.outcome == "opposite"
    assert outside.p == pytest.approx(
        stats.ttest_1samp(VALUES, 0.01, alternative="greater").pvalue * 2
    )


def test_factors_are_tested_by_their_logarithms():
    ratios = np.exp(RNG.normal(0.0, 0.1, 12))
    found = outcome_of(ratios, "within 2", log=True)
    p, *_ = DescrStatsW(np.log(ratios)).ttost_mean(-math.log(2), math.log(2))
    assert found.p == pytest.approx(2 * p)
    assert found.effect == pytest.approx(stats.gmean(ratios))
    assert 0 < outcome_of([0.0, *ratios], "below 1", log=True).effect < 1e-20
    assert math.isfinite(outcome_of([math.inf, *ratios], "above 1", log=True).effect)


def test_a_median_is_tested_by_the_sign_test():
    found = outcome_of(VALUES, "above 0.1", "median s.t.loss")
    above = sum(v > 0.1 for v in VALUES)
    expected = stats.binomtest(above, len(VALUES), alternative="greater").pvalue * 2
    assert found.p == pytest.approx(min(1, expected))
    assert found.effect == pytest.approx(np.median(VALUES))


def test_counts_are_tested_by_all_flips_of_signs():
    values = [1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    sums = [np.dot(signs, values) for signs in itertools.product((-1, 1), repeat=7)]
    expected = 2 * np.mean([s >= sum(values) - 1e-9 for s in sums])
    found = outcome_of(values, "above 0", count=True)
    assert found.p == pytest.approx(expected)
    assert math.isnan(found.low)


@pytest.mark.parametrize(
    ("values", "expect", "outcome", "worst"),
    [
        ([0.1, 0.3], "always below 0.5", "as claimed", 0.3),
        ([0.1, 0.7], "always below 0.5", "opposite", 0.7),
        ([0.1, 0.7], "always above 0.5", "opposite", 0.1),
        ([-0.6, 0.1], "always within 0.5", "opposite", -0.6),
        ([0.5], "always below 0.5", "opposite", 0.5),
    ],
)
def test_one_row_decides_what_is_always_expected(values, expect, outcome, worst):
    found = outcome_of(values, expect)
    assert (found.outcome, found.effect, found.is_fact) == (outcome, worst, True)


def test_few_seeds_decide_nothing_and_say_what_is_needed():
    few = outcome_of([1.0, 1.1, 0.9, 1.0, 1.05], "above 0")
    assert (few.outcome, few.reason, few.n) == ("undecided", "n = 5, 6 needed", 5)
    assert few.effect == pytest.approx(1.01)
    unreachable = outcome_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "above 0", "median s.t.loss")
    assert unreachable.outcome == "undecided"
    assert "gives no p below" in unreachable.reason
    assert outcome_of(VALUES, "above 0.25").reason.startswith("p = ")


def test_a_result_is_read_as_it_was_written():
    found = outcome_of(VALUES, "above 0.1")
    assert Result.model_validate_json(found.model_dump_json(exclude_defaults=True)) == found
    empty = Result.model_validate_json(Result(reason="no data").model_dump_json())
    assert math.isnan(empty.p)


YES, NO, OPEN = (Result(outcome=o, n=12, p=0.001) for o in ("as claimed", "opposite", "undecided"))


def verdict(main: Result, *others: Result, **changes) -> Verdict:
    statement = Statement.model_validate(ENTRY | changes)
    results = dict(zip(statement.comparisons, (main, *others), strict=False))
    return Verdict(key="key", document="paper", statement=statement, results=results)


@pytest.mark.parametrize(
    ("results", "word", "answer"),
    [
        ([YES, YES, OPEN], "as claimed", "yes"),
        ([NO, OPEN], "opposite", "no"),
        ([YES, OPEN, NO], "mixed", "mixed"),
        ([NO, YES], "mixed", "mixed"),
        ([OPEN, YES, NO], "undecided", "undecided"),
    ],
)
def test_the_main_comparison_decides_and_another_one_can_contradict_it(results, word, answer):
    assert verdict(*results).word == word
    assert verdict(*results, says="Is it?").word == answer


@pytest.mark.parametrize(
    ("one", "certainty"),
    [
        (verdict(NO, OPEN), "high"),
        (verdict(Result(outcome="as claimed", n=3)), "high"),
        (verdict(NO).model_copy(update={"why_post_hoc": "changed"}), "moderate"),
        (verdict(YES, NO), "moderate"),
        (verdict(OPEN, YES), "low"),
    ],
)
def test_a_decided_verdict_is_sure_if_its_test_was_fixed_and_nothing_contradicts_it(one, certainty):
    assert one.certainty == certainty


@pytest.mark.parametrize("measure", ["s.t.loss", "median s.t.loss"])
def test_an_undecided_comparison_says_what_n_would_decide_it(measure):
    quantiles = stats.norm.ppf((np.arange(20) + 0.5) / 20, 0.5)
    found = outcome_of(list(quantiles), "above 0", measure)
    assert found.outcome == "undecided"
    draws = np.random.default_rng(0).normal(0.5, 1.0, (200, found.enough))
    p = np.array([outcome_of(list(values), "above 0", measure).p for values in draws])
    assert np.mean(p < DECISIVE_P) == pytest.approx(0.9, abs=0.08)


MODELS = Table(
    "a model",
    (
        *(key("protocol", ""), key("placement", ""), key("arm", ""), key("seed", "", int)),
        Column("capped_loss", "validation loss", unit="nats"),
    ),
    "here",
)
ARMS = Vocabulary({"arm": ["layernorm", "rmsnorm"]})


def rows(protocol: str, above: float) -> list[dict]:
    return [
        {"protocol": protocol, "placement": "pre", "arm": arm, "seed": s, "capped_loss": loss}
        for s in range(12)
        for arm, loss in (("layernorm", 2.0 + s / 10), ("rmsnorm", 2.0 + s / 10 + above + s / 1e4))
    ]


def judge_table(table: pd.DataFrame | None, **changes):
    paper = Document.model_validate(
        {"title": "A paper", "checked": "all", "statements": {"key": ENTRY | changes}}
    )
    claims = Claims({"paper": paper})
    main = StudyData({} if table is None else {"chosen": table}, {"chosen": MODELS}, ARMS)
    return judge(claims, {"main": main}, level=0.95, plan=Plan())


def test_a_run_is_judged_and_read_as_it_was_written(tmp_path: Path):
    made = judge_table(pd.DataFrame(rows("small", 0.0) + rows("long", 0.5)))
    (one,) = made.verdicts
    assert (one.results[""].outcome, one.results["longer"].outcome) == ("as claimed", "opposite")
    assert (one.word, one.contradicted_by) == ("mixed", ["longer", "alone"])
    assert one.results["alone"].n == 12
    assert one.quantities[""].meaning == "validation loss"
    made.write(tmp_path / "claims.json")
    assert read(tmp_path / "claims.json") == made


def test_a_missing_table_gives_no_data_and_models_that_are_alike_are_named():
    (one,) = judge_table(None).verdicts
    assert (one.word, one.main.reason) == ("undecided", "no data")
    with pytest.raises(Explained, match="key: several models of seed 0"):
        judge_table(pd.DataFrame(rows("small", 0.0) + rows("long", 0.0)), models={}, also={})


def test_a_digest_is_that_of_the_tests_and_of_no_word():
    base = Statement.model_validate(ENTRY)
    words = {"says": "Other.", "quote": "other", "note": "other", "figure": "other"}
    assert digest(Statement.model_validate(ENTRY | words)) == digest(base)
    for change in ({"expect": "within 0.02"}, {"compare": "layernorm - rmsnorm"}, {"also": {}}):
        assert digest(Statement.model_validate(ENTRY | change)) != digest(base)


def test_a_verdict_is_planned_if_its_test_and_its_settings_were_frozen():
    one = Statement.model_validate(ENTRY)
    frozen = Frozen(commit="a" * 40, settings="b" * 64, statements={"key": digest(one)})
    plan = Plan({"main": "b" * 64}, {"main": frozen})
    assert plan.why_post_hoc("key", one) == ""
    assert "not frozen" in plan.why_post_hoc("other", one)
    assert "not frozen" in Plan({"main": "b" * 64}, {"recall": frozen}).why_post_hoc("key", one)
    assert "settings" in Plan({"main": "e" * 64}, {"main": frozen}).why_post_hoc("key", one)
    changed = Statement.model_validate(ENTRY | {"expect": "within 0.02"})
    assert "changed" in plan.why_post_hoc("key", changed)
    both = one.model_validate(ENTRY | {"also": {"recall": {"measure": "recall.chosen.loss"}}})
    two = Frozen(commit="a" * 40, settings="b" * 64, statements={"key": digest(both)})
    assert "not frozen" in plan._replace(frozen={"main": two}).why_post_hoc("key", both)
