"""The evidence compared with a run: counts, verdicts, and where they differ."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_recipes import REPORT, claim, ledger, shown, traces

from normscope.paper.evidence import Evidence, evidence_columns, evidence_words, read_evidence
from normscope.paper.frame import Frame, collect
from normscope.paper.section import Section
from normscope.paper.statements import ledger_table
from normscope.paper.template import environment, fill, open_template

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
    *verdicts(a="fails", b="holds", c="undecided", d="undecided", e="holds"),
    claim(key="f", verdict="holds", bound=2.0),
    claim(key="gone", verdict="holds"),
]


def printed(*claims: dict[str, Any], evidence: Evidence | None) -> Frame:
    stated = ledger(*claims)
    places = traces(stated, "a.py:1-2")
    section = {"main": Section({}, {})}
    return collect(section, stated, {}, level=0.95, traces=places, evidence=evidence)


def test_every_statement_has_the_verdict_of_both_and_where_it_was_decided(tmp_path):
    rows = shown(ledger_table(ledger(*HERE), evidence_columns(kept(tmp_path, *THERE))))
    assert [(row["corrected"], row["evidence"], row["decided in"]) for row in rows] == [
        ("holds", "fails", "both"),
        ("undecided", "holds", "the evidence"),
        ("fails", "undecided", "this run"),
        ("undecided", "undecided", "neither"),
        ("holds", "holds", "both"),
        ("fails", "holds", "both; the evidence has another test"),
        ("holds", "–", "this run"),
    ]


def test_contradictions_are_named_and_what_one_alone_decides_is_counted(tmp_path):
    words = evidence_words(ledger(*reversed(HERE)), kept(tmp_path, *THERE))
    # no f, of which something else was asked
    assert words["differing"] == [{"statement": "Of a", "here": "holds", "there": "fails"}]
    assert words["alone"] == len("bc")


def test_both_ledgers_are_counted(tmp_path):
    frame = printed(*HERE, evidence=kept(tmp_path, *THERE))
    columns = ("decided", "holds", "fails", "undecided")
    assert frame.tables["verdicts"].select(*columns).rows == (
        (5, 3, 2, 2),
        (5, 4, 1, 2),
    )
    assert frame.numbers["evidence claims holds"].value == 4
    assert frame.numbers["claims holds"].value == 3


@pytest.mark.parametrize(
    ("config", "is_same"),
    [
        (CONFIG, True),
        (CONFIG | {"level": 0.9}, False),
        ({"level": 0.95}, False),
        (CONFIG | {"recall": {"stack": 12}}, False),
    ],
)
def test_whether_both_have_one_configuration_is_known(tmp_path, config, is_same):
    assert kept(tmp_path, config=config).is_same == is_same
    (row,) = shown(printed(claim(), evidence=kept(tmp_path, config=config)).tables["traces"])
    alone = "snakemake --cores 4 results/main/tables/runs.csv"
    assert row["command"] == alone + " --configfile config/paper.yaml" * is_same


def test_where_and_when_the_evidence_was_made_stays_out_of_the_frame(tmp_path):
    printed(*HERE, evidence=kept(tmp_path, *THERE)).write(tmp_path / "frame.json")
    text = (tmp_path / "frame.json").read_text()
    assert "config/paper.yaml" in text
    assert "a chip" not in text
    assert "2026" not in text


def test_without_evidence_nothing_is_said_of_it(tmp_path):
    frame = printed(*HERE, evidence=None)
    assert len(frame.tables["verdicts"].rows) == 1
    assert "evidence" not in json.dumps([frame.tables["ledger"].headings, *frame.numbers])
    assert frame.words["evidence"] is None


@pytest.mark.parametrize("is_there", [True, False])
def test_the_first_words_of_the_summary_are_of_both_runs(tmp_path, is_there):
    frame = printed(*HERE, evidence=kept(tmp_path, *THERE, config={}) if is_there else None)
    source = (REPORT / "summary.md").read_text().partition("The models are trained")[0]
    (tmp_path / "first.md").write_text(source)
    opening = open_template(environment(tmp_path), "first.md")
    text = fill(opening, {**frame.words, "table": lambda name: f"[{name}]"})
    assert "[verdicts]" in text
    assert ("`config/paper.yaml`" in text) == is_there
    assert ('differ on "Of a" (holds here, fails in the evidence).' in text) == is_there
    assert ("2 are decided by only one of them" in text) == is_there
    assert ("evidence" in text) == is_there
