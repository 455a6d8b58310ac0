"""Cards: what was measured and needed, and where the effect lies on the common scale."""

import math
from typing import Any

import pytest
from normscope.pages.position import FAR, Mark, scale_of, share
from page_recipes import CASE, claim, ledger, reading, traces, unasked

from normscope.pages.cards import cards, finding, plot_of
from normscope.pages.evidence import Evidence
from normscope.pages.statements import ledger_table


def at(value: float | None, low: float | None = None, high: float | None = None) -> dict:
    return CASE | {"effect": value, "low": low, "high": high, "reads": "holds"}


def marked(*values: float, **test: Any) -> Mark:
    """Where a reading has this effect, with its interval."""
    scale = scale_of(reading(**test))
    assert scale is not None
    mark = scale.mark(at(*values))
    assert mark is not None
    return mark


@pytest.mark.parametrize(
    ("test", "value", "position", "holds", "needs"),
    [
        # in units of the margin, in the direction of the statement
        ({"margin": 0.05}, 0.1, 2, (1, math.inf), "more than 0.0500"),
        ({"margin": 0.05, "direction": "less"}, 0.1, -2, (1, math.inf), "less than −0.0500"),
        ({"bound": 1.0, "margin": 0.5, "direction": "within"}, 1.25, 0.5, (-1, 1), "0.500 to 1.50"),
        # factors: 4 is two margins of 2 from 1
        ({"bound": 1.0, "margin": 2.0, "scale": "log"}, 4, 2, (1, math.inf), "more than 2.00"),
        # without a margin, the bound's distance from no difference is the unit
        ({"bound": 0.9, "direction": "less"}, 0.45, 0.5, (0, math.inf), "less than 0.900"),
        (
            {"bound": 0.1, "scale": "log", "direction": "less"},
            0.01,
            1,
            (0, math.inf),
            "less than 0.100",
        ),
        # without either, the quantity's own: a nat, or a factor of two
        ({}, 0.25, 0.25, (0, math.inf), "more than 0"),
        ({"bound": 1.0, "scale": "log"}, 8, 3, (0, math.inf), "more than 1.00"),
        ({"bound": None, "scale": "log"}, 0.5, -1, (0, math.inf), "more than 1.00"),
    ],
)
def test_a_position_counts_units_from_the_bound(test, value, position, holds, needs):
    scale = scale_of(one := reading(**test))
    assert scale is not None
    assert marked(value, **test).at == pytest.approx(position)
    assert scale.holds == holds
    assert scale.is_own == (not one["margin"] and one["bound"] in (None, 0 if position < 1 else 1))
    assert finding(claim(readings={"stated": one})).endswith(f"; the statement needs {needs}.")


def test_a_statement_without_data_names_its_quantity_once():
    """A quantity that is printed twice, and data in any case of any reading, are found."""
    none = CASE | dict.fromkeys(("effect", "low", "high")) | {"n": 0, "extents": []}
    empty = reading(corrected="difference: no data", alone="no data", cases={"": none})
    one = claim(**none, readings={"stated": empty, "other": empty})
    stated = ledger(one, unasked())
    card, unknown = cards(stated, traces(stated, "a"))
    assert card["finding"] == "difference: no data; the statement needs more than 0."
    assert not card["has_data"]
    assert unknown["has_data"]  # what it would take is printed
    half = one | {"readings": {"stated": empty, "other": reading()}}
    stated = ledger(half)
    (partly,) = cards(stated, traces(stated, "a"))
    assert partly["has_data"]
    assert partly["finding"].startswith("difference: no data (stated); ")


@pytest.mark.parametrize(("verdict", "color"), [("undecided", "undecided"), ("depends", "holds")])
def test_the_mark_that_decides_has_the_color_of_the_verdict_unless_readings_differ(verdict, color):
    one = claim(verdict=verdict, readings={"stated": reading()})
    plot = plot_of(one)
    assert plot is not None
    assert [(mark["reads"], mark["decides"]) for mark in plot["marks"]] == [(color, True)]


def test_intervals_turn_with_their_statement_and_some_readings_have_no_scale():
    mark = marked(1, 0.5, 2, direction="less", margin=0.5)
    assert mark == (-2, -4, -1)
    assert scale_of(reading(direction=None)) is None
    assert scale_of(reading(test="fact")) is None
    scale = scale_of(reading())
    assert scale is not None
    assert scale.mark(at(None)) is None
    assert marked(0, scale="log", bound=1.0).at < -FAR


EXTENTS = [
    {"blocks": 2, "d": 64, "steps": 300, "text": "dataset"},
    {"blocks": 4, "d": 128, "steps": 2000, "text": "austen"},
]


