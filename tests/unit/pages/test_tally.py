"""What became of the assertions, whatever the verdicts are, and how sure that is."""

import json

import pytest
from page_recipes import claim, ledger, opening, reading, shown, traces, unasked

from normscope.formats import INTEGER
from normscope.pages.cards import cards
from normscope.pages.evidence import Evidence, kept_verdict
from normscope.pages.frame import collect
from normscope.pages.section import Section
from normscope.pages.statements import ledger_numbers, ledger_table, outcome, tally_table
from normscope.pages.table import Number
from normscope.pages.tally import totals

FACT = {"p": None, "p_holm": None, "n_unit": "facts"}
NEGATIVE = {"published_verdict": "fails"}
CLAIMS = [
    claim(key="a"),
    claim(key="b", verdict="fails"),
    claim(key="c", verdict="fails", **NEGATIVE, **FACT),
    claim(key="d", verdict="holds", **NEGATIVE, post_hoc="its test was changed"),
    claim(key="e", verdict="depends"),
    claim(key="f", verdict="undecided", post_hoc="its test was changed", p=None),
    claim(key="g", document="questions", verdict="fails"),
    claim(key="h", published_verdict="none", verdict="holds"),
    claim(key="i", verdict="fails", **NEGATIVE, off_label=True, post_hoc="its test was changed"),
    claim(key="j", verdict="undecided", off_label=True),
    claim(key="k", uncompared=True),
    unasked(),
    unasked(key="v", uncompared="lost"),
]


def test_what_is_off_label_or_cannot_be_asked_is_counted_apart_and_questions_are_not_counted():
    """Nor are quotes that were not compared. A negative result that fails is confirmed."""
    assert [outcome(c) for c in CLAIMS[:6]] == [
        *("confirmed", "refuted", "confirmed", "refuted", "depends", "open")
    ]
    row, every = shown(tally_table(ledger(*CLAIMS)))
    assert row.pop("document") == "A. Author"
    assert row == {
        **{"assertions": "8", "confirmed": "2", "refuted": "2", "depends": "1", "open": "1"},
        **{"off-label": "2", "cannot be asked": "1", "confirmed negative results": "1"},
    }
    assert every == {"document": "all documents"} | row


def test_the_error_rate_is_that_of_a_document():
    """Deterministic verdicts are in no family."""
    words = totals(ledger(*CLAIMS))
    names = "assertions negative documents questions tested facts post_hoc".split()
    assert [words[name] for name in names] == [8, 1, 1, 2, 8, 1, 2]
    assert words["answers"] == {"holds": 1, "fails": 1}
    assert words["off_label"] == {"confirmed": 1, "open": 1}
    assert (words["unasked"], words["uncompared"]) == (1, 2)
    assert (words["families"], str(words["family"])) == (2, "10%")
    assert totals(ledger(claim(**FACT)))["families"] == 0


@pytest.mark.parametrize(
    "claims",
    [
        [claim(key=str(i), verdict="undecided", reason=f"reason {i}") for i in range(9)],
        [claim(verdict="holds", published_verdict="none", **FACT)],
        [],
        CLAIMS,
    ],
    ids=["nothing decided", "nothing asserted or tested", "no statement", "all of these"],
)
def test_the_opening_can_be_written_from_any_ledger(claims, tmp_path):
    stated = ledger(*claims)
    frame = collect({"main": Section({}, {})}, stated, {}, level=0.95, traces=traces(stated, "x"))
    words = frame.words["totals"]
    text = opening(tmp_path, frame, "## Methods")
    assert (
        f"Verdicts on the {words['assertions']} assertions of {words['documents']} documents"
        in text
    )
    off_label = "neither for nor against them: 1 confirmed, 1 open."
    for limit in (off_label, "1 more assertion cannot be asked here", "2 more are marked and not"):
        assert (limit in text) == (claims is CLAIMS)
    assert "seeds would" not in json.dumps(frame.cards)  # no power after the fact


@pytest.mark.parametrize("is_one", [True, False])
def test_a_demonstration_says_first_that_it_has_no_findings(is_one, tmp_path):
    stated = ledger(*CLAIMS)
    places = traces(stated, "x")
    frame = collect({}, stated, {}, level=0.95, traces=places, demonstration=is_one)
    first = opening(tmp_path, frame, "## What became")
    assert ("demonstration" in first) == ("make results" in first) == is_one


def test_a_verdict_has_its_limits_wherever_it_is_shown():
    """In the ledger, on its card with the reasons, and in the evidence."""
    small = {"off_label": "small models"}
    some = {"stated": reading(**small), "large": reading()}
    every = {"stated": reading(**small), "longer": reading(**small)}
    rows = {
        "holds, off-label": claim(off_label=True, readings=every),
        "holds": claim(key="b", readings=some),
        "fails, quote not compared (post hoc)": claim(
            key="c", verdict="fails", uncompared=True, post_hoc="its test was changed",
            readings={"stated": reading(uncompared="it is lost")},
        ),
        "cannot be asked here": unasked(regime="giants"),
    }  # fmt: skip
    stated = ledger(*rows.values())
    assert [row["verdict"] for row in shown(ledger_table(stated))] == list(rows)
    made = cards(stated, traces(stated, "x"))
    assert [card["shown"] for card in made] == list(rows)
    off_label, partly, unchecked, giants = (dict(card["facts"]) for card in made)
    assert off_label["off-label"] == "small models"
    assert partly["off-label"] == "stated: small models"
    assert "off-label" not in unchecked
    assert giants == {"published": "holds", "authors' regime": "giants"}
    assert ["quote not compared", "it is lost"] in made[2]["readings"][0]["facts"]
    kept = Evidence("x.yaml", False, stated)
    assert kept_verdict(rows["holds, off-label"], kept) == "holds, off-label"
    why = shown(ledger_table(stated).select("verdict", "why"))[-1]["why"]
    assert why == "A thousand GPUs."


@pytest.mark.parametrize(("is_same", "prefix"), [(True, ""), (False, "in the evidence, ")])
def test_words_that_quote_the_evidence_say_so_in_another_run(is_same, prefix):
    stated = ledger(claim(verdict="fails", differs_because="small models", limits="one text"))
    (card,) = cards(stated, traces(stated, "x"), Evidence("x.yaml", is_same, stated))
    said = [["why it differs", f"{prefix}small models"], ["limits", f"{prefix}one text"]]
    assert [fact for fact in card["facts"] if fact in said] == said
    assert "in the evidence" not in str(cards(stated, traces(stated, "x")))


def test_a_post_hoc_verdict_is_marked_wherever_it_is_shown():
    """In the ledger, on its card with the reason and in its finding, in counts and numbers."""
    one = claim(post_hoc="its test was changed", verdict="fails")
    stated = ledger(one, claim(key="b"))
    assert [row["verdict"] for row in shown(ledger_table(stated))] == [
        "fails (post hoc)",
        "holds",
    ]
    marked, other = cards(stated, traces(stated, "x"))
    assert (marked["shown"], other["shown"]) == ("fails (post hoc)", "holds")
    assert ["post hoc because", "its test was changed"] in marked["facts"]
    assert marked["measured"] == "difference: 0.250 [0.125, 0.500] (6 seeds, post hoc)"
    assert other["measured"] == "difference: 0.250 [0.125, 0.500] (6 seeds)"
    assert totals(stated)["post_hoc"] == 1
    assert kept_verdict(one, Evidence("x.yaml", False, stated)) == "fails (post hoc)"
    assert ledger_numbers(stated)["claims post hoc"] == Number(1, INTEGER)
