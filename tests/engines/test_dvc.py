"""Snakemake makes and DVC versions: they agree, and neither undoes the other."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from project import Project, fresh

from normscope.verdicts.verdict import read as read_verdicts

RAN = re.compile(r"^(?:local)?rule (dataset|\w+_train|\w+_probe):", re.MULTILINE)


@pytest.fixture(scope="module")
def recorded(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the made project, as its user has recorded it with DVC and committed it."""
    project = made.copy(tmp_path_factory.mktemp("recorded") / "project")
    for key, value in {"name": "test", "email": "test@example.org"}.items():
        project.run("git", "config", f"user.{key}", value)
    project.run("dvc", "repro")
    project.run("git", "add", "metrics")
    project.run("git", "commit", "--all", "--quiet", "--message", "as made")
    return project


def test_after_snakemake_dvc_only_records(recorded: Project):
    logs = recorded.logs()[-2:]  # of its two stages
    assert not any(map(RAN.search, logs)), logs
    assert recorded.digests("paper") == recorded.digests("results/paper")
    assert "up to date" in recorded.run("dvc", "status")
    assert recorded.planned() == {}


def test_a_collaborator_pulls_the_models_and_trains_nothing(
    recorded: Project, tmp_path_factory: pytest.TempPathFactory
):
    remote = tmp_path_factory.mktemp("remote")
    recorded.run("dvc", "remote", "add", "--local", "--default", "here", str(remote))
    recorded.run("dvc", "push")
    other = fresh(tmp_path_factory.mktemp("clone") / "project")
    shutil.copy(recorded.root / "dvc.lock", other.root)
    other.run("dvc", "remote", "add", "--local", "--default", "here", str(remote))
    other.run("dvc", "pull", "store")
    pulled = {path: path.stat().st_mtime_ns for path in (other.root / "store").iterdir()}
    other.snakemake("main")
    assert pulled == {p: p.stat().st_mtime_ns for p in (other.root / "store").iterdir()}
    (log,) = other.logs()
    assert "rule main_probe:" in log
    links = [path for path in (other.root / "results").rglob("*") if path.is_symlink()]
    assert log.count("from cache.") == len(links) > 5
    # what a training would write
    assert not list((other.root / "results/benchmarks").glob("*_train"))
    tables = "results/main/tables"
    assert other.digests(tables) == recorded.digests(tables)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_metrics_are_those_of_tables_and_verdicts(recorded: Project):
    shown = json.loads(recorded.run("dvc", "metrics", "show", "--json"))
    metrics = shown[""]["data"]["metrics/metrics.json"]["data"]
    arms = (recorded.root / "results/main/tables/arms.csv").read_text().splitlines()
    columns, *rows = (line.split(",") for line in arms)
    for row in (dict(zip(columns, values, strict=True)) for values in rows):
        loss = metrics["loss"][row["protocol"]][row["arm"]][row["placement"]]
        assert loss == float(row["mean"])
    judged = read_verdicts(recorded.root / "results/paper/claims.json").verdicts
    words = {one.key: one.word for one in judged if one.statement.comparisons}
    assert metrics["verdicts"]["statement"] == words
    assert {"tiny", "other"} <= set(metrics["gain"]["measured"])


def test_a_clone_without_a_remote_has_metrics_and_plots(recorded: Project, tmp_path: Path):
    recorded.run("git", "clone", "--quiet", str(recorded.root), str(tmp_path / "clone"))
    clone = Project(tmp_path / "clone")
    assert json.loads(clone.run("dvc", "metrics", "diff", "HEAD", "--json")) == {}
    plots = json.loads(clone.run("dvc", "plots", "show", "--json"))
    assert plots.get("errors", []) == []
    declared = yaml.safe_load((clone.root / "dvc.yaml").read_text())["plots"]
    for path in (path for plot in declared for path in plot):
        assert [name for name in plots["data"] if name.startswith(path)], path


def test_another_store_gets_what_dvc_records(recorded: Project, tmp_path: Path):
    before = recorded.digests("store")
    other = Project(tmp_path)
    filled = f"SNAKEMAKE_OUTPUT_CACHE={other.root / 'store'}"
    recorded.run("env", filled, "dvc", "repro", "--force", "runs")
    assert other.digests("store") == before == recorded.digests("store")
    assert "up to date" in recorded.run("dvc", "status", "runs")


def test_an_experiment_in_a_copy_takes_what_is_trained_from_the_store(recorded: Project):
    store = recorded.root / "store"
    before = state(store)
    other = ("--set-param", "config.yaml:main.stack=2")  # of which the same models are trained
    recorded.run("dvc", "exp", "run", "--temp", "--name", "first", *other, "runs")
    assert state(store) == before
    shown = json.loads(recorded.run("dvc", "exp", "show", "--json"))
    (commit,) = (row for row in shown if row["rev"] != "workspace")
    (run,) = commit["experiments"]
    data = run["revs"][0]["data"]
    assert data["params"]["config.yaml"]["data"]["main"]["stack"] == 2
    assert data["outs"]["store"]["nfiles"] == len(before)