@pytest.mark.parametrize(
    ("extents", "with_size", "words"),
    [
        (
            EXTENTS,
            "grows",
            "2 to 4 blocks, d 64 to 128, 300 to 2,000 steps, 2 texts (austen, dataset); the effect "
            "grows with size",
        ),
        (
            EXTENTS[:1],
            "grows and changes between 2 x 64 (300 steps) and 2 x 64 (800 steps)",
            "2 blocks, d 64, 300 steps, 1 text (dataset); the effect grows and changes between "
            "2 x 64 (300 steps) and 2 x 64 (800 steps)",
        ),
        (EXTENTS[:1], "one size", "2 blocks, d 64, 300 steps, 1 text (dataset); one size"),
        ([], "", None),
    ],
)
def test_a_card_says_how_far_its_verdict_reaches(extents, with_size, words):
    """A reading of other models has the test of the other one, and says in what it differs."""
    other = reading(reach="stated", quote="Norms help.", restated="At 2 x 64.")
    one = claim(reach=extents, with_size=with_size)
    one["readings"]["longer"] = other
    stated = ledger(one)
    (card,) = cards(stated, traces(stated, "words"))
    assert dict(card["facts"]).get("reach") == words
    _, longer = card["readings"]
    assert (longer["name"], longer["quote"]) == ("longer", "")
    plain = ["in plain words", "At 2 x 64."]
    assert longer["facts"] == [
        plain,
        ["test", "that of stated, of other models"],
        ["measured", "is"],
    ]
    (row,) = ledger_table(stated).texts()
    assert (words or "–") in row


def test_a_card_says_how_cases_are_taken_together_and_which_of_them_decides():
    some = reading(holds_in="any", refutable=False, corrected="difference: 1")
    every = reading(quantity="other", corrected="other: 2")
    one = claim(readings={"stated": some, "other": every}, case="2 blocks", primary=True)
    stated = ledger(one)
    (card,) = cards(stated, traces(stated, "x"))
    tests = [dict(part["facts"])["test"] for part in card["readings"]]
    assert [dict(part["facts"])["measured"] for part in card["readings"]] == ["1", "other: 2"]
    whole = "it is above 0; it holds if one of its cases does, and cannot fail"
    assert tests == [whole, "it is above 0"]
    assert card["measured"].endswith("(stated, 2 blocks, 6 seeds)")
    assert "a main claim of the document" in dict(card["facts"])["published"]
    (row,) = ledger_table(stated).select("effect").texts()
    assert row[0].endswith("(stated, 2 blocks)")


@pytest.mark.parametrize(
    ("verdict", "term"),
    [("holds", "note"), ("undecided", "why it may differ"),
     ("fails", "why it differs"), ("depends", "why it differs")],
)  # fmt: skip
def test_why_a_verdict_differs_and_its_limits_are_on_cards_and_in_the_ledger(verdict, term):
    one = claim(verdict=verdict, differs_because="small models", limits="one text", reason="p")
    stated = ledger(one)
    (card,) = cards(stated, traces(stated, "x"))
    assert [card_fact for card_fact in card["facts"] if card_fact[0] in (term, "limits")] == [
        [term, "small models"],
        ["limits", "one text"],
    ]
    (row,) = ledger_table(stated).select("why").texts()
    assert row == [f"p; {term}: small models; limits: one text"]
    asked = ledger(one | {"published_verdict": "none"})
    (row,) = ledger_table(asked).select("why").texts()
    assert row == ["p; limits: small models; one text"]


def test_the_axis_is_symmetric_and_ends_at_the_edge():
    assert [share(x) for x in (-math.inf, 0, math.inf)] == [0, 0.5, 1]
    shares = [share(x) for x in (-3, -1, 0, 1, 3, 10, 100)]
    assert shares == sorted(set(shares))
    assert share(3) + share(-3) == 1


def test_all_cases_of_all_readings_are_marked_and_the_deciding_one_is_last():
    cases = {"deep": at(2, 1, 3), "flat": at(1) | {"reads": "undecided: few"}}
    readings = {
        "stated": reading(cases=cases, margin=1.0, margin_because="one"),
        "other": reading(direction=None, cases={"": at(5)}),
        "strict": reading(direction="less", cases={"": at(2) | {"reads": "fails"}}),
    }
    one = claim(readings=readings, case="deep", verdict="depends")
    plot = plot_of(one)
    assert plot is not None
    assert plot["holds"] == [share(1), 1]
    assert [(m["reads"], m["decides"]) for m in plot["marks"]] == [
        *(("undecided", False), ("fails", False), ("holds", True))
    ]
    assert plot["marks"][1]["at"] == share(-2)
    (card,) = cards(ledger(one), traces(ledger(one), "x"))
    assert [(r["name"], r["decides"]) for r in card["readings"]] == [
        *(("stated", True), ("other", False), ("strict", False))
    ]
    assert ["its numbers", "margin 1: one"] in card["readings"][0]["facts"]
    assert plot_of(claim(readings={"stated": readings["other"]})) is None


@pytest.mark.parametrize("is_same", [True, False])
def test_the_command_names_the_configuration_if_both_runs_have_it(is_same):
    first = claim(contradicts=["b"], refines=["b"], refined_by=["u"])
    stated = ledger(first, claim(key="b", statement="No.", digest="1"), unasked())
    kept = ledger(claim(), claim(key="b", verdict="fails"))
    one, two, _ = cards(stated, traces(stated, "x"), Evidence("config/paper.yaml", is_same, kept))
    alone = "snakemake --cores 4 results/main/tables/runs.csv"
    assert one["command"] == alone + " --configfile config/paper.yaml" * is_same
    said = {"contradicts": "“No.”", "refines": "“No.”", "refined by": "“Norms help giants.”"}
    assert dict(one["facts"]).items() >= said.items()
    assert ["evidence", "holds"] in one["facts"]
    assert ["evidence", "fails, by another test"] in two["facts"]
