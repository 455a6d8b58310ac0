"""DVC's commands: metrics, plots, and experiments, which reuse trained models."""

import json
from pathlib import Path

import pytest
import yaml
from project import Project

STEPS = ("--set-param", "config.yaml:main.protocols.nanogpt.training.steps=50")


@pytest.fixture(scope="module")
def recorded(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the made project, as its user has committed it."""
    project = made.copy(tmp_path_factory.mktemp("recorded") / "project")
    for key, value in {"name": "test", "email": "test@example.org"}.items():
        project.run("git", "config", f"user.{key}", value)
    project.run("dvc", "repro")
    project.run("git", "add", "metrics")
    project.run("git", "commit", "--all", "--quiet", "--message", "as made")
    return project


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_metrics_are_those_of_tables_and_ledger(recorded: Project):
    shown = json.loads(recorded.run("dvc", "metrics", "show", "--json"))
    metrics = shown[""]["data"]["metrics/metrics.json"]["data"]
    arms = (recorded.root / "results/main/tables/arms.csv").read_text().splitlines()
    columns, *rows = (line.split(",") for line in arms)
    for row in (dict(zip(columns, values, strict=True)) for values in rows):
        loss = metrics["loss"][row["protocol"]][row["arm"]][row["placement"]]
        assert loss == float(row["mean"])
    ledger = json.loads((recorded.root / "results/paper/claims.json").read_text())
    verdicts = {claim["key"]: claim["verdict"] for claim in ledger["claims"]}
    assert metrics["verdicts"]["statement"] == verdicts
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


def test_files_of_running_experiments_are_kept_and_leftovers_removed(recorded: Project):
    written = recorded.root / "store/tmp0"
    written.mkdir()
    lock = recorded.root / ".dvc/tmp/exps/standalone/one/.snakemake/locks/0.output.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    again = ("--force", "results/paper/metrics.json")
    recorded.snakemake(*again)
    assert written.is_dir()
    lock.unlink()
    recorded.snakemake(*again)
    assert not written.exists()


def test_experiments_in_copies_share_the_store(recorded: Project):
    store = recorded.root / "store"
    before = state(store)
    run = ("dvc", "exp", "run")
    recorded.run(*run, "--temp", "--name", "first", *STEPS, "runs")
    trained = state(store)
    assert before.items() < trained.items()
    # what one has trained, the next takes; DVC records it in both
    recorded.run(*run, "--queue", "--name", "next", *STEPS, "--set-param", "config.yaml:level=0.9")
    recorded.run("dvc", "queue", "start")
    recorded.run("dvc", "queue", "logs", "--follow", "next")  # to its end
    assert "Success" in recorded.run("dvc", "queue", "status")
    assert state(store) == trained
    shown = json.loads(recorded.run("dvc", "exp", "show", "--json"))
    (commit,) = (row for row in shown if row["rev"] != "workspace")
    runs = {e["name"]: e["revs"][0]["data"] for e in commit["experiments"]}
    assert set(runs) == {"first", "next"}
    for data in runs.values():
        assert (
            data["params"]["config.yaml"]["data"]["main"]["protocols"]["nanogpt"]["training"][
                "steps"
            ]
            == 50
        )
        assert data["outs"]["store"]["nfiles"] == len(trained)
