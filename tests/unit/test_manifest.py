"""The manifest of a run, the machine and the hours that it records, and its verification."""

import hashlib
import json
import runpy
import sys
from pathlib import Path

import pytest
from page_recipes import config
from processes import ROOT, SCRIPTS

from normscope.errors import Explained
from normscope.machine import run_record
from normscope.studies.single import SingleJob, train_single


@pytest.fixture
def written(tmp_path, monkeypatch):
    """manifest.json of a configuration, and the records of its studies in a directory."""
    whole = config()
    for name, study in whole.studies.items():
        for record in study.records():
            path = tmp_path / name / record
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"record": f"{name}/{record}"}))
    (tmp_path / "main" / "models" / "left-over").mkdir()
    (tmp_path / "main" / "models" / "left-over" / "config.json").write_text("{}")
    (tmp_path / "meta.json").write_text('{"origin": "here"}')
    text = whole.settings_json()
    words = [tmp_path / "meta.json", "--config", text, "--results", tmp_path]
    words += ["--dataset", tmp_path / "meta.json", "--project", tmp_path]
    words += ["--out", tmp_path / "manifest.json"]
    monkeypatch.setattr(sys, "argv", ["manifest.py", *map(str, words)])
    runpy.run_path(str(SCRIPTS / "manifest.py"), run_name="__main__")
    return whole, text, json.loads((tmp_path / "manifest.json").read_text())


def test_every_record_of_every_study_is_in_the_manifest_and_no_other(written):
    whole, text, manifest = written
    assert list(manifest["studies"]) == sorted(whole.studies)
    records = {
        part["record"]
        for study in manifest["studies"].values()
        for kind in study.values()
        for part in kind.values()
    }
    assert records == {f"{n}/{r}" for n, study in whole.studies.items() for r in study.records()}
    assert set(manifest["studies"]["main"]["models"]) == set(whole.main.trainings())
    assert manifest["config"] == json.loads(text)
    assert manifest["config_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert manifest["dataset"] == {"origin": "here"}
    digest = hashlib.sha256(b'{"origin": "here"}').hexdigest()
    assert manifest["sources_sha256"] == {"meta.json": digest}  # wherever the project lies


def test_core_hours_are_the_cpu_time_of_the_jobs_that_were_timed(tmp_path: Path):
    recall = config().recall
    jobs = ["recall_tables", *(f"recall_train/{name}" for name in recall.trainings())]
    jobs += [f"recall_probe/{name}" for name in recall.probes()]
    seconds = dict.fromkeys(jobs, "36.0") | {
        jobs[1]: "NA",
        "recall_train/other": "5",
        "claims": "5",
    }
    del seconds[jobs[2]]
    (tmp_path / "recall/tables").mkdir(parents=True)
    (tmp_path / "recall/tables/runs.csv").touch()
    for job, of_job in seconds.items():
        path = tmp_path / f"benchmarks/{job}.tsv"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"s\tcpu_time\n1.0\t{of_job}\n")
    record = run_record(config().recall, tmp_path)
    assert record["core_hours"] == round((len(jobs) - 2) * 36 / 3600, 4)
    assert record["unmeasured_jobs"] == 2


VERIFY = runpy.run_path(str(SCRIPTS / "verify.py"))
SUMS = {"train.bin": "a", "val.bin": "b", "meta.pkl": "c"}


def test_scripts_whose_code_changed_are_named(tmp_path: Path):
    for name in ("main_train", "recall_train", "claims"):
        (tmp_path / f"{name}.txt").write_text(f"now {name}")
    same = hashlib.sha256(b"now recall_train").hexdigest()
    was = {"results/code/main_train.txt": "older", "results/code/recall_train.txt": same}
    manifest = {"sources_sha256": was, "studies": {"main": {}, "recall": {}, "textbook": {}}}
    assert VERIFY["changed_since"](tmp_path, manifest) == ["main_train"]
    # a study that an earlier run made has the code of that run
    of_then = {"sources_sha256": {"results/code/recall_train.txt": "older"}}
    manifest["studies"]["recall"] = {"origin": of_then}
    assert VERIFY["changed_since"](tmp_path, manifest) == ["main_train", "recall_train"]


def test_a_training_that_fails_is_an_error_with_its_reason(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(ROOT)
    trainings = VERIFY["trainings"](config())
    assert len(trainings) == sum(len(s.trainings()) for s in config().studies.values())
    assert (trainings["flops"] > 0).all()
    job = SingleJob(*trainings[[*SingleJob._fields]].to_numpy()[0])
    with pytest.raises(Explained, match=r"(?s)norms/.* cannot be trained:.*train\.bin"):
        train_single(job, tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("manifest", "sums", "message"),
    [
        (
            {},
            {**SUMS, "meta.pkl": "of another Python", "val.bin": "d"},
            "dataset: val.bin; restore",
        ),
        ({}, None, "meta.json makes it"),
        ({"texts": {"second": {"sha256": SUMS}}}, SUMS, "dataset/second/meta.json makes it"),
        ({"config": {"a_key_of_then": 1}}, SUMS, "another version"),
    ],
)
def test_other_corpora_and_versions_are_refused(
    manifest: dict, sums: dict | None, message: str, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(ROOT)
    contents = {"evidence/manifest.json": {"dataset": {"sha256": SUMS}} | manifest}
    contents |= {"evidence/run.json": {}, "results/dataset/meta.json": {"sha256": sums}}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    if sums is None:
        (tmp_path / "results/dataset/meta.json").unlink()
    flags = ["--evidence", str(tmp_path / "evidence"), "--results", str(tmp_path / "results")]
    monkeypatch.setattr(sys, "argv", ["verify.py", *flags])
    with pytest.raises(SystemExit, match=message):
        runpy.run_path(str(SCRIPTS / "verify.py"), run_name="__main__")
