"""Verdicts as tables, counts and cards: what a reader is told of each."""

from verdicts.test_document import ENTRY

from normscope.pages.cards import cards
from normscope.pages.evidence import Evidence, evidence_words
from normscope.pages.statements import (
    by_statement,
    claims_table,
    dispute_table,
    finding,
    scoreboard,
    totals,
    words_of,
)
from normscope.verdicts.document import Head, Statement
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import Quantity, Verdict, Verdicts

CLAIMED = Result(outcome="as claimed", effect=0.02, low=0.01, high=0.03, n=12, p=1e-4, means=(2, 1))
OPPOSITE = Result(outcome="opposite", effect=0.1, low=0.05, high=0.15, n=12, p=1e-3)
FACT = Result(outcome="opposite", effect=0.5, n=3)
NONE = Result(reason="no data")
QUANTITY = Quantity(meaning="validation loss", unit="nats", style="decimals")


def verdict(key: str, main: Result, longer: Result = NONE, **changes) -> Verdict:
    statement = Statement.model_validate(ENTRY | {"says": f"It is {key}."} | changes)
    names = list(statement.comparisons)
    results = dict(zip(names, [main, longer, NONE, NONE], strict=False))
    return Verdict(
        key=key,
        document="paper",
        statement=statement,
        results=results,
        quantities=dict.fromkeys(names, QUANTITY),
        why_post_hoc="its test was changed",
        digest=key,
    )


UNTESTABLE = {"measure": None, "models": {}, "compare": "", "expect": None, "also": {}}
RUN = Verdicts(
    level=0.95,
    documents={"paper": Head(title="A paper", by="A. Author 2026", link="https://example.org")},
    disputes=[("claimed", "fact")],
    verdicts=[
        verdict("claimed", CLAIMED, ours="smaller models"),
        verdict("mixed", CLAIMED, OPPOSITE),
        verdict("fact", FACT, also={}),
        verdict("untestable", NONE, **UNTESTABLE, note="It takes years."),
        verdict("asked", OPPOSITE, says="Is it?"),
        verdict("empty", NONE),
    ],
)


def test_a_verdict_is_shown_with_what_limits_it_and_what_was_found():
    one, mixed, fact, *_ = RUN.verdicts
    assert words_of(one) == "as claimed (post hoc, smaller than theirs)"
    assert words_of(mixed) == "mixed (post hoc)"
    assert words_of(fact) == "opposite"
    size = "0.020 [0.010, 0.030] nats (2.000 against 1.000), n = 12"
    assert finding(one) == f"{size}; expected: within 0.01, p = 0.000100"
    assert finding(fact) == "0.500 nats, n = 3"
    assert finding(RUN.verdicts[-1]) == "no data"


def test_claims_are_counted_by_what_decides_them_and_questions_are_not():
    facts, trained = scoreboard({"this run": RUN}).rows
    assert facts[1:] == (0, 1, 0, 0, 0, 1)
    assert trained[1:] == (1, 0, 1, 1, 1, 4)
    found = totals(RUN)
    assert (found["assertions"], found["questions"], found["answers"]) == (5, 1, {"no": 1})
    assert (found["decided"], found["post_hoc"], found["facts"], found["comparisons"]) == (
        3,
        2,
        1,
        4,
    )
    assert by_statement(RUN)["count"]["mixed"] == 1


def test_tables_have_a_row_per_statement_and_per_dispute():
    rows = claims_table(RUN).texts()
    assert [row[2] for row in rows][1:4] == ["mixed (post hoc)", "opposite", "not testable here"]
    assert rows[1][5] == "otherwise: longer"
    assert rows[3][5] == "It takes years."
    (pair,) = dispute_table(RUN).texts()
    assert pair == [
        *("It is claimed. (A. Author 2026)", "as claimed (post hoc, smaller than theirs)"),
        *("It is fact. (A. Author 2026)", "opposite"),
    ]


def test_a_card_shows_comparisons_with_data_and_names_the_others():
    trace = {"test": "paper.yaml: mixed", "tables": ["main.chosen"], "code": ["here"]}
    mixed = cards(RUN, {"mixed": trace})[1]
    assert [one["name"] for one in mixed["comparisons"]] == ["main", "longer"]
    assert mixed["lacking"] == ["alone", "no worse"]
    assert mixed["command"] == "snakemake --cores 4 results/main/tables/chosen.csv"
    facts = dict(mixed["comparisons"][1]["facts"])
    assert facts["models"] == "rmsnorm - layernorm; protocol long, placement pre"
    assert facts["expected"] == "within 0.01"
    assert dict(mixed["facts"])["otherwise"] == "longer"
    empty = cards(RUN, {})[-1]
    assert (empty["has_data"], empty["comparisons"]) == (False, [])


def test_a_run_is_compared_with_the_evidence_where_both_have_the_same_test():
    other = verdict("claimed", OPPOSITE)
    kept = RUN.model_copy(update={"verdicts": [other, verdict("empty", CLAIMED)]})
    evidence = Evidence("config/paper.yaml", False, kept)
    words = evidence_words(RUN, evidence)
    assert [one["there"] for one in words["differing"]] == ["opposite (post hoc)"]
    assert words["alone"] == 1
    facts = [dict(card["facts"])["evidence"] for card in cards(RUN, {}, evidence)]
    assert facts[0] == "opposite (post hoc)"
    assert facts[1] == "not in the evidence"
