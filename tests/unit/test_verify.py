"""Before a model of the evidence is trained again: it is the same training, of the same corpus."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from page_recipes import config
from processes import ROOT, SCRIPTS

from normscope.errors import Explained

VERIFY = runpy.run_path(str(SCRIPTS / "verify.py"))
SUMS = {"train.bin": "a", "val.bin": "b", "meta.pkl": "c"}


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a run of config.yaml would keep, with the records of its trainings and no model."""
    monkeypatch.chdir(ROOT)
    whole = config()
    records = {
        name: {"models": {job: json.loads(r.model_dump_json()) for job, r in s.trainings().items()}}
        for name, s in whole.studies.items()
    }
    manifest = {
        "config": json.loads(whole.model_dump_json(exclude={"dataset", "device", "demonstration"})),
        "dataset": {"sha256": SUMS},
        "studies": records,
        "sources_sha256": {},
    }
    run = {"configuration": "config.yaml", "chip": "a chip", "date": "2026-01-01"}
    write(tmp_path / "evidence/manifest.json", manifest)
    write(tmp_path / "evidence/run.json", run)
    write(tmp_path / "results/dataset/meta.json", {"sha256": SUMS})
    (tmp_path / "evidence/models.csv").write_text("study,job,seed,val_loss\n")
    return tmp_path / "evidence"


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def verified(evidence: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """How the script ends, which has nothing to train."""
    flags = ["--evidence", evidence, "--results", evidence.parent / "results", *words]
    monkeypatch.setattr(sys, "argv", ["verify.py", *map(str, flags)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPTS / "verify.py"), run_name="__main__")
    return str(end.value)


def changed(evidence: Path, file: str, key: str, value: object) -> None:
    """A file of the evidence with another value of a key."""
    path = evidence / file
    write(path, json.loads(path.read_text()) | {key: value})


def test_a_training_is_compared_with_its_record_value_by_value():
    recipe = config().studies["recall"].trainings()["recall-layernorm-0.003-1337"]
    record = json.loads(recipe.model_dump_json()) | {"torch": "2", "device": "cuda"}
    assert VERIFY["differing"](recipe, record) == []  # where it ran is no part of it
    record["task"] = record["task"] | {"steps": 7}
    del record["learning_rate"]
    assert sorted(VERIFY["differing"](recipe, record)) == [
        "learning_rate: None, now 0.003",
        "task.steps: 7, now 300",
    ]
    assert VERIFY["differing"](recipe, None) == ["the evidence has no training of this name"]


def test_scripts_whose_code_changed_are_named(tmp_path: Path):
    for name in ("main_train", "recall_train", "claims"):
        (tmp_path / f"{name}.txt").write_text(f"now {name}")
    by_sha256sum = "d14094aa672dbbd14e818ec8cb5f19b9ca9571662fe06908ad4423c1681525d3"
    was = {
        "results/code/main_train.txt": "an older digest",
        "results/code/recall_train.txt": by_sha256sum,
    }
    assert VERIFY["changed_since"](tmp_path, {"sources_sha256": was}) == ["main_train"]


def test_every_training_has_a_size(evidence: Path):
    reference = VERIFY["read_reference"](ROOT / "workflow/costs.yaml")
    trainings = list(VERIFY["trainings"](config(), reference))
    names = [(study, job) for study, s in config().studies.items() for job in s.trainings()]
    assert [(job.study, job.name) for job in trainings] == names
    assert all(job.seconds > 0 for job in trainings)


def test_a_corpus_that_is_not_there_or_another_is_an_error(evidence: Path, monkeypatch):
    meta = evidence.parent / "results/dataset/meta.json"
    write(meta, {"sha256": {**SUMS, "meta.pkl": "of another Python", "val.bin": "d"}})
    assert "another corpus" in (said := verified(evidence, monkeypatch))
    assert "val.bin" in said
    assert "meta.pkl" not in said
    meta.unlink()
    assert "meta.json makes it" in verified(evidence, monkeypatch)


@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
def test_evidence_that_is_not_there_is_an_error(evidence: Path, monkeypatch, name: str):
    (evidence / name).unlink()
    assert f"{name} is missing" in verified(evidence, monkeypatch)


def test_evidence_of_another_version_is_an_error(evidence: Path, monkeypatch):
    raw = json.loads((evidence / "manifest.json").read_text())["config"]
    changed(evidence, "manifest.json", "config", raw | {"a_key_of_then": 1})
    assert "another version" in verified(evidence, monkeypatch)


def test_trainings_of_other_names_are_not_compared(evidence: Path, monkeypatch):
    none = {name: {"models": {}} for name in config().studies}
    changed(evidence, "manifest.json", "studies", none)
    assert "no small model" in verified(evidence, monkeypatch)


def test_what_cannot_be_trained_says_why(evidence: Path, monkeypatch):
    reference = VERIFY["read_reference"](ROOT / "workflow/costs.yaml")
    job = next(job for job in VERIFY["trainings"](config(), reference) if job.study == "main")
    with pytest.raises(Explained, match=r"(?s)main/.* cannot be trained:.*train\.bin"):
        VERIFY["train"](evidence, job, evidence / "out")
