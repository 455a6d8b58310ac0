"""Snakemake makes, DVC versions, schedulers give devices: they agree, and none undoes another."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from project import ROOT, RULES, TRAINED, Project, fresh

from normscope.io.provenance import closure
from normscope.verdicts.verdict import read as read_verdicts

SIZED = ("main", "recall", "jacobian", "depth")  # they train and probe models
RAN = re.compile(r"^(?:local)?rule (dataset|\w+_train|\w+_probe):", re.MULTILINE)


def test_dvc_names_every_source_that_the_dag_reads(made: Project, dag: list[dict[str, str]]):
    stages = yaml.safe_load((made.root / "dvc.yaml").read_text())["stages"]
    tracked = set(made.run("git", "ls-files").splitlines())
    for row in dag:
        stage = stages["runs" if row["rule"] in TRAINED else "paper"]
        read = set(row["input-file(s)"].split(",")) & tracked - {"corpus.txt"}
        read = {path for path in read if not path.startswith(("tiny_model/", "other_model/"))}
        read |= {str(p.relative_to(ROOT)) for p in closure(*RULES[row["rule"]])}
        for path in read | {"Snakefile", "profiles/default/config.yaml", "workflow/rules"}:
            folders = [str(folder) for folder in Path(path).parents]
            assert {path, *folders} & set(stage["deps"]), f"{row['rule']} reads {path}"


def test_dvc_outputs_and_targets_exist(made: Project):
    stages = yaml.safe_load((made.root / "dvc.yaml").read_text())["stages"]
    commands = [
        c for s in stages.values() for c in ([s["cmd"]] if isinstance(s["cmd"], str) else s["cmd"])
    ]
    targets = [c.split()[-1] for c in commands if c.startswith("snakemake")]
    assert targets == ["models", "paper"]
    assert made.planned(*targets, "main", "recall", "depth", "figures") == {}
    assert stages["runs"]["outs"] == [{"store": {"persist": True}}]
    assert stages["paper"]["outs"] == ["paper", {"metrics": {"cache": False}}]
    for folder in ("main/models", "recall/models", "depth/models", "pretrained/probes/tiny"):
        files = [p for p in (made.root / "results" / folder).rglob("[!.]*") if p.is_file()]
        assert {p.resolve().parent for p in files} == {(made.root / "store").resolve()}


def test_the_profile_for_a_cluster_sizes_every_group(made: Project):
    profile = yaml.safe_load((made.root / "profiles/slurm/config.yaml").read_text())
    rules = "".join(p.read_text() for p in (made.root / "workflow/rules").glob("*.smk"))
    groups = re.findall(r'^ +group:\n +"(\w+)"', rules, re.MULTILINE)
    assert profile["group-components"].keys() == set(groups)
    assert profile["group-components"]["paper"] == groups.count("paper")


@pytest.fixture(scope="module")
def plan(made: Project) -> str:
    """Every job of a run on a GPU."""
    return made.snakemake("-n", "-p", "--forceall", "--config", "device=cuda")


def jobs_of(plan: str) -> list[tuple[str, str]]:
    """The rules of the jobs, and what Snakemake says of them."""
    return re.findall(r"^ *(?:local)?rule (\w+):\n((?: +.+\n)+)", plan, re.MULTILINE)


def test_jobs_with_models_get_the_device_and_request_a_gpu(plan: str):
    jobs = jobs_of(plan)
    asked = {
        rule: dict(re.findall(r"(\w+)=([^,\s]+)", resources)).get("gpu") for rule, resources in jobs
    }
    models = {f"{study}_{stage}" for study in SIZED for stage in ("train", "probe")}
    models |= {"pretrained_probe"}
    assert {rule for rule, gpu in asked.items() if gpu is not None} == models
    assert {asked[rule] for rule in models} == {"1"}
    recipes = re.findall(r'"device":"(\w+)"', plan)
    assert set(recipes) == {"cuda"}
    assert len(recipes) == sum(rule in models for rule, _ in jobs)


def test_conda_environment_has_the_tested_versions(made: Project):
    pins = set((made.root / "constraints.txt").read_text().splitlines())
    environment = yaml.safe_load((made.root / "workflow/envs/normscope.yaml").read_text())
    (packages,) = (d["pip"] for d in environment["dependencies"] if isinstance(d, dict))
    assert packages
    assert set(packages) <= pins


def test_what_most_jobs_wait_for_starts_first(plan: str):
    priority: dict[str, dict[str, float]] = {}
    for rule, text in jobs_of(plan):
        (value,) = re.findall(r"priority: (\S+)", text) or [0]
        (name,) = re.findall(r"wildcards: name=(\S+)", text) or [""]
        priority.setdefault(rule, {})[name] = float(value)
    timed = {rule: values for rule, values in priority.items() if any(values.values())}
    trainings, probes = ([f"{study}_{stage}" for study in SIZED] for stage in ("train", "probe"))
    assert set(timed) == {"dataset", "pretrained_probe", *trainings, *probes}
    longest = max(value for rule in trainings for value in timed[rule].values())
    first = (
        value for rule in ("dataset", "pretrained_probe", *probes) for value in timed[rule].values()
    )
    assert min(first) > longest
    one, other = (
        timed["main_train"][f"{name}-1"]
        for name in ("nanogpt-layernorm-pre-0.001", "small-layernorm-pre-0.003")
    )
    assert one > other > 0  # more steps of a larger model


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
