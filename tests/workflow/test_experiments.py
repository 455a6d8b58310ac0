"""DVC's commands: metrics, plots, and experiments, which reuse trained models."""

import json
import os
import time
from pathlib import Path

import yaml
from project import Project

from normscope.verdicts.verdict import read as read_verdicts


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


def test_what_a_killed_job_left_in_the_store_is_removed_after_a_day(recorded: Project):
    old, new = (recorded.root / "store" / name for name in ("tmp0", "tmp1"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 100_000,) * 2)
    recorded.snakemake("--force", "results/paper/metrics.json")
    assert not old.exists()
    new.rmdir()


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
