"""Disputes: statements that cannot both hold, as every page shows them."""

import pytest
from page_recipes import REPORT, claim, ledger, reading, traces, unasked

from normscope.pages.disputes import dispute_table, disputes
from normscope.pages.frame import Frame, collect
from normscope.pages.template import summary_text

SHARED = {"readings": ["stated", "stated"], "case": "small", "reads": ["holds", "fails"]}
SHARED |= {"effect": 0.25, "low": 0.125, "high": 0.5, "n": 6, "n_unit": "seeds"}


def stated(one: str, other: str, **changes: bool) -> dict:
    """Two statements of these verdicts that contradict each other."""
    first = claim(verdict=one, readings={"stated": reading(quote="norms do help")}, **changes)
    words = {"key": "b", "statement": "Norms harm.", "document": "questions"}
    second = unasked(**words) if other == "unasked" else claim(verdict=other, **words)
    made = ledger(first, second)
    return made | {"disputes": [{"statements": ["a", "b"], "shared": [SHARED]}]}


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("holds", "holds"), "Both hold in this run, although they cannot both be true"),
        (("holds", "fails"), "supports “Norms help.”"),
        (("undecided", "holds"), "supports “Norms harm.”"),
        (("fails", "fails"), "Neither holds"),
        (("undecided", "fails"), "does not settle it"),
        (("depends", "undecided"), "does not settle it"),
    ],
)
def test_an_outcome_follows_from_both_verdicts(verdicts, words):
    made = stated(*verdicts)
    (dispute,) = disputes(made, traces(made, "x"))
    assert words in dispute["outcome"]
    assert [side["verdict"] for side in dispute["sides"]] == list(verdicts)
    assert [side["quote"] for side in dispute["sides"]] == ["norms do help", ""]


def test_a_side_that_was_tested_off_label_or_not_at_all_says_so():
    made = stated("holds", "unasked", off_label=True)
    (dispute,) = disputes(made, traces(made, "x"))
    assert dispute["outcome"] == (
        "Of the two, this run supports “Norms help.” It was tested off-label. "
        "The other one cannot be asked here."
    )
    one, other = dispute["sides"]
    assert (one["verdict"], other["verdict"]) == ("holds, off-label", "cannot be asked here")
    assert (other["quote"], other["finding"]) == ("they do", "What it would take: A thousand GPUs.")
    assert dispute["plots"] == ""


def test_effects_are_plotted_if_both_statements_read_a_table():
    made = stated("holds", "fails")
    places = traces(made, "x")
    assert disputes(made, places)[0]["plots"] == "a b"
    apart = places | {"b": places["b"] | {"tables": ["depth.rates"]}}
    assert disputes(made, apart)[0]["plots"] == ""


def test_the_cases_that_both_sides_test_have_their_numbers():
    (row,) = dispute_table(stated("holds", "fails")).texts()
    assert row == [
        *("stated, small", "0.250 [0.125, 0.500]", "6 seeds"),
        *("A. Author: holds", "Questions: fails"),
    ]


def shown(tmp_path, made: dict) -> str:
    """The part on disputes of the project's summary."""
    printed: Frame = collect({}, made, {}, level=0.95, traces=traces(made, "a.py:1-2"))
    whole = (REPORT / "summary.md").read_text()
    part = whole[whole.index("{% if disputes %}") : whole.index("## Methods")]
    (tmp_path / "summary.md").write_text(f"# Title\n\n{part}")
    return summary_text(tmp_path, tmp_path, printed)


def test_the_summary_shows_a_dispute_and_that_both_hold(tmp_path):
    text = shown(tmp_path, stated("holds", "holds"))
    for words in ("Disputes", "norms do help", "Norms harm.", "0.250", "cannot both be true"):
        assert words in text, words


def test_a_ledger_without_disputes_has_no_such_section(tmp_path):
    assert "Disputes" not in shown(tmp_path, ledger(claim()))
