"""Stores that branches, clones, engines and deployments share."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import yaml
from project import IDENTITY, Project
from running import (
    TARGETS,
    Engine,
    clean,
    edit_command,
    restart,
    same,
    wait_for_checkpoints,
    wait_for_jobs,
    wait_until_quiet,
)


def training_times(project: Project) -> dict[str, int]:
    """Jobs that trained in this folder, where a training writes its timing, and when."""
    timings = (project.root / "results/benchmarks/main_train").glob("*.tsv")
    return {path.stem: path.stat().st_mtime_ns for path in timings}


def copy_without_times(modelled: Project, at: Path) -> Project:
    """A copy in which no training has run."""
    project = modelled.copy(at / "project")
    shutil.rmtree(project.root / "results/benchmarks")
    return project


def test_branches_with_other_seeds_are_never_stale_and_train_once(
    modelled: Project, tmp_path: Path
):
    project = copy_without_times(modelled, tmp_path)
    path = project.root / "config.yaml"
    config = yaml.safe_load(path.read_text())
    run = config["main"]["runs"][0]
    run["seeds"] = [7 if seed == 1 else seed for seed in run["seeds"]]
    project.run("git", "checkout", "--quiet", "-b", "seeds")
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    project.run("git", *IDENTITY, "commit", "--quiet", "--all", "--message", "another seed")
    drawn, once = {}, {}
    for branch in ("seeds", "main", "seeds"):
        project.run("git", "checkout", "--quiet", branch)
        project.snakemake(*TARGETS)
        assert project.planned(*TARGETS) == {}
        figure = (project.root / "results/paper/figures/loss.svg").read_bytes()
        once = once or training_times(project)
        assert drawn.setdefault(branch, figure) == figure
        assert training_times(project) == once
    assert drawn["seeds"] != drawn["main"]
    assert once
    assert all(name.endswith(("-2", "-7")) for name in once)  # jobs are named by their least seed


def test_half_a_store_trains_what_is_missing_alone(modelled: Project, tmp_path: Path):
    project = copy_without_times(modelled, tmp_path)
    first, second, *_ = sorted((project.root / "results/main/models").iterdir())
    for name in ("metrics.csv", "SHA256SUMS"):  # half an entry
        (first / name).resolve().unlink()
    for link in second.iterdir():  # a whole one
        link.resolve().unlink()
    project.snakemake(*(f"results/main/models/{path.name}/metrics.csv" for path in (first, second)))
    assert sorted(training_times(project)) == [first.name, second.name]
    assert project.digests("store") == modelled.digests("store")


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
    status, said = restart(project, "dvc", "repro", "runs").end()
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


@pytest.fixture
def hosted(modelled: Project, monkeypatch: pytest.MonkeyPatch, tmp_path) -> Project:
    """The modelled project as https://github.com/org/project, with a tag."""
    modelled.run("git", *IDENTITY, "tag", "--force", "v1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{modelled.root.parent}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/org/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # of Snakemake's clones
    return modelled


def test_a_tag_is_deployed_and_makes_the_same_tables(hosted: Project, tmp_path):
    user = Project(tmp_path / "user")
    hosted.run(
        *("snakedeploy", "deploy-workflow", "https://github.com/org/project", str(user.root)),
        *("--tag", "v1"),
    )
    for name in ("corpus.txt", "tiny_model", "other_model"):
        (user.root / name).symlink_to(hosted.root / name)
    # without a target all is made
    assert user.planned().keys() == hosted.planned("--forceall").keys() | {"everything"}
    user.snakemake("main")
    assert user.digests("results/main/tables") == hosted.digests("results/main/tables")
    (user.root / "config/config.yaml").write_text("depth: {training: {stesp: 1}}\n")
    assert "did you mean steps?" in user.snakemake("-n", ok=False)
