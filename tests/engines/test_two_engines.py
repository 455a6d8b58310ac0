"""Two engines at the same time with one store, and one that was ended."""

import os
import signal
from pathlib import Path

from cases import TARGETS, clean, edit_command, same, wait_for_checkpoints
from project import Project
from running import Engine, started, wait_for_jobs, wait_until_quiet

COMMAND = ("snakemake", "--cores", "2", *TARGETS)


def test_two_clones_with_one_store(modelled: Project, tmp_path: Path):
    clones = [clean(modelled, tmp_path / name) for name in ("one", "other")]
    store = tmp_path / "store"
    command = ("env", f"SNAKEMAKE_OUTPUT_CACHE={store}", *COMMAND)
    engines = [Engine(clone, *command) for clone in clones]
    for engine in engines:
        status, said = engine.end()
        assert status == 0, said
    assert Project(tmp_path).digests("store") == modelled.digests("store")
    for clone in clones:
        assert clone.digests("results/main/tables") == modelled.digests("results/main/tables")


def test_killed_dvc(modelled: Project, tmp_path: Path):
    project = clean(modelled, tmp_path)
    edit_command(project, "runs", "--cores 4 models", "--cores 2 main")
    engine = Engine(project, "dvc", "repro", "runs")
    wait_for_checkpoints(engine, project, 1)
    engine.kill(group=True)
    said = project.run("dvc", "repro", "runs", ok=False)
    assert "Directory cannot be locked" in said
    assert "--unlock" in said
    status, said = started(project, "dvc", "repro", "runs").end()
    assert status == 0, said
    assert project.digests("store") == modelled.digests("store")
    assert "up to date" in project.run("dvc", "status", "runs")


def test_interrupted_and_terminated(modelled: Project, tmp_path: Path):
    project = clean(modelled, tmp_path)
    engine = Engine(project, *COMMAND)
    wait_for_checkpoints(engine, project, 1)
    os.killpg(engine.process.pid, signal.SIGINT)
    status, said = engine.end()
    assert status
    assert "Traceback" not in said
    wait_until_quiet(project.root)
    engine = Engine(project, *COMMAND)  # it has unlocked
    wait_for_jobs(engine, project.root)
    os.kill(engine.process.pid, signal.SIGTERM)
    status, said = engine.end()
    assert status
    assert "Traceback" not in said
    wait_until_quiet(project.root)
    project.snakemake(*TARGETS)
    same(project, modelled)
