"""The files of the ledger: what they may contain, their errors, and published numbers."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from ledger_recipes import PAPER, RAW, entry, reading, text
from normscope.verdicts.entry import Unasked, load
from processes import ROOT

from normscope.errors import Explained
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


WITHIN: dict[str, Any] = {"test": "equivalence", "direction": "within", "margin": 2.0}
WITHIN |= {"margin_because": "half or twice"}


def test_every_fault_of_a_file_is_named(tmp_path):
    raw = {"one": RAW | {"unit": "seed"}, "two": RAW | {"bound": "0", "where": ""}}
    written = yaml.safe_dump(PAPER | {"claims": raw})
    faults = refused(tmp_path, written)
    places = [line.removeprefix(f"{tmp_path}/paper.yaml: ").split(":")[0] for line in faults]
    assert places == ["claims.one.unit", "claims.two.where", "claims.two.bound"]


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


def test_a_question_needs_neither_a_quote_nor_a_published_verdict(tmp_path):
    asked = {k: v for k, v in RAW.items() if k != "quote"}
    whole = {"title": "Questions", "asserts": False, "claims": {"key": asked}}
    path = tmp_path / "questions.yaml"
    path.write_text(yaml.safe_dump(whole))
    assert load([path]).entries["key"].published.verdict == "none"


def test_a_quote_was_compared_or_not_by_the_nearest_that_says_so():
    """A reading, its entry, or the whole document."""
    readings = {"one": {}, "two": {"uncompared": "it is lost"}, "three": {"reach": "two"}}
    made = entry(readings=readings).readings
    assert {name: (one.compared_with, one.uncompared) for name, one in made.items()} == {
        "one": (PAPER["compared_with"], None),
        "two": (None, "it is lost"),
        "three": (None, "it is lost"),
    }
    one, two = entry(
        uncompared="not yet", readings={"one": {}, "two": {"compared_with": "page 2"}}
    ).readings.values()
    assert (one.uncompared, two.uncompared, two.compared_with) == ("not yet", None, "page 2")


def test_readings_are_off_label_as_their_entry_or_themselves_say():
    readings = {"one": {}, "two": {"off_label": None}, "three": {"off_label": "other data"}}
    made = entry(off_label="small models", readings=readings).readings.values()
    assert [one.off_label for one in made] == ["small models", None, "other data"]


def test_a_statement_that_cannot_be_asked_is_no_entry_of_a_test(tmp_path):
    """It has the words of its document, and takes no part in what tests are corrected for."""
    path = tmp_path / "paper.yaml"
    unasked = {"where": "section 2", "statement": "Norms help giants.", "quote": "they do"}
    unasked |= {"cannot_be_asked": "a thousand GPUs", "refines": ["key"]}
    path.write_text(yaml.safe_dump(PAPER | {"claims": {"giants": unasked, "key": RAW}}))
    claims = load([path])
    assert [key for _, key, _ in claims] == ["key"]
    (_, key, one), _ = claims.every
    assert isinstance(one, Unasked)
    assert (key, one.compared_with, one.published.verdict) == ("giants", "page 1", "holds")


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
