"""Snakemake makes, DVC versions: they agree, and neither undoes the other's work."""

import json
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from project import PRETRAINED, ROOT, Project, fresh
from rules import RULES
from stages import TRAINED, is_covered

from normscope.io.provenance import closure

RAN = re.compile(r"^(?:local)?rule (dataset|\w+_train|\w+_probe):", re.MULTILINE)


def files_of(record: str) -> list[Path]:
    """The files that a record of results/code is of."""
    name = record.removeprefix("results/code/").removesuffix(".txt")
    name = name.replace("_tabulate", "_tables")  # a record has the name of the module, not the rule
    return RULES[re.sub(r"^[a-z]+_figures_", "figure_", name)]


def test_dvc_names_every_source_that_the_dag_reads(made: Project, dag: list[dict[str, str]]):
    stages = yaml.safe_load((made.root / "dvc.yaml").read_text())["stages"]
    some = "dataset main_train recall_probe jacobian_tables depth_train pretrained_probe render"
    assert {r["rule"] for r in dag} >= set(some.split())
    tracked = set(made.run("git", "ls-files").splitlines())
    for row in dag:
        stage = stages["runs" if row["rule"] in TRAINED else "paper"]
        read = set(row["input-file(s)"].split(",")) & tracked - {"corpus.txt"}
        read = {path for path in read if not path.startswith(("tiny_model/", "other_model/"))}
        inputs = row["input-file(s)"].split(",")
        records = [p for p in inputs if fnmatch(p, "results/code/*.txt")]
        code = [file for p in records for file in files_of(p)]
        read |= {str(p.relative_to(ROOT)) for p in closure(*code)}
        for path in read:
            assert is_covered(path, stage["deps"]), f"{row['rule']} reads {path}"
    for name, stage in stages.items():
        for path in ["Snakefile", "profiles/default/config.yaml", "workflow/rules", *stage["deps"]]:
            assert is_covered(path, stage["deps"]), f"{name} lacks {path}"
            assert (made.root / path).exists(), path


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


def test_no_two_cached_jobs_share_what_decides_them(dag: list[dict[str, str]]):
    for rule in ("main_train", "jacobian_train", "recall_train", "depth_train"):
        commands = {
            r["output_file"]: r["shellcmd"].partition(" --threads")[0]
            for r in dag
            if r["rule"] == rule and r["output_file"].endswith("config.json")
        }
        assert len(set(commands.values())) == len(commands) > 1


def test_every_rule_has_a_log_its_speed_and_a_script(made: Project):
    text = "".join(p.read_text() for p in (made.root / "workflow/rules").glob("*.smk"))
    rules = re.split(r"^ *rule\b", text, flags=re.MULTILINE)[1:]
    assert len(rules) > 10
    for rule in rules:
        script = re.search(r'\bcode\(\s*f?"([\w/{}]+)"', rule)
        assert script is not None, rule
        command = script[1].replace("{", "{params.")  # of a figure, by its name
        for part in ("log:", "conda:", f"scripts/{command}.py"):
            assert part in rule, f"{script[1]} lacks {part}"
        assert "benchmark:" in rule or "cache:" in rule or "output:" not in rule, script[1]


def test_the_profile_for_a_cluster_sizes_every_group(made: Project):
    profile = yaml.safe_load((made.root / "profiles/slurm/config.yaml").read_text())
    rules = "".join(p.read_text() for p in (made.root / "workflow/rules").glob("*.smk"))
    groups = re.findall(r'^ +group:\n +"(\w+)"', rules, re.MULTILINE)
    assert profile["group-components"].keys() == set(groups)
    assert profile["group-components"]["paper"] == groups.count("paper")


def test_conda_environment_has_the_tested_versions(made: Project):
    pins = set((made.root / "constraints.txt").read_text().splitlines())
    environment = yaml.safe_load((made.root / "workflow/envs/normscope.yaml").read_text())
    (packages,) = (d["pip"] for d in environment["dependencies"] if isinstance(d, dict))
    assert packages
    assert set(packages) <= pins


