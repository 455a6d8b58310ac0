"""Documents: what is derived from an entry, and what a wrong one is told."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from normscope.errors import Explained
from normscope.io.yamlfile import overlay
from normscope.verdicts.document import Statement, load

ENTRY: dict[str, Any] = {
    "says": "RMSNorm is as good as LayerNorm.",
    "quote": "comparable performance",
    "where": "abstract",
    "measure": "main.chosen.capped_loss",
    "models": {"protocol": "small", "placement": "pre"},
    "compare": "rmsnorm - layernorm",
    "expect": "within 0.01",
    "also": {
        "longer": {"models": {"protocol": "long"}},
        "alone": {"compare": "", "models": {"placement": None, "arm": "rmsnorm"}},
        "no worse": {"expect": "below 0.01"},
    },
    "figure": "loss",
}
HEAD = {"title": "A paper", "by": "A. Author 2026", "link": "https://example.org", "checked": "all"}


def write(folder: Path, content: Any, name: str = "paper") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def test_other_comparisons_are_laid_over_the_main_one_alone():
    made = Statement.model_validate(ENTRY).comparisons
    assert list(made) == ["", "longer", "alone", "no worse"]
    assert made["longer"].models == {"protocol": "long", "placement": "pre"}
    assert made["alone"].models == {"protocol": "small", "arm": "rmsnorm"}
    assert (made["alone"].compare, made["alone"].expect) == ("", "within 0.01")
    assert made["no worse"].models == made[""].models


def test_a_statement_is_read_as_it_was_written():
    made = Statement.model_validate(ENTRY)
    again = Statement.model_validate(json.loads(made.model_dump_json(exclude_defaults=True)))
    assert again == made
    assert again.comparisons == made.comparisons


def test_a_question_needs_no_quote_and_an_untestable_statement_no_test(tmp_path):
    question = {**ENTRY, "says": "Is RMSNorm as good?", "quote": None}
    untestable = {
        "says": "It scales.",
        "quote": "it scales",
        "where": "1",
        "note": "It takes years.",
    }
    loaded = load([write(tmp_path, {**HEAD, "one": question, "two": untestable})]).statements
    assert loaded["one"].is_question
    assert loaded["two"].comparisons == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quote": None}, "key: needs a quote"),
        (
            {"measure": None, "models": {}, "compare": "", "expect": None, "also": {}},
            "needs a note",
        ),
        ({"measure": "loss"}, "key: measure: 'loss': give study.table.column"),
        ({"measure": "main.chosen.loss < 2"}, "key: measure: 'loss < 2' compares"),
        ({"measure": "main.chosen.__import__('os')"}, "key: measure: .*only columns, numbers"),
        ({"measure": None}, "key: measure: Field required"),
        ({"expect": "near 1"}, "key: expect: 'near 1': give below x"),
        ({"expect": "within -1"}, "key: expect: .*a margin is above 0"),
        ({"expect": "between 2 and 1"}, "key: expect: .*the first number is the smaller"),
        ({"compare": "a - b - c"}, "key: compare: 'a - b - c' is no comparison"),
        ({"also": {"longer": {"expct": "below 1"}}}, "key: also.longer.expct: unknown key"),
        ({"also": {"longer": {"expect": "big"}}}, "key: also.longer.expect: 'big': give"),
        ({"models": {"arm": []}}, "key: models.arm: "),
        ({"sayz": "it"}, "key.sayz: unknown key; did you mean says?"),
        ({"says": "\x1b[31m"}, "key.says: "),
        ({"where": " "}, "key.where: is empty"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place_and_what_is_right(changes, message, tmp_path):
    given = {**overlay(ENTRY, changes), **{k: v for k, v in changes.items() if not v}}
    content = {**HEAD, "key": {k: v for k, v in given.items() if v is not None}}
    with pytest.raises(Explained, match=message) as error:
        load([write(tmp_path, content)])
    assert str(error.value).startswith(f"{tmp_path / 'paper.yaml'}: ")
    assert "comparisons" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "a document has keys with values"),
        ({**HEAD}, "statements: "),
        ({**HEAD, "checked": None, "key": ENTRY}, "checked: say with what"),
        ({**HEAD, "link": "javascript:alert()", "key": ENTRY}, "link: "),
        ({**HEAD, "Key": ENTRY}, "Key"),
        ({**HEAD, "key": ["says"]}, "key: Input should be keys with values"),
    ],
)
def test_a_wrong_document_is_refused(content, message, tmp_path):
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if value is not None}
    with pytest.raises(Explained, match=message):
        load([write(tmp_path, content)])


def test_a_key_is_that_of_one_statement_and_a_file_has_a_valid_name(tmp_path):
    content = {**HEAD, "key": ENTRY}
    with pytest.raises(Explained, match="key is in the documents one and two"):
        load([write(tmp_path, content, "one"), write(tmp_path, content, "two")])
    with pytest.raises(Explained, match="rename it"):
        load([write(tmp_path, content, "My paper")])
