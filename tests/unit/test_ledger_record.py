"""The ledger as data and as tables: what claims.json holds, and what its words are."""

import json
import math
import re

import pytest
from ledger_recipes import book, claim, entry, two_sided

from normscope.errors import Explained
from normscope.io.files import write_json
from normscope.ledger.case import Case
from normscope.ledger.entry import Claims
from normscope.ledger.judgement import judge
from normscope.ledger.record import claim_table, ledger, ledger_table, record

ALPHA = 0.05
HOSTILE = 'a | b\nc <script> & "d" \\textbf{e} $x_1$ 100% [f](g) ~ # \u200bé'
EXACT = two_sided(1 / 3000, effect=1 / 3, low=-2 / 3, high=1e-7 / 3, g=math.pi)
ORDER = ["zeta", "alpha", "mid", "beta"]


def kept(book_: Claims, **cases: Case) -> dict:
    """claims.json of statements, judged in another order than the file's."""
    claims = [claim(cases.get(key, Case.known(True)), key) for key in sorted(book_.claims)]
    return ledger(book_, judge(claims, ALPHA), 0.95)


def strict(found: dict, path) -> dict:
    """As it is read again: no NaN and no infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    write_json(path, found)
    return json.loads(path.read_text(), parse_constant=refuse)


def test_a_ledger_is_in_the_order_of_its_file(tmp_path):
    found = strict(kept(book(*ORDER), mid=EXACT), tmp_path / "claims.json")
    assert [c["key"] for c in found["claims"]] == ORDER
    assert (found["level"], found["tests"]) == (0.95, 1)
    assert found["documents"]["paper"]["author"] == "A. Author"
    assert ledger_table(found)["statement"].tolist() == ["Norms help."] * 4


def test_a_statement_that_nothing_tests_is_named():
    judged = judge([claim(Case.known(True), "alpha")], ALPHA)
    with pytest.raises(Explained, match="nothing tests these claims: zeta; remove them, or write"):
        ledger(book("alpha", "zeta"), judged, 0.95)


def test_numbers_have_9_digits_and_none_is_nan(tmp_path):
    found = strict(kept(book(*ORDER), mid=EXACT), tmp_path / "claims.json")
    of = {c["key"]: c for c in found["claims"]}
    row = of["mid"]
    assert (row["effect"], row["low"]) == (0.333333333, -0.666666667)
    assert (row["high"], row["hedges_g"]) == (3.33333333e-8, 3.14159265)
    assert (row["p"], row["p_holm"]) == (0.000666666667, 0.000666666667)
    assert row["p_smallest"] == float(f"{2.0**-19:.9g}")
    assert (row["n"], row["n_unit"], row["case"]) == (20, "seeds", "")
    fact = of["alpha"]
    for name in ("effect", "low", "high", "hedges_g", "p", "p_holm", "p_smallest"):
        assert fact[name] is None
    assert fact["cases"][""]["effect"] is None
    assert "NaN" not in (tmp_path / "claims.json").read_text()


def test_every_case_is_kept_with_what_it_reads():
    cases = {"one": two_sided(0.001), "two": Case.unknown("no data"), "three": Case.known(False)}
    (judged,) = judge([claim(cases, found="depends")], ALPHA)
    row = record(judged)
    assert {k: v["reads"] for k, v in row["cases"].items()} == {
        "one": "holds",
        "two": "no data",
        "three": "fails",
    }
    assert row["cases"]["one"]["effect"] == 1.0
    assert (row["verdict"], row["case"], row["alone"]) == ("fails", "three", "depends")
    (judged,) = judge([claim(cases)], ALPHA)
    words = "depends: holds for one; no data for two; fails for three"
    assert record(judged)["alone"] == words


@pytest.mark.parametrize("published", ["holds", "fails", "none"])
@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (two_sided(1e-6), "holds"),
        (two_sided(1 - 1e-6), "fails"),
        (two_sided(0.3), "undecided"),
        (Case.known(True), "holds"),
        (Case.known(False), "fails"),
        (Case.unknown("undecided: runs diverged"), "undecided"),
    ],
)
def test_a_reason_is_given_where_the_verdict_is_not_the_published_one(case, verdict, published):
    (judged,) = judge([claim(case, published={"verdict": published})], ALPHA)
    row = record(judged)
    assert row["verdict"] == verdict
    if verdict == published:
        assert row["reason"] == ""
    elif verdict == "undecided":
        assert row["reason"] == judged.why != ""
    else:
        assert row["reason"] == "one seed"


def test_words_of_the_table():
    published = {"number": "1.5", "verdict": "fails"}
    b = book("a", "b", "c", "d", published=published)
    claims = [
        claim({"deep": EXACT, "flat": two_sided(1e-9)}, "a", published=published),
        claim(Case.known(False, 0.25), "b", published=published),
        claim(two_sided(0.4, n=7, unit="family", smallest=1e-9), "c", published=published),
        claim({}, "d", published=published),
    ]
    table = ledger_table(ledger(b, judge(claims, ALPHA), 0.95))
    columns = "statement|source|published number|published|corrected|effect|n|Hedges g|p (Holm)"
    assert list(table) == [*columns.split("|"), "figure", "why"]
    one, two, three, four = table.to_dict("records")
    assert one["source"] == "A. Author, section 1"
    assert (one["published number"], one["published"], one["corrected"]) == (
        "1.5",
        "fails",
        "holds",
    )
    # of a the largest p decides; 2/3000, the least of two
    assert one["effect"] == "difference: 0.333 [−0.667, 3.33e-08] (deep)"
    assert (one["n"], one["Hedges g"], one["p (Holm)"]) == ("20 seeds", "3.14", "0.00133")
    assert (one["figure"], one["why"]) == ("loss", "one seed")
    assert two["effect"] == "difference: 0.250"
    assert (two["n"], two["p (Holm)"], two["Hedges g"], two["why"]) == ("–", "–", "–", "–")
    assert (three["n"], three["corrected"]) == ("7 families", "undecided")
    assert three["why"] == "p is 0.8, with Holm over 2 tests 0.8"
    assert (four["effect"], four["n"], four["why"]) == ("–", "–", "no data")
    assert not table.map(lambda cell: re.search(r"nan|None", cell) or cell == "").any(axis=None)


def test_what_is_not_published_is_a_dash():
    b = book("a", published={"verdict": "none"})
    judged = judge([claim(Case.known(True), "a", published={"verdict": "none"})], ALPHA)
    (row,) = ledger_table(ledger(b, judged, 0.95)).to_dict("records")
    assert (row["published number"], row["published"], row["corrected"]) == ("–", "–", "holds")
    assert row["why"] == "one seed"


def test_a_document_without_an_author_is_called_by_its_title():
    b = book("a")
    b = b.model_copy(
        update={"documents": {"paper": b.documents["paper"].model_copy(update={"author": None})}}
    )
    judged = judge([claim(Case.known(True), "a")], ALPHA)
    (row,) = ledger_table(ledger(b, judged, 0.95)).to_dict("records")
    assert row["source"] == "On norms, section 1"


def test_hostile_text_passes_unchanged(tmp_path):
    words = {"statement": HOSTILE, "quantity": HOSTILE, "where": HOSTILE}
    words |= {"criterion": HOSTILE.replace("{e}", "e"), "differs_because": HOSTILE}
    b = book("a", **words, published={"number": HOSTILE, "verdict": "fails"})
    one = claim({HOSTILE: EXACT}, "a", **words, published={"number": HOSTILE, "verdict": "fails"})
    found = strict(ledger(b, judge([one], ALPHA), 0.95), tmp_path / "claims.json")
    (row,) = found["claims"]
    assert {row[k] for k in ("statement", "quantity", "where", "reason", "published_number")} == {
        HOSTILE
    }
    (shown,) = ledger_table(found).to_dict("records")
    assert (shown["statement"], shown["why"]) == (HOSTILE, HOSTILE)
    assert shown["effect"] == f"{HOSTILE}: 0.333 [−0.667, 3.33e-08] ({HOSTILE})"
    (told,) = claim_table(found, ["paper"]).to_dict("records")
    assert told["claim"] == HOSTILE


def test_a_table_of_statements_is_of_its_documents_and_has_no_empty_column():
    b = book("a", "b")
    two = b.claims["b"].model_copy(update={"document": "other"})
    both = {"paper": b.documents["paper"], "other": b.documents["paper"]}
    b = b.model_copy(update={"documents": both, "claims": {"a": b.claims["a"], "b": two}})
    judged = judge([claim(Case.known(True), "a"), claim(two_sided(0.4), "b", own="holds")], ALPHA)
    by_document = [judged[0], judged[1]]
    object.__setattr__(by_document[1].claim, "entry", two)
    found = ledger(b, by_document, 0.95)
    table = claim_table(found, ["paper"])
    assert list(table) == ["claim", "test", "as published", "corrected", "verdict"]
    assert table.to_numpy().tolist() == [["Norms help.", "it is above 0", "was", "is", "holds"]]
    table = claim_table(found, ["other", "paper"])
    assert list(table)[3] == "its verdict"
    assert table["its verdict"].tolist() == ["", "holds"]
    assert table["verdict"].tolist() == ["holds", "undecided: p is above 0.05"]
    assert claim_table(found, ["none"]).empty


def test_a_record_has_what_the_file_says_of_the_test():
    (judged,) = judge([claim(two_sided(0.3))], ALPHA)
    row = record(judged)
    assert row["criterion"] == entry().asks == "it is above 0"
    for name in ("document", "where", "test", "direction", "bound", "scale", "unit", "figure"):
        assert row[name] == getattr(entry(), name)
    assert (row["as_published"], row["corrected"], row["its_verdict"]) == ("was", "is", "")
