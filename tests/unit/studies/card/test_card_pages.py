"""The cards of kept tables are those of the run, whose tables the tests write."""

import json
import runpy
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from processes import ROOT, SCRIPTS

from normscope.columns import Column, Table
from normscope.config import Config, load
from normscope.errors import Explained
from normscope.io.tables import write_tables
from normscope.pages.drawing import Look
from normscope.pilot import read_project
from normscope.studies.card import pages
from normscope.studies.card.grid import COMPARED
from normscope.studies.card.pages import TYPICAL
from normscope.studies.card.recipe import REFERENCE
from normscope.studies.card.tables import SPEED, TABLES

NORMS = [REFERENCE, "dyt", "none"]
KEYS: dict[str, list[Any]] = {
    "arm": NORMS,
    "regime": list(COMPARED),
    "learning_rate": [0.003, 0.01],
    "seed": [11, 12],
    "depth": [12, 48],
    "init": ["gpt2", "xavier"],
    "state": ["start", "trained"],
    "layer": ["blocks.0.norm"],
    "width": [TYPICAL],
    "mode": ["eager"],
}
DATASET = {"origin": "a text", "sha256": {"train.bin": "1", "val.bin": "2"}}


def table(declared: Table, random: np.random.Generator) -> pd.DataFrame:
    """A row for each combination of the keys, with random measurements."""
    rows = (
        dict(zip(declared.keys, values, strict=True))
        for values in product(*(KEYS[key] for key in declared.keys))
    )
    others = [column for column in declared.columns if column.role != "key"]
    return pd.DataFrame([row | {c.name: value(c, row, random) for c in others} for row in rows])


def value(column: Column, row: dict[str, Any], random: np.random.Generator) -> Any:
    if column.kind is str:
        texts = {"nearest": "dyt", "reads": "undecided", "text": f"text_{row.get('seed')}"}
        is_reference = column.name == "reads" and row["arm"] == REFERENCE
        return "the reference" if is_reference else texts[column.name]
    if column.kind is float:
        return random.uniform(0.1, 0.9)
    return True if column.kind is bool else int(column.range is None)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The configuration of a run with the cards of three norms."""
    path = tmp_path / "gallery.yaml"
    path.write_text(f"card: {json.dumps({'norm': NORMS, 'budget': 'demo'})}")
    monkeypatch.chdir(ROOT)
    return load(read_project(ROOT, path))


@pytest.fixture
def look(config: Config) -> Look:
    return Look(**config.figures.model_dump(), level=config.level)


@pytest.fixture
def run(config: Config, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run with the cards of the norms."""
    made, random = tmp_path / "results/card", np.random.default_rng(1)
    for folder in ("tables", "speed", *NORMS):
        (made / folder).mkdir(parents=True)
    write_tables(made / "tables", {name: table(one, random) for name, one in TABLES.items()})
    write_tables(made / "speed", {"speed": table(SPEED, random)})
    (tmp_path / "meta.json").write_text(json.dumps(DATASET))
    assert config.card is not None
    script(monkeypatch, "card", *("--config", config.card.model_dump_json()),
           *("--look", look.model_dump_json(), "--dataset", f"{tmp_path}/meta.json"),
           *("--templates", "workflow/report", "--out", str(made)))  # fmt: skip
    return tmp_path / "results"


def script(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(SCRIPTS / f"{name}.py"))["main"]()


@pytest.fixture
def evidence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which scripts/gallery.py kept the run."""
    out = tmp_path / "evidence"
    flags = ["--results", str(run), "--out", str(out), "--name", str(tmp_path / "gallery.yaml")]
    script(monkeypatch, "gallery", *flags)
    return out


def test_a_kept_card_is_the_page_of_the_run(run: Path, evidence: Path, look: Look):
    cards = pages.kept_cards(evidence, look)
    assert cards.config.norm == NORMS
    kept = json.loads((evidence / "card/run.json").read_text())
    assert kept["unmeasured_jobs"] > 0  # this run has no benchmarks
    made = (run / "card" / NORMS[1] / "card.html").read_text()
    assert pages.html(cards, NORMS[1], ROOT / "workflow/report") == made


def test_tables_of_another_run_are_not_kept(
    evidence: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = (evidence / "card/run.json").read_text()
    other = tmp_path / "other.yaml"
    other.write_text(f"card: {json.dumps({'norm': NORMS, 'budget': '5 min'})}")
    flags = ["--results", str(run), "--out", str(evidence), "--name", str(other)]
    with pytest.raises(Explained, match="cards of other settings"):
        script(monkeypatch, "gallery", *flags)
    assert (evidence / "card/run.json").read_text() == before


def test_missing_and_wrong_tables_are_errors(evidence: Path, look: Look):
    folder = evidence / pages.KEPT
    norms = pd.read_csv(folder / "norm.csv")
    norms.drop(columns="scale").to_csv(folder / "norm.csv", index=False)
    with pytest.raises(Explained, match=r"norm\.csv does not fit its declaration: it lacks scale"):
        pages.kept_cards(evidence, look)
    for name in ("norm.csv", "speed.csv", "run.json"):
        (folder / name).unlink()
        with pytest.raises(Explained, match=rf"lacks .*{name}.*: run `make gallery`"):
            pages.kept_cards(evidence, look)