@pytest.fixture(scope="module")
def published(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The made project, recorded by dvc repro."""
    output = made.run("dvc", "repro")
    assert not RAN.search(output), output
    return made


def test_after_snakemake_dvc_only_records(published: Project):
    assert published.digests("paper") == published.digests("results/paper")
    assert "up to date" in published.run("dvc", "status")
    again = published.run("dvc", "repro")
    assert "Running stage" not in again
    assert published.planned() == {}


def test_a_collaborator_pulls_the_models_and_trains_nothing(
    published: Project, tmp_path_factory: pytest.TempPathFactory
):
    remote = tmp_path_factory.mktemp("remote")
    published.run("dvc", "remote", "add", "--local", "--default", "here", str(remote))
    published.run("dvc", "push")
    other = fresh(tmp_path_factory.mktemp("clone") / "project")
    shutil.copy(published.root / "dvc.lock", other.root)
    other.run("dvc", "remote", "add", "--local", "--default", "here", str(remote))
    other.run("dvc", "pull", "store")
    pulled = {path: path.stat().st_mtime_ns for path in (other.root / "store").iterdir()}
    output = other.snakemake("tables")
    assert pulled == {p: p.stat().st_mtime_ns for p in (other.root / "store").iterdir()}
    assert "rule main_probe:" in output
    links = [path for path in (other.root / "results").rglob("*") if path.is_symlink()]
    assert output.count("from cache") == len(links) > 40
    # what a training would write
    assert not list((other.root / "results/benchmarks").glob("*_train"))
    for study in ("main", "recall", "jacobian", "depth", "textbook", "pretrained"):
        tables = f"results/{study}/tables"
        assert other.digests(tables) == published.digests(tables)


@pytest.mark.parametrize(
    ("path", "old", "new", "entered"),
    [
        ("config.yaml", "width_mm: 170", "width_mm: 120", ["paper"]),
        ("config.yaml", "  learning_rate: 0.001", "  learning_rate: 0.002", ["paper", "runs"]),
        ("src/normscope/nn/norms.py", "self.alpha * x", "x * self.alpha", ["paper", "runs"]),
    ],
)
def test_dvc_enters_the_stages_that_dvc_yaml_names(
    published: Project, path: str, old: str, new: str, entered: list[str]
):
    """As the matrix of reruns takes for granted."""
    with published.edited(path, old, new):
        changed = json.loads(published.run("dvc", "status", "--json"))
    assert sorted(changed) == entered


@pytest.mark.long
def test_dvc_measures_again_only_what_changed(published: Project, tmp_path: Path):
    project = published.copy(tmp_path / "project")
    ran = re.compile(r"^(?:local)?rule (\w+):", re.MULTILINE)
    drawn = ("src/normscope/studies/jacobian/figures/jacobian.py", '"""', "X = 1\n" + '"""')
    published_gain = ("data/reference_gains.csv", "0.804718018", "0.814718018")
    with project.edited(*drawn), project.edited(*published_gain):
        rules = set(ran.findall(project.run("dvc", "repro")))
    last = {"render", "manifest", "metrics", "paper", "residual_gain"}
    assert rules == {"pretrained_tables", "figure_jacobian", "claims", "frame"} | PRETRAINED | last
    with project.edited("data/prompts.yaml", "currency used in Japan", "currency used in Peru"):
        rules = set(ran.findall(project.run("dvc", "repro", "runs")))
    assert rules == {"pretrained_probe", "models"}


def test_back_and_forth_between_two_configurations_trains_nothing(
    made: Project, diverged: Project, tmp_path: Path
):
    project = diverged.copy(tmp_path / "project")
    tables = made.digests("results/main/tables")
    assert project.digests("results/main/tables")["runs.csv"] != tables["runs.csv"]
    entries = set((project.root / "store").iterdir())
    shutil.copy(made.root / "config.yaml", project.root)
    project.snakemake("models", "main")
    for table in ("runs", "curves", "arms"):
        assert project.digests("results/main/tables")[f"{table}.csv"] == tables[f"{table}.csv"]
    assert set((project.root / "store").iterdir()) == entries
    assert not set(project.planned()) & TRAINED


def test_a_nanogpt_directory_can_be_used_instead(made: Project, tmp_path: Path):
    project, data = made.copy(tmp_path / "project"), tmp_path / "data"
    shutil.copytree(made.root / "results/dataset", data)
    with project.edited("config.yaml", "dataset:", f"dataset:\n  directory: {data}"):
        project.snakemake("results/dataset/train.bin")
    before, after = made.digests("results/dataset"), project.digests("results/dataset")
    for name in ("train.bin", "val.bin", "meta.pkl"):
        assert after[name] == before[name]
