"""What make freeze and make evidence refuse, in a repository with the project's configurations."""

import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml
from processes import ROOT, SCRIPTS

from normscope.config import Config, load
from normscope.errors import Explained
from normscope.io.yamlfile import overlay, read_yaml
from normscope.pilot import read_project
from normscope.verdicts.document import load as load_claims
from normscope.verdicts.frozen import Plan, git, read_frozen

EVIDENCE = runpy.run_path(str(SCRIPTS / "evidence.py"))
NAME = "config/paper.yaml"
FRESH = 4242


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of the ledger, and configurations of which one trains a fresh seed."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "test")
        monkeypatch.setenv(f"{name}_EMAIL", "test@example.org")
    shutil.copytree(ROOT / "data/claims", "data/claims")
    for name in ("config.yaml", "config/tiny.yaml", "data/pilot.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, name)
    block = read_yaml(Path("config.yaml"))["depth"]["trained"][0] | {"seeds": [FRESH]}
    Path(NAME).write_text(yaml.safe_dump({"depth": {"trained": [block]}}))
    Path("evidence").mkdir()
    Path("src").mkdir()
    Path("src/code.py").write_text("a = 1\n")
    git("init", "--quiet")
    commit()


def commit() -> None:
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")


def freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["freeze.py", "depth"])
    runpy.run_path(str(SCRIPTS / "freeze.py"))["main"]()


def config(name: str = NAME) -> Config:
    return load(read_project(Path(), Path(name)))


def plant_models(name: str = NAME) -> list[Path]:
    """Models of all jobs of depth, as far as anything reads them here."""
    paths = []
    for job, recipe in config(name).depth.trainings().items():
        path = Path("results/depth/models", job, "metrics.csv")
        path.parent.mkdir(parents=True)
        pd.DataFrame({"seed": recipe.seeds}).to_csv(path, index=False)
        paths.append(path)
    return paths


def check(run: Config, name: str = NAME) -> None:
    flags: Any = SimpleNamespace(out=Path("evidence"), results=Path("results"), name=name)
    EVIDENCE["check_frozen"](run, "depth", read_frozen(Path("evidence"))["depth"], flags)
    EVIDENCE["check_ages"](run, "depth", flags)


def test_a_run_of_what_was_frozen_is_registered_and_no_other(monkeypatch):
    freeze(monkeypatch)
    commit()
    plant_models()
    check(config())
    frozen = read_frozen(Path("evidence"))
    assert frozen["depth"].commit == git("rev-parse", "HEAD~")
    assert frozen.keys() == {"depth"}
    statements = {
        key: one for _, key, one in load_claims(sorted(Path("data/claims").glob("*.yaml")))
    }
    for name, key, why in (
        (NAME, "post_warm_up", ""),
        ("config.yaml", "post_warm_up", "its settings are not those that were frozen"),
        (NAME, "recentering_is_dispensable", "its test was not frozen before its data existed"),
    ):
        plan = Plan(config(name).digests, frozen)
        assert plan.why_post_hoc(key, statements[key]) == why


def test_another_text_has_other_settings():
    ours = read_project(Path())
    other = overlay(ours, {"dataset": {"sha256": "0" * 64}})
    assert load(other).digests["main"] != load(ours).digests["main"]
    drawn = overlay(ours, {"figures": {"width_mm": 99}, "device": "cpu"})
    assert load(drawn).digests == load(ours).digests


@pytest.mark.parametrize(
    "path", ["src/code.py", "data/claims/tutorial.yaml", "config.yaml", "data/new.csv"]
)
def test_what_is_not_committed_is_not_frozen(path, monkeypatch):
    with Path(path).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(Explained, match=f"commit these files first\n.*{path}"):
        freeze(monkeypatch)
    assert not Path("evidence/frozen.json").exists()


def test_no_model_may_exist_when_its_test_is_frozen(monkeypatch):
    plant_models()
    with pytest.raises(Explained, match=f"results/depth/models/.*before the freeze.* {FRESH}:"):
        freeze(monkeypatch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("settings", "other settings of depth were frozen"),
        ("name", "other settings of depth were frozen"),
        ("code", "not those that .* froze: freeze again, or name them in .*\nsrc/code.py"),
        ("freeze", "commit evidence/frozen.json before the run"),
        ("age", "older than the commit of evidence/frozen.json"),
    ],
)
def test_a_run_of_anything_else_is_refused(change, message, monkeypatch):
    freeze(monkeypatch)
    if change != "freeze":
        commit()
    paths, run, name = plant_models(), config(), NAME
    if change == "settings":
        run = run.model_copy(update={"level": 0.9})
    if change == "name":
        run, name = config("config/tiny.yaml"), "config/tiny.yaml"
    if change == "code":
        Path("src/code.py").write_text("a = 2\n")
        commit()
    if change == "age":
        before = int(git("log", "-1", "--format=%ct")) - 1
        os.utime(paths[-1], (before, before))
    with pytest.raises(Explained, match=message):
        check(run, name)


def test_a_repair_during_a_run_is_named_in_the_readme(monkeypatch):
    freeze(monkeypatch)
    commit()
    plant_models()
    for path in ("src/code.py", "src/more.py"):
        Path(path).write_text("a = 2\n")
    commit()
    Path("evidence/README.md").write_text("`src/code.py` divided by zero.")
    with pytest.raises(Explained, match=r"name them in .*\nsrc/more\.py$"):
        check(config(), NAME)
    Path("src/more.py").unlink()
    commit()
    check(config(), NAME)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, None),
        ({"figures": ["los"]}, "figures: los is unknown; did you mean loss?"),
        ({"tables": {"man": ["arms"]}}, "tables.man is unknown; did you mean main?"),
        ({"tables": {"main": ["arm"]}}, "tables.main: arm is unknown; did you mean arms?"),
    ],
)
def test_what_pages_show_is_checked_before_anything_is_replaced(changed, message):
    path = Path("shown.yaml")
    path.write_text(yaml.safe_dump(read_yaml(ROOT / "docs/shown.yaml") | changed))
    if message is None:
        EVIDENCE["read_shown"](path, config())
        return
    with pytest.raises(Explained, match=re.escape(message)):
        EVIDENCE["read_shown"](path, config())
