"""What DVC and schedulers have to know of the jobs: sources, outputs, devices, order."""

import re
from pathlib import Path

import pytest
import yaml
from project import ROOT, RULES, TRAINED, Project

from normscope.io.provenance import closure

SIZED = ("main", "recall", "jacobian", "depth")  # they train and probe models


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
    models |= {"norms_train", "pretrained_probe"}
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
    trainings.append("norms_train")
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
