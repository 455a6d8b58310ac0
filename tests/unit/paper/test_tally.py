"""What became of the assertions, whatever the verdicts are, and how sure that is."""

import json

import pytest
from page_recipes import claim, ledger, opening, shown, traces

from normscope.paper.cards import cards
from normscope.paper.evidence import Evidence, kept_verdict
from normscope.paper.frame import collect
from normscope.paper.section import Section
from normscope.paper.statements import ledger_numbers, ledger_table, outcome, tally_table
from normscope.paper.tally import totals

FACT = {"p": None, "p_holm": None, "p_ledger": None, "status": "deterministic"}
NEGATIVE = {"published_verdict": "fails"}
CLAIMS = [
    claim(key="a", p_ledger=0.04),
    claim(key="b", verdict="fails"),
    claim(key="c", verdict="fails", **NEGATIVE, **FACT),
    claim(key="d", verdict="holds", **NEGATIVE, status="exploratory"),
    claim(key="e", verdict="depends", p_ledger=0.051),
    claim(key="f", verdict="undecided", status="exploratory", p_ledger=None),
    claim(key="g", document="questions", verdict="fails", p_ledger=0.001),
    claim(key="h", published_verdict="none", verdict="holds"),
]


def test_an_authors_negative_result_that_fails_too_is_confirmed_and_questions_are_not_counted():
    assert [outcome(c) for c in CLAIMS[:6]] == [
        *("confirmed", "refuted", "confirmed", "refuted", "depends", "open")
    ]
    row, every = shown(tally_table(ledger(*CLAIMS)))
    assert row.pop("document") == "A. Author"
    assert row == {
        **{"assertions": "6", "confirmed": "2", "refuted": "2", "depends": "1", "open": "1"},
        "confirmed negative results": "1",
    }
    assert every == {"document": "all documents"} | row


def test_the_error_rate_is_that_of_a_document_and_of_the_whole_ledger():
    """At 5%, a p of 0.051 does not stand; deterministic verdicts are in no family."""
    words = totals(ledger(*CLAIMS))
    names = "assertions negative documents questions tested whole facts exploratory".split()
    assert [words[name] for name in names] == [6, 1, 1, 2, 6, 2, 1, 1]
    assert words["answers"] == {"holds": 1, "fails": 1}
    assert (words["families"], str(words["family"])) == (2, "10%")
    assert totals(ledger(claim(**FACT)))["families"] == 0


@pytest.mark.parametrize(
    "claims",
    [
        [claim(key=str(i), verdict="undecided", reason=f"reason {i}") for i in range(9)],
        [claim(verdict="holds", published_verdict="none", **FACT)],
        [],
    ],
    ids=["nothing decided", "nothing asserted or tested", "no statement"],
)
def test_the_opening_can_be_written_from_any_ledger(claims, tmp_path):
    stated = ledger(*claims)
    frame = collect({"main": Section({}, {})}, stated, {}, level=0.95, traces=traces(stated, "x"))
    words = frame.words["totals"]
    text = opening(tmp_path, frame, "## Methods")
    assert f"Of the {words['assertions']} assertions of {words['documents']} documents" in text
    assert ("whole ledger at 5%" in text) == bool(words["tested"])
    assert "seeds would" not in json.dumps(frame.cards)  # no power after the fact


@pytest.mark.parametrize("is_one", [True, False])
def test_a_demonstration_says_first_that_it_has_no_findings_and_has_none(is_one, tmp_path):
    stated = ledger(*CLAIMS)
    places = traces(stated, "x")
    frame = collect({}, stated, {}, level=0.95, traces=places, demonstration=is_one)
    first = opening(tmp_path, frame, "## What became")
    assert ("demonstration" in first) == ("make results" in first) == is_one
    assert ("A finding." in first) == (not is_one)


def test_an_exploratory_verdict_is_marked_wherever_it_is_shown():
    """In the ledger, on its card with the reason and in its finding, in counts and numbers."""
    one = claim(status="exploratory", exploratory_because="its test was changed", verdict="fails")
    stated = ledger(one, claim(key="b"))
    assert [row["verdict"] for row in shown(ledger_table(stated))] == ["fails (exploratory)", "holds"]
    marked, other = cards(stated, traces(stated, "x"))
    assert (marked["shown"], other["shown"]) == ("fails (exploratory)", "holds")
    assert ["exploratory because", "its test was changed"] in marked["facts"]
    assert marked["found"] == "difference: 0.250 [0.125, 0.500] (6 seeds, exploratory)"
    assert other["found"] == "difference: 0.250 [0.125, 0.500] (6 seeds)"
    assert totals(stated)["exploratory"] == 1
    assert kept_verdict(one, Evidence("x.yaml", False, stated)) == "fails (exploratory)"
    assert ("claims exploratory",) in [number.parts for number in ledger_numbers(stated)]
