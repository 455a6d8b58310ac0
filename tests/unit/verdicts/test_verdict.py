"""From the results of comparisons to the word of a verdict, and to claims.json and back."""

from pathlib import Path

import pandas as pd
import pytest
from verdicts.test_document import ENTRY

from normscope.columns import Column, Table, key
from normscope.errors import Explained
from normscope.verdicts.document import Claims, Document, Statement
from normscope.verdicts.frozen import Frozen, Plan, digest, digests
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import Verdict, judge, read
from normscope.verdicts.vocabulary import Vocabulary

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


def test_marks_say_what_limits_a_verdict():
    plain = verdict(YES)
    assert plain.marks == []
    limited = verdict(YES, ours="small models").model_copy(update={"why_post_hoc": "changed"})
    assert limited.marks == ["post hoc", "smaller than theirs"]
    fact = verdict(Result(outcome="as claimed", n=3)).model_copy(update={"why_post_hoc": "changed"})
    assert fact.marks == []


TABLE = Table(
    "a model",
    (
        *(key("protocol", ""), key("placement", ""), key("arm", ""), key("seed", "", int)),
        Column("capped_loss", "validation loss", unit="nats"),
    ),
    "here",
)
WORDS = Vocabulary({"arm": ["layernorm", "rmsnorm"]})


def rows(protocol: str, above: float) -> list[dict]:
    return [
        {"protocol": protocol, "placement": "pre", "arm": arm, "seed": s, "capped_loss": loss}
        for s in range(12)
        for arm, loss in (("layernorm", 2.0 + s / 10), ("rmsnorm", 2.0 + s / 10 + above + s / 1e4))
    ]


def judged(table: pd.DataFrame | None, **changes):
    paper = Document.model_validate(
        {"title": "A paper", "checked": "all", "statements": {"key": ENTRY | changes}}
    )
    claims = Claims({"paper": paper})
    tables = {"main": {} if table is None else {"chosen": table}}
    plan = Plan(digests(claims))
    declared, words = {"main": {"chosen": TABLE}}, {"main": WORDS}
    return judge(claims, tables, declared, words, level=0.95, plan=plan)


def test_a_run_is_judged_and_read_as_it_was_written(tmp_path: Path):
    made = judged(pd.DataFrame(rows("small", 0.0) + rows("long", 0.5)))
    (one,) = made.verdicts
    assert (one.results[""].outcome, one.results["longer"].outcome) == ("as claimed", "opposite")
    assert (one.word, one.contradicted_by) == ("mixed", ["longer", "alone"])
    assert one.results["alone"].n == 12
    assert one.quantities[""].meaning == "validation loss"
    made.write(tmp_path / "claims.json")
    assert read(tmp_path / "claims.json") == made


def test_a_missing_table_gives_no_data_and_models_that_are_alike_are_named():
    (one,) = judged(None).verdicts
    assert (one.word, one.main.reason) == ("undecided", "no data")
    with pytest.raises(Explained, match="key: several models of seed 0"):
        judged(pd.DataFrame(rows("small", 0.0) + rows("long", 0.0)), models={}, also={})


def test_a_digest_is_that_of_the_tests_and_of_no_word():
    base = Statement.model_validate(ENTRY)
    words = {"says": "Other.", "quote": "other", "note": "other", "figure": "other"}
    assert digest(Statement.model_validate(ENTRY | words)) == digest(base)
    for change in ({"expect": "within 0.02"}, {"compare": "layernorm - rmsnorm"}, {"also": {}}):
        assert digest(Statement.model_validate(ENTRY | change)) != digest(base)


def test_a_verdict_is_planned_if_its_test_and_its_settings_were_frozen():
    frozen = Frozen(
        commit="a" * 40, settings={"config.yaml": "b" * 64}, statements={"key": "c" * 16}
    )
    assert Plan({"key": "c" * 16}, frozen, "b" * 64).why_post_hoc("key") == ""
    assert "changed" in Plan({"key": "d" * 16}, frozen, "b" * 64).why_post_hoc("key")
    assert "settings" in Plan({"key": "c" * 16}, frozen, "e" * 64).why_post_hoc("key")
    assert "not frozen" in Plan({"key": "c" * 16}, None, "b" * 64).why_post_hoc("key")
