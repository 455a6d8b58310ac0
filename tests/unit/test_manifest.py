"""The manifest lists the origin of every result of every study."""

import hashlib
import json
import runpy
import sys

import pytest
from page_recipes import config
from processes import SCRIPTS


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
    text = whole.recorded()
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
