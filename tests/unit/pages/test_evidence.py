"""The evidence compared with a run: counts, verdicts, and where they differ."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_recipes import claim, ledger, opening, traces

from normscope.pages.evidence import Evidence, evidence_words, kept_verdict, read_evidence
from normscope.pages.frame import Frame, collect
from normscope.pages.section import Section

CONFIG = {"level": 0.95, "recall": {"stack": 3}}


def kept(folder: Path, *claims: dict[str, Any], config: dict[str, Any] | None = None) -> Evidence:
    """Evidence read from a folder, compared with a run of CONFIG."""
    files = {
        "claims": ledger(*claims),
        "manifest": {"config": (CONFIG if config is None else config) | {"figures": {}}},
        "run": {"configuration": "config/paper.yaml", "chip": "a chip", "date": "2026-01-01"},
    }
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return read_evidence(folder, CONFIG)


def verdicts(**by_key: str) -> list[dict[str, Any]]:
    return [claim(key=k, statement=f"Of {k}.", verdict=v) for k, v in by_key.items()]


HERE = verdicts(a="holds", b="undecided", c="fails", d="undecided", e="holds", f="fails", g="holds")
THERE = [
    *verdicts(a="fails", b="holds", c="undecided", d="undecided"),
    claim(key="e", verdict="holds", where="the same test in other words"),
    claim(key="f", verdict="holds", digest="changed"),
    claim(key="gone", verdict="holds"),
]


def printed(*claims: dict[str, Any], evidence: Evidence | None) -> Frame:
    stated = ledger(*claims)
    places = traces(stated, "a.py:1-2")
    section = {"main": Section({}, {})}
    return collect(section, stated, {}, level=0.95, traces=places, evidence=evidence)


def test_the_verdicts_of_the_evidence_say_if_their_test_was_another(tmp_path):
    evidence = kept(tmp_path, *THERE)
    assert [kept_verdict(c, evidence) for c in HERE] == [
        *("fails", "holds", "undecided", "undecided", "holds"),
        *("holds, by another test", "not in the evidence"),
    ]


def test_differing_verdicts_are_named_and_those_of_one_run_counted(tmp_path):
    words = evidence_words(ledger(*reversed(HERE)), kept(tmp_path, *THERE))
    # not f, whose test differs
    assert words["differing"] == [{"statement": "Of a", "here": "holds", "there": "fails"}]
    assert words["alone"] == len("bc")


def test_both_ledgers_are_counted(tmp_path):
    frame = printed(*HERE, evidence=kept(tmp_path, *THERE))
    columns = ("confirmed", "refuted", "open")
    assert frame.tables["verdicts"].select(*columns).rows == ((3, 2, 2), (4, 1, 2))
    assert frame.numbers["claims confirmed"].value == 3


@pytest.mark.parametrize(
    ("config", "is_same"),
    [
        (CONFIG, True),
        (CONFIG | {"level": 0.9}, False),
        ({"level": 0.95}, False),
        (CONFIG | {"recall": {"stack": 12}}, False),
    ],
)
def test_a_configuration_is_the_same_if_all_its_parts_are(tmp_path, config, is_same):
    assert kept(tmp_path, config=config).is_same == is_same


@pytest.mark.parametrize("is_there", [True, False])
def test_the_opening_compares_both_runs(tmp_path, is_there):
    frame = printed(*HERE, evidence=kept(tmp_path, *THERE, config={}) if is_there else None)
    assert len(frame.tables["verdicts"].rows) == 1 + is_there
    named = json.dumps(frame.cards)
    assert ("evidence" in named) == is_there
    assert ("evidence" in opening(tmp_path, frame, "## Methods")) == is_there
