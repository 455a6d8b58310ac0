"""The files of the ledger: what they may contain, their errors, and published numbers."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from ledger_recipes import PAPER, RAW, entry, reading, text
from processes import ROOT

from normscope.errors import Explained
from normscope.ledger.entry import load
from normscope.studies.pretrained.measures import FIRST_STUDIES
from normscope.studies.pretrained.published import h25_verdict

DATA = ROOT / "data"
PUBLISHED = {k: e.published for k, e in load(sorted(DATA.glob("claims/*.yaml"))).entries.items()}
REFERENCES = pd.read_csv(DATA / "reference_gains.csv")
NAMES = {"GPT-2 XL": "gpt2-xl", "Large": "gpt2-large", "Medium": "gpt2-medium"}
NAMES |= {"Pythia-6.9B": "pythia-6.9b", "GPT-J-6B": "gpt-j-6b", "Gemma-7B": "gemma-7b"}


def refused(place: Path, written: str) -> list[str]:
    """The lines of the error, one for each fault. Every line names the file."""
    path = place / "paper.yaml"
    path.write_text(written)
    with pytest.raises(Explained) as error:
        load([path])
    lines = str(error.value).splitlines()
    assert lines[0].startswith(str(path))
    return lines


def test_what_a_file_says_is_loaded(tmp_path):
    path = tmp_path / "paper.yaml"
    path.write_text(text(published={"number": "1.5"}))
    claims = load([path])
    assert list(claims) == [("paper", "key", entry(published={"number": "1.5"}))]
    assert claims.documents["paper"].author == "A. Author"
    assert claims.entries["key"].published.verdict == "holds"


@pytest.mark.parametrize("name", ["a{b}", "my paper", "Paper"])
def test_a_document_has_a_name_like_a_key(name, tmp_path):
    path = tmp_path / f"{name}.yaml"
    path.write_text(text())
    with pytest.raises(Explained, match="rename it"):
        load([path])


def test_a_key_of_two_documents_is_refused(tmp_path):
    paths = [tmp_path / name for name in ("one.yaml", "two.yaml")]
    for path in paths:
        path.write_text(text())
    with pytest.raises(Explained, match=r"^claims\.key is in the documents one and two: rename"):
        load(paths)


WITHIN: dict[str, Any] = {"test": "equivalence", "direction": "within", "margin": 2.0}
WITHIN |= {"margin_because": "half or twice"}


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"bond": 1.0}, "bond", "did you mean bound?"),
        ({"contrast": {"tabel": "a.b"}}, "contrast.tabel", "did you mean table?"),
        ({"published": {"numbers": "1"}}, "published.numbers", "not permitted"),
        ({"statement": ""}, "statement", "at least 1 character"),
        ({"differs_because": None}, "differs_because", "required"),
        ({"unit": "seed"}, "unit", "'model', 'prompt', 'family' or 'formula'"),
        ({"bound": "0"}, "bound", "number"),
        ({"bound": float("nan")}, "bound", "finite"),
        ({"bound": 0.5, "bound_because": None}, "", "needs bound_because"),
        ({"bound": 0.0, "bound_because": None, "scale": "log"}, "", "has no logarithm"),
        ({"margin": 2.0}, "", "margin and margin_because go together"),
        (WITHIN | {"margin_because": None}, "", "margin and margin_because go together"),
        ({"quote": None}, "", "needs a quote"),
        ({"published": {"verdict": "none"}}, "", "asserts: false"),
        ({"readings": {}}, "readings", "at least 1 item"),
        ({"readings": None}, "readings", "required"),
        ({"readings": {"a-b": {}}}, "readings", "pattern"),
        ({"readings": {"stated": {"bond": 1}}}, "readings.stated.bond", "did you mean bound?"),
        ({"contradicts": ["a", "a"]}, "contradicts", "given twice: a"),
        ({"holds_in": "primary"}, "holds_in", "'all' or 'any'"),
        (WITHIN | {"margin": 0.0}, "margin", "greater than 0"),
        (WITHIN | {"margin": -0.5}, "margin", "greater than 0"),
        (WITHIN | {"margin": 1, "bound": 2, "scale": "log"}, "", "must be above 1"),
        (WITHIN | {"margin": None}, "", "equivalence needs a margin"),
        (WITHIN | {"direction": "less"}, "", "equivalence and direction: within"),
        (WITHIN | {"test": "sign_flip"}, "", "equivalence and direction: within"),
        ({"test": "sign_flip", "direction": None}, "", "sign_flip needs a direction"),
        ({"scale": "log"}, "", "0.0 has no logarithm"),
        ({"scale": "log", "bound": -1.0}, "", "-1.0 has no logarithm"),
        ({"criterion": "above {level}"}, "", "{level} is unknown: only {bound} can be filled in"),
        ({"criterion": "above {bond}"}, "", "did you mean bound?"),
        ({"criterion": "above {0}"}, "", "{0} is unknown"),
        ({"criterion": "above {}"}, "", "{} is unknown"),
        ({"criterion": "above {bound.real}"}, "", "{bound.real} is unknown"),
        ({"criterion": "above {bound[0]}"}, "", "{bound[0]} is unknown"),
        ({"criterion": "above {bound"}, "", "write {{ and }} for braces"),
        ({"criterion": "above bound}"}, "", "write {{ and }} for braces"),
        ({"criterion": "above {bound!r}"}, "", "{bound!r}: a number has no such format"),
        ({"criterion": "above {bound:999999999g}"}, "", "a number has no such format"),
        ({"criterion": "at {margin:g}"}, "", "{margin} is used, and margin is missing"),
        ({"bound": None, "criterion": "{bound}"}, "", "{bound} is used, and bound is missing"),
    ],
)
def test_a_fault_is_named_with_file_key_and_reason(changes, key, reason, tmp_path):
    faults = refused(tmp_path, text(**changes))
    place = ".".join(["claims", "key", *([key] if key else [])])
    assert any(place in line for line in faults)
    assert all(line.startswith(str(tmp_path)) for line in faults)
    assert any(reason in line for line in faults)


def test_every_fault_of_a_file_is_named(tmp_path):
    raw = {"one": RAW | {"unit": "seed"}, "two": RAW | {"bound": "0", "where": ""}}
    written = yaml.safe_dump(PAPER | {"claims": raw})
    faults = refused(tmp_path, written)
    places = [line.removeprefix(f"{tmp_path}/paper.yaml: ").split(":")[0] for line in faults]
    assert places == ["claims.one.unit", "claims.two.where", "claims.two.bound"]


@pytest.mark.parametrize("key", ["Key", "1st", "a-b", "a b", ""])
def test_a_key_is_a_name_that_macros_can_have(key, tmp_path):
    written = yaml.safe_dump(PAPER | {"claims": {key: RAW}})
    assert "pattern" in " ".join(refused(tmp_path, written))


CONTRAST = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a"}}


@pytest.mark.parametrize(
    ("changes", "entry_changes", "reason"),
    [
        ({"measure": "loss +"}, {}, "not arithmetic"),
        ({"measure": "1 - 3 / 2"}, {}, "names no column"),
        ({"measure": "loss ** 2"}, {}, "only columns"),
        ({"measure": "loss / 0"}, {}, "'loss / 0' divides by 0"),
        ({"measure": "1 + loss / -(1 - 1.0)"}, {}, "divides by 0"),
        ({"needs": [{"check": "loss / 0 > 1", "why": "bad"}]}, {}, "divides by 0"),
        ({"less": {"arm": "b"}, "over": {"arm": "c"}}, {}, "less and over"),
        ({"less": {"arm": ["b", "c"], "rate": [1, 2]}}, {}, "only one column"),
        ({"over": {"arm": "b"}}, {}, "needs scale: log"),
        ({"needs": [{"check": "accuracy", "why": "bad"}]}, {}, "compares nothing"),
        ({"needs": [{"check": "0 < a < 1", "why": "bad"}]}, {}, "two sides"),
        ({"sentence": "{third}"}, {}, "only {first}"),
        ({}, {"bound": None}, "needs a bound"),
        ({}, {"direction": None}, "needs a direction"),
        ({}, {"test": "none", "bound": None}, "needs a function"),
        ({"each": ["depth"]}, {"test": "fact"}, "a fact has only table"),
    ],
)
def test_a_fault_of_a_contrast_is_named(changes, entry_changes, reason, tmp_path):
    lines = refused(tmp_path, text(contrast=CONTRAST | changes, **entry_changes))
    assert any("claims.key" in line and reason in line for line in lines)


def test_a_key_that_is_given_twice_is_an_error(tmp_path):
    twice = "title: On norms\nclaims:\n  key: {}\n  key: {}\n"
    assert "given twice: key" in refused(tmp_path, twice)[0]


@pytest.mark.parametrize(
    "written", ["", "a: [", "[]", "title: On norms", "title: a\nclaims: {}\nmore: 1"]
)
def test_a_file_of_other_things_is_refused(written, tmp_path):
    assert refused(tmp_path, written)


def test_the_criterion_has_the_numbers_of_the_test():
    made = reading(**WITHIN, bound=1.0, criterion="{bound:.1f} times {margin:g}, {{so}}")
    assert made.asks == "1.0 times 2, {so}"
    margin = {"margin": 0.5, "margin_because": "it is planted"}
    assert reading(bound=0.25, **margin).asks == (
        "it is above 0.25 (the mean is estimated beyond the margin, and significantly beyond 0.25)"
    )
    assert reading(bound=0.25).limit == 0.25
    with pytest.raises(Explained, match="'difference' has no bound"):
        _ = reading(bound=None, criterion="it is large").limit


NUMBER = r"[+-]?\d\.\d+"
GAIN, R = "last_gain", "r_entropy_deviation"


@pytest.mark.parametrize(
    ("key", "metric", "n"),
    [
        ("dampens", GAIN, 4),
        ("inverts", R, 4),
        ("consistent", GAIN, 2),
        ("norms_decide", GAIN, 4),
        ("follows_entropy", R, 3),
        ("true_last_block", "gain_hidden_states", 2),
    ],
)
def test_published_numbers_are_those_of_the_references_to_every_digit(key, metric, n):
    number = PUBLISHED[key].number
    assert number is not None
    studies = ["final_norm"] if key == "true_last_block" else FIRST_STUDIES
    rows = REFERENCES[REFERENCES["experiment"].isin(studies) & (REFERENCES["metric"] == metric)]
    values = dict(zip(rows["model"], rows["value"], strict=True))
    printed = re.findall(rf"(?:({'|'.join(NAMES)}) )?({NUMBER})", number)
    assert len(printed) == n
    for name, digits in printed:
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2]) + 1e-12
        known = [values[NAMES[name]]] if name else values.values()
        assert min(abs(float(digits) - value) for value in known) <= half, digits


def test_the_published_count_of_h25_is_that_of_the_references():
    is_claim = (REFERENCES["experiment"] == "h25") & (REFERENCES["metric"] == "h25_correct")
    (row,) = REFERENCES[is_claim].to_dict("records")
    published = PUBLISHED["h25"]
    assert published.number == f"right for {row['value']:.0f} of {row['n']:.0f}"
    assert published.verdict == "fails"
    assert h25_verdict(int(row["value"]), int(row["n"])) == "FALSIFIED"


def test_a_question_has_neither_a_quote_nor_a_published_verdict(tmp_path):
    asked = {k: v for k, v in RAW.items() if k != "quote"}
    whole = {"title": "Questions", "asserts": False, "claims": {"key": asked}}
    path = tmp_path / "questions.yaml"
    path.write_text(yaml.safe_dump(whole))
    assert load([path]).entries["key"].published.verdict == "none"
    whole["claims"]["key"] = asked | {"published": {"verdict": "holds"}}
    assert "nobody asserts it" in refused(tmp_path, yaml.safe_dump(whole))[0]


def test_an_assertion_says_with_what_its_quote_was_compared(tmp_path):
    """For the whole document, or for a reading, whose words win."""
    alone = {key: value for key, value in PAPER.items() if key != "compared_with"}
    (line,) = refused(tmp_path, yaml.safe_dump(alone | {"claims": {"key": RAW}}))
    assert "claims.key.readings.stated: needs compared_with" in line
    readings = {"one": {}, "two": {"compared_with": "not compared: it is lost"}}
    made = entry(readings=readings).readings
    assert {name: reading.compared_with for name, reading in made.items()} == {
        "one": PAPER["compared_with"],
        "two": "not compared: it is lost",
    }


def test_readings_complete_what_their_entry_gives():
    """Mappings are merged, other values replaced."""
    contrast = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a", "depth": 2}}
    readings = {"one": {}, "two": {"bound": 1.0, "contrast": {"cells": {"depth": 4}}}}
    one, two = entry(contrast=contrast, readings=readings).readings.values()
    assert (one.bound, two.bound) == (0.0, 1.0)
    assert one.contrast is not None
    assert two.contrast is not None
    assert (one.contrast.cells, two.contrast.cells) == (
        {"arm": "a", "depth": 2},
        {"arm": "a", "depth": 4},
    )
