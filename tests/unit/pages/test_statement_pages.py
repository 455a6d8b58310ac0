"""Verdicts as tables, counts, answers and cards: what a reader is told of each."""

from verdicts.test_document import ENTRY

from normscope.pages.cards import cards
from normscope.pages.evidence import complete
from normscope.pages.findings import words
from normscope.pages.statements import by_statement, claims_table, scoreboard, totals, why
from normscope.verdicts.document import Head, Statement
from normscope.verdicts.findings import Findings
from normscope.verdicts.test import Result
from normscope.verdicts.verdict import Quantity, Verdict, Verdicts

CLAIMED = Result(outcome="as claimed", effect=0.02, low=0.01, high=0.03, n=12, p=1e-4, means=(2, 1))
OPPOSITE = Result(outcome="opposite", effect=0.1, low=0.05, high=0.15, n=12, p=1e-3)
OPEN = Result(reason="p = 0.1", effect=0.01, low=-0.01, high=0.03, n=12, p=0.1, enough=61)
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


def run(*verdicts: Verdict) -> Verdicts:
    head = Head(title="A paper", by="A. Author 2026", link="https://example.org")
    return Verdicts(level=0.95, documents={"paper": head}, verdicts=list(verdicts))


UNTESTABLE = {"measure": None, "models": {}, "compare": "", "expect": None, "also": {}}
RUN = run(
    verdict("claimed", CLAIMED, ours="smaller models"),
    verdict("mixed", CLAIMED, OPPOSITE),
    verdict("fact", FACT, also={}),
    verdict("untestable", NONE, **UNTESTABLE, note="It takes years."),
    verdict("asked", OPPOSITE, says="Is it?"),
    verdict("empty", NONE),
)


def test_claims_are_counted_by_what_decides_them_and_questions_are_not():
    facts, trained = scoreboard({"this run": RUN}).rows
    assert facts[1:] == (0, 1, 0, 0, 0, 1)
    assert trained[1:] == (1, 0, 1, 1, 1, 4)
    found = totals(RUN)
    assert (found["assertions"], found["questions"], found["comparisons"]) == (5, 1, 4)
    assert list(found["words"]) == "as claimed,opposite,mixed,undecided,not testable here".split(
        ","
    )
    assert by_statement(RUN)["count"]["mixed"] == 1


def test_the_surest_claims_come_first():
    table = claims_table(RUN, run(verdict("mixed", OPPOSITE)))
    assert [row[4] for row in table.texts()] == ["high", *["moderate"] * 3, "low", "low"]
    assert [row[5] for row in table.texts()][:3] == ["–", "–", "opposite"]
    assert table.texts()[2][:4] == [
        *("It is mixed.", "A. Author 2026", "mixed", "0.020 [0.010, 0.030] nats"),
    ]


def test_a_verdict_says_what_disagrees_or_would_decide_it():
    mixed = "as claimed in the main comparison (expected: within 0.01, p = 0.000100); "
    assert why(RUN.verdicts[1]) == f"{mixed}opposite for longer"
    assert why(verdict("a", OPEN)) == (
        "expected: within 0.01; p = 0.1; about n = 61 would decide it"
    )
    assert "no n below 1,000" in why(verdict("a", OPEN.model_copy(update={"enough": 1001})))
    assert why(RUN.verdicts[-1]) == "no data"


def findings_on(outcome: str) -> Findings:
    answer = {"says": "By {effect}, {0}.", "statement": "claimed", "outcome": outcome}
    question = {"asks": "Why?", "found": "So", "figure": "loss", "answers": [answer]}
    question["published"] = [{"did": "It did.", "figure": "gain", "corrected": answer}]
    question |= {"statements": ["mixed"], "contradictions": [("mixed", "fact")]}
    return Findings.model_validate({"questions": {"why": question}})


def answer_of(findings: Findings, here: Verdicts, evidence: Verdicts | None) -> tuple:
    (question,) = words(findings, here, evidence, ["gain"])["questions"]
    (answer,) = question["answers"]
    return question["found"], answer["says"], answer["is_kept"], answer["here"]


def test_an_answer_stands_with_numbers_only_where_its_outcome_came_out():
    says = "By 0.020 [0.010, 0.030] nats, 2.000 (n = 12)."
    assert answer_of(findings_on("as claimed"), RUN, None) == ("So", says, False, "")
    empty, undecided = (run(verdict("claimed", result)) for result in (NONE, OPEN))
    assert answer_of(findings_on("as claimed"), empty, RUN) == ("So", says, True, "")
    plain = "It is claimed. 0.010 [−0.010, 0.030] nats, n = 12: undecided"
    assert answer_of(findings_on("as claimed"), undecided, RUN) == ("So", says, True, plain)
    plain = "It is claimed. 0.020 [0.010, 0.030] nats, n = 12: as claimed"
    kept = run(verdict("claimed", OPPOSITE))
    assert answer_of(findings_on("opposite"), RUN, kept) == ("", "", False, plain)


def test_a_document_is_shown_with_the_first_figure_of_the_page_and_its_corrected_sentence():
    (question,) = words(findings_on("as claimed"), RUN, None, ["gain"])["questions"]
    (document,) = question["documents"]
    assert (document["figure"], document["document"]) == ("gain", "A. Author 2026")
    assert document["says"] == question["answers"][0]["says"]


def test_the_evidence_completes_a_run_where_it_has_no_data():
    other = verdict("untestable", CLAIMED).model_copy(update={"digest": "another test"})
    kept = run(verdict("empty", CLAIMED), other)
    whole, keys = complete(RUN, kept, ["empty"])
    assert keys == ["empty"]
    assert [one.word for one in whole.verdicts][:2] == ["as claimed", "as claimed"]
    card, _, mixed, *_ = cards(whole, {}, findings_on("opposite"), keys)
    assert (card["key"], card["is_kept"], card["of"]) == ("empty", True, "")
    assert (mixed["of"], mixed["contradicts"]) == ("why", [{"key": "fact", "claim": "It is fact."}])
