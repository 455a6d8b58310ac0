"""Before a model of the evidence is trained again: the corpus and the version are the same."""

import hashlib
import json
import runpy
import sys
from pathlib import Path

import pytest
from page_recipes import config
from processes import ROOT, SCRIPTS

from normscope.errors import Explained
from normscope.studies.single import SingleJob, train_single

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
    with pytest.raises(Explained, match=r"(?s)main/.* cannot be trained:.*train\.bin"):
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
