"""The opening of the page: findings, open questions with reasons, whatever the verdicts are."""

import pytest
from page_recipes import claim, ledger, opening, shown, traces

from normscope.paper.evidence import Evidence, evidence_columns
from normscope.paper.frame import collect
from normscope.paper.section import Section
from normscope.paper.statements import claims_table, ledger_numbers, ledger_table
from normscope.paper.tally import tally_table, tiles, totals

FACT = {"p": None, "p_holm": None}
CLAIMS = [
    claim(key="a", p_holm=0.0004),
    claim(key="b", p_holm=0.02, verdict="fails"),
    claim(key="c", published_verdict="none", verdict="fails", **FACT),
    claim(key="d", verdict="undecided", reason="few seeds"),
    claim(key="e", verdict="undecided", reason="no data", statement="Of nothing."),
    claim(key="f", verdict="undecided", reason="few seeds"),
]


def test_verdicts_are_counted_and_reasons_listed():
    words = totals(ledger(*CLAIMS), {"e": claim(key="e", verdict="holds")})
    names = "count holds fails undecided published stand tested sure facts".split()
    assert [words[name] for name in names] == [6, 1, 2, 3, 2, 1, 2, 1, 1]
    assert str(words["largest_p"]) == "0.0200"
    assert words["reasons"] == [
        {"why": "few seeds", "count": 2, "statement": "", "kept": ""},
        {"why": "no data", "count": 1, "statement": "Of nothing", "kept": "holds"},
    ]
    (row,) = shown(tally_table(ledger(*CLAIMS)))
    assert row == {
        **{"document": "A. Author", "statements": "6", "holds": "1", "fails": "2"},
        **{"undecided": "3", "as published": "1", "not as published": "1"},
    }


def test_a_tile_is_filled_by_the_number_that_the_text_counts():
    """Also if the printed p equals the limit; and the words give the reason."""
    near = [claim(key=str(p), p_holm=p) for p in (0.00099996, 0.001)]
    drawn = tiles(ledger(*near, *CLAIMS))
    assert [tile["is_sure"] for tile in drawn] == [True, False, True, False, *[True] + [False] * 3]
    assert sum(t["is_sure"] for t in drawn if t["p"]) == totals(ledger(*near, *CLAIMS), {})["sure"]
    assert [tile["sign"] for tile in drawn] == list("===≠·???")
    assert drawn[-2]["words"].startswith("Of nothing. undecided: no data; published: holds; p ")


def test_the_most_certain_contradiction_of_each_document_is_named():
    sure = claim(key="z", verdict="fails", p_holm=0.001, statement="No.")
    (said,) = totals(ledger(*CLAIMS, sure), {})["against"]
    assert (said["statement"], said["document"], said["verdict"]) == ("No", "A. Author", "fails")
    assert said["effect"] == "difference: 0.250 [0.125, 0.500]"
    assert totals(ledger(CLAIMS[0]), {})["against"] == []


@pytest.mark.parametrize(
    "claims",
    [
        [claim(key=str(i), verdict="undecided", reason=f"reason {i}") for i in range(9)],
        [claim(verdict="holds", published_verdict="none", **FACT)],
        [],
    ],
    ids=["nothing decided", "nothing published or tested", "no statement"],
)
def test_the_opening_can_be_written_from_any_ledger(claims, tmp_path):
    stated = ledger(*claims)
    frame = collect({"main": Section({}, {})}, stated, {}, level=0.95, traces=traces(stated, "x"))
    text, words = opening(tmp_path, frame, "The models are trained"), frame.words["totals"]
    assert f"Of {len(claims)} statements, " in text
    is_open = "No statement with a published verdict is decided." in text
    assert is_open == (words["published"] == 0)
    assert sum(reason["count"] for reason in words["reasons"]) + words["more"] == words["undecided"]


@pytest.mark.parametrize("is_one", [True, False])
def test_only_a_demonstration_says_first_that_it_has_no_findings(is_one, tmp_path):
    stated = ledger(*CLAIMS)
    places = traces(stated, "x")
    frame = collect({}, stated, {}, level=0.95, traces=places, demonstration=is_one)
    first, _, rest = opening(tmp_path, frame, "{{ table(").partition(" ## ")
    assert ("demonstration" in first) == ("make results" in first) == is_one
    assert "Of 6 statements, " in (rest if is_one else first)
    assert ("statements" in first) != is_one


CHANGED = {"commit": "497c679", "was": "fails", "why": "the margin was dropped"}


def test_an_exploratory_verdict_is_marked_wherever_it_is_shown():
    """In the ledger and its reasons, among the statements of a study, in tiles and first words."""
    one = claim(changed_after=CHANGED, verdict="fails", alone="fails", reason="few seeds")
    stated = ledger(one, claim(key="b", changed_after=None))
    marked, other = shown(ledger_table(stated))
    reason = "exploratory: its test was changed after its data were seen"
    assert (marked["corrected"], other["corrected"]) == ("fails (exploratory)", "holds")
    assert marked["why"].startswith(reason)
    assert marked["why"].endswith(": the margin was dropped; few seeds")
    for word in ("497c679", "previous verdict: fails"):
        assert word in marked["why"]
    alone, other = shown(claims_table("Statements", stated["claims"]))
    assert alone["verdict"].startswith(f"fails; {reason}")
    assert other["verdict"] == "holds"
    assert [tile["sign"] for tile in tiles(stated)] == ["≠*", "="]
    assert "fails (exploratory)" in tiles(stated)[0]["words"]
    words = totals(stated, {})
    assert words["exploratory"] == 1
    assert words["against"][0]["verdict"] == "fails (exploratory)"
    column, _ = evidence_columns(Evidence("x.yaml", False, {"a": one}))
    assert column.cell(claim()) == "fails (exploratory)"
    assert ("claims exploratory",) in [number.parts for number in ledger_numbers(stated)]
