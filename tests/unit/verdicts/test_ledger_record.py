"""The ledger as data: what claims.json holds."""

import json

import pytest
from ledger_recipes import RAW, UNFROZEN, book, claim, document, entry, read, two_sided
from normscope.verdicts.case import MIXTURE, Case
from normscope.verdicts.claim import Claim, Finding
from normscope.verdicts.entry import Claims
from normscope.verdicts.judgement import judge
from normscope.verdicts.record import ledger, record

from normscope.io.files import write_json
from normscope.verdicts.frozen import Frozen, Plan

ALPHA = 0.05
HOSTILE = 'a | b\nc <script> & "d" \\textbf{e} $x_1$ 100% [f](g) ~ # \u200bé'
EXACT = two_sided(1 / 3000, effect=1 / 3, low=-2 / 3, high=1e-7 / 3)
ORDER = ["zeta", "alpha", "mid", "beta"]


def kept(book_: Claims, **cases: Case) -> dict:
    """claims.json of statements."""
    claims = [claim(cases.get(key, Case.known(True)), key) for key in book_.entries]
    return ledger(book_, judge(claims, ALPHA), 0.95, UNFROZEN)


def strict(written: dict, path) -> dict:
    """As it is read again: no NaN and no infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    write_json(path, written)
    return json.loads(path.read_text(), parse_constant=refuse)


def test_a_ledger_is_in_the_order_of_its_file(tmp_path):
    written = strict(kept(book(*ORDER), mid=EXACT), tmp_path / "claims.json")
    assert [c["key"] for c in written["claims"]] == ORDER
    assert (written["level"], written["tests"]) == (0.95, 1)
    assert written["documents"]["paper"]["author"] == "A. Author"


def test_numbers_have_9_digits_and_none_is_nan(tmp_path):
    written = strict(kept(book(*ORDER), mid=EXACT), tmp_path / "claims.json")
    claims = {c["key"]: c for c in written["claims"]}
    row = claims["mid"]
    stated = row["readings"]["stated"]
    assert (row["document"], stated["criterion"]) == ("paper", "it is above 0")
    assert (stated["as_published"], stated["corrected"], stated["its_verdict"]) == ("was", "is", "")
    assert (row["effect"], row["low"]) == (0.333333333, -0.666666667)
    assert row["high"] == 3.33333333e-8
    assert (row["p"], row["p_holm"]) == (0.000666666667, 0.000666666667)
    assert row["p_smallest"] == float(f"{2.0**-19:.9g}")
    assert (row["n"], row["n_unit"], row["case"]) == (20, "seeds", "")
    fact = claims["alpha"]
    for name in ("effect", "low", "high", "p", "p_holm", "p_smallest"):
        assert fact[name] is None
    assert fact["readings"]["stated"]["cases"][""]["effect"] is None
    assert "NaN" not in (tmp_path / "claims.json").read_text()


def test_every_case_is_kept_with_what_it_reads():
    cases = {"one": two_sided(0.001), "two": Case.unknown("no data"), "three": Case.known(False)}
    (judged,) = judge([claim(cases, alone="depends")], ALPHA)
    row = record(judged, UNFROZEN)
    stated = row["readings"]["stated"]
    assert {k: v["reads"] for k, v in stated["cases"].items()} == {
        "one": "holds",
        "two": "no data",
        "three": "fails",
    }
    assert stated["cases"]["one"]["effect"] == 1.0
    assert (row["verdict"], row["case"], stated["alone"]) == ("fails", "three", "depends")
    (judged,) = judge([claim(cases)], ALPHA)
    words = "by case: holds for one; no data for two; fails for three"
    assert record(judged, UNFROZEN)["readings"]["stated"]["alone"] == words


@pytest.mark.parametrize("published", ["holds", "fails"])
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
def test_a_verdict_has_its_limits_and_why_it_may_differ_whatever_it_is(case, verdict, published):
    (judged,) = judge([claim(case, published={"verdict": published}, limits="one size")], ALPHA)
    row = record(judged, UNFROZEN)
    assert row["verdict"] == verdict
    assert (row["differs_because"], row["limits"]) == ("one seed", "one size")
    assert row["reason"] == judged.why
    assert bool(judged.why) == (verdict == "undecided")


def test_hostile_text_passes_unchanged(tmp_path):
    words = {"statement": HOSTILE, "quantity": HOSTILE, "where": HOSTILE}
    words |= {"criterion": HOSTILE.replace("{e}", "e"), "differs_because": HOSTILE}
    b = book("a", **words, published={"number": HOSTILE, "verdict": "fails"})
    one = claim({HOSTILE: EXACT}, "a", **words, published={"number": HOSTILE, "verdict": "fails"})
    written = strict(ledger(b, judge([one], ALPHA), 0.95, UNFROZEN), tmp_path / "claims.json")
    (row,) = written["claims"]
    kept = ("statement", "quantity", "where", "differs_because", "published_number")
    assert {row[key] for key in kept} == {HOSTILE}


def test_a_statement_that_depends_says_on_what():
    (judged,) = judge([read(Case.known(True), Case.known(False))], ALPHA)
    row = record(judged, UNFROZEN)
    assert (row["verdict"], row["reason"]) == ("depends", "a holds; b fails")
    assert (row["differs_because"], row["limits"]) == ("one seed", "")
    assert list(row["readings"]) == ["a", "b"]


FORMULA = {"unit": "formula", "test": "fact"}
HELD, DATA = Case.known(True), "its data existed before its test"


@pytest.mark.parametrize(
    ("other", "cases", "why"),
    [
        # a formula has no data, and leaves the mark to the models
        ({}, (HELD, two_sided(0.01, seeds=(1, 2))), ""),
        ({}, (HELD, two_sided(0.01)), DATA),
        ({}, (HELD, Case.unknown("no data")), ""),
        # models that failed are data, which cannot be tested
        ({}, (HELD, Case(open=MIXTURE, seeds=(1, 2))), ""),
        ({"unit": "prompt"}, (HELD, two_sided(0.01, unit="prompt")), DATA),
        (FORMULA, (HELD, HELD), ""),
        (FORMULA, (HELD, Case.known(False, seeds=(1, 2))), ""),
    ],
)
def test_a_formula_does_not_make_a_statement_about_models_post_hoc(other, cases, why):
    digest, settings = "0" * 16, "1" * 64
    frozen = Frozen(commit="a" * 40, settings={"a.yaml": settings}, statements={"key": digest})
    findings = {name: Finding({"": case}) for name, case in zip("ab", cases, strict=True)}
    made = Claim("paper", "key", entry(readings={"a": FORMULA, "b": other}), findings)
    (judged,) = judge([made], ALPHA)
    assert record(judged, Plan({"key": digest}, frozen, settings))["post_hoc"] == why
    is_known = any(case.n or case.seeds for case in cases[1:])
    is_model = other is not FORMULA or bool(cases[1].seeds)
    unregistered = record(judged, UNFROZEN)["post_hoc"]
    assert bool(unregistered) == (is_known and is_model)


SIDES = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a"}, "less": {"arm": "b"}}


@pytest.mark.parametrize("named_by", ["zeta", "mid"])
def test_a_dispute_is_one_whichever_side_names_the_other(named_by):
    other = {"zeta": "mid", "mid": "zeta"}[named_by]
    entries = dict.fromkeys(ORDER, RAW | {"contrast": SIDES})
    entries[named_by] = entries[named_by] | {"contradicts": [other, "of_no_file"]}
    book_ = Claims({"paper": document(entries)})
    written = kept(book_, zeta=EXACT, mid=EXACT)
    assert {c["key"]: c["contradicts"] for c in written["claims"]} == {
        **{"zeta": ["mid"], "alpha": [], "mid": ["zeta"], "beta": []}
    }
    (dispute,) = written["disputes"]
    assert dispute["statements"] == ["zeta", "mid"]
    (shared,) = dispute["shared"]
    assert (shared["readings"], shared["reads"]) == (["stated"] * 2, ["holds"] * 2)
    assert (shared["effect"], shared["n"]) == (0.333333333, 20)


def test_a_statement_is_off_label_if_all_readings_that_decide_are():
    known = Case.known(True)
    for limits, off_label in (
        ([{"off_label": "small"}, {"off_label": "short"}], True),
        ([{"off_label": "small"}, {}], False),
        ([{"off_label": "small"}, {"reach": "a", "off_label": None}], True),  # without models
    ):
        one = read(known, known)
        readings = dict(zip("ab", limits, strict=True))
        one = Claim("paper", "key", entry(readings=readings), one.findings)
        (judged,) = judge([one], ALPHA)
        row = record(judged, UNFROZEN)
        assert (row["verdict"], row["off_label"], row["uncompared"]) == ("holds", off_label, False)


def test_one_quote_that_was_not_compared_marks_its_statement():
    one = Claim(
        "paper",
        "key",
        entry(readings={"a": {}, "b": {"uncompared": "it is lost"}}),
        read(Case.known(True), Case.known(True)).findings,
    )
    (judged,) = judge([one], ALPHA)
    assert record(judged, UNFROZEN)["uncompared"] is True


def test_refinements_and_disputes_are_told_from_both_sides_also_if_one_cannot_be_asked():
    giants = {"where": "page 2", "statement": "So do giants.", "quote": "giants do"}
    giants |= {"cannot_be_asked": "a thousand GPUs", "refines": ["one", "of_no_file"]}
    entries = {"one": RAW, "giants": giants | {"contradicts": ["two"]}, "two": RAW}
    written = kept(Claims({"paper": document(entries)}), one=EXACT, two=EXACT)
    one, two = written["claims"]
    (giants,) = written["unasked"]
    assert (one["refined_by"], one["refines"], two["contradicts"]) == (["giants"], [], ["giants"])
    assert (giants["refines"], giants["contradicts"]) == (["one"], ["two"])
    assert (giants["cannot_be_asked"], giants["quote"]) == ("a thousand GPUs", "giants do")
    assert written["disputes"] == [{"statements": ["giants", "two"], "shared": []}]
    assert one["tests"] == 2  # of the family


@pytest.mark.parametrize(
    "change",
    [{"cells": {"arm": "c"}}, {"less": {"arm": "c"}}, {"measure": "other"}, {"each": ["depth"]}],
)
def test_statements_on_other_models_share_no_case(change):
    entries = {
        "one": RAW | {"contrast": SIDES, "contradicts": ["two"]},
        "two": RAW | {"contrast": SIDES | change},
    }
    (dispute,) = kept(Claims({"paper": document(entries)}), one=EXACT, two=EXACT)["disputes"]
    assert dispute["shared"] == []
