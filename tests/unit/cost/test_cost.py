"""Core-hours of a configuration: measured where a benchmark file is, else projected."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import ROOT, SCRIPTS
from recipes import recipe

from normscope.config import Config, load
from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.projection import Costs, cost_rows, jobs, once, projected
from normscope.cost.reference import Reference, read_reference
from normscope.studies.study import Job
from normscope.train.recipe import flops

TABLE = ROOT / "workflow/costs.yaml"


MAIN = yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture(scope="module")
def config() -> Config:
    return load(MAIN)


def reference(start_s: float = 2.0, **seconds: float) -> Reference:
    """Jobs of 10 units of work."""
    rows = [(rule, "", 10.0, s) for rule, s in seconds.items()]
    return Reference(machine="a", round_s=1.0, start_s=start_s, jobs=rows)


def test_flops_are_six_for_every_parameter_and_token_of_every_seed():
    sizes: dict[str, Any] = {"n_layer": 2, "n_head": 1, "n_embd": 10, "block_size": 5}
    stack = recipe(seeds=[4, 5, 6, 7], steps=3, batch_size=7, **sizes)
    # 3 x 7 x 5 tokens, two blocks of 12 x 100 weights, and 2 x 5 x 10 for scores and averages
    assert flops(stack) == 4 * 6 * 105 * 2 * (1200 + 100)


def test_every_training_and_probe_is_a_job(config: Config):
    listed = list(jobs(config))
    count = {rule: sum(j.rule == rule for j in listed) for rule in {j.rule for j in listed}}
    for name, study in config.studies.items():
        assert count.get(f"{name}_train", 0) == len(study.trainings())
        assert count.get(f"{name}_probe", 0) == len(study.probes())
    assert len({(j.rule, j.name) for j in listed}) == len(listed)
    assert all(j.work > 0 for j in listed)


def test_how_many_seeds_a_job_has_changes_no_sum_of_work(config: Config):
    def works(loaded: Config) -> dict[str, float]:
        sums: dict[str, float] = {}
        for job in jobs(loaded):
            sums[job.rule] = sums.get(job.rule, 0.0) + job.work
        return sums

    alone = {name: MAIN[name] | {"stack": 1} for name in ("recall", "jacobian", "depth")}
    assert works(load(MAIN | {"stack": 1} | alone)) == pytest.approx(works(config))


def test_batchnorm_is_another_kind_than_norms_of_a_token(config: Config):
    kinds = {j.name: j.kind for j in jobs(config) if j.rule == "recall_train"}
    assert kinds["copy-batchnorm-0.0001-1337"] != kinds["copy-layernorm-0.0001-1337"]


SMALL, LARGE = Job("train", "s", "fp32", 10.0), Job("train", "l", "fp32", 1000.0)
TIMES = {SMALL: 5.0, LARGE: 100.0, Job("train", "o", "bf16", 20.0): 1.0}
TWINS = {Job("train", "a", "", 10.0): 10.0, Job("train", "b", "", 10.0): 30.0}


@pytest.mark.parametrize(
    ("kind", "work", "times", "start", "seconds"),
    [
        ("fp32", 20.0, TIMES, 0.0, 10.0),  # the nearest takes 0.5 s for a unit of work
        ("fp32", 5000.0, TIMES, 0.0, 500.0),  # and here 0.1 s
        ("bf16", 40.0, TIMES, 0.0, 2.0),
        ("fp8", 1000.0, TIMES, 0.0, 100.0),  # of another kind, for want of its own
        ("fp32", 20.0, {SMALL: 7.0}, 2.0, 12.0),  # 2 s to start, and 0.5 s for a unit
        ("fp32", 10.0, {SMALL: 7.0}, 2.0, 7.0),
        ("fp32", 20.0, {SMALL: 7.0}, 9.0, 7.0),  # all of it start
        ("", 10.0, TWINS, 0.0, 20.0),  # the mean of equally near jobs
    ],
)
def test_a_projection_scales_the_nearest_job_with_work(kind, work, times, start, seconds):
    assert projected(Job("train", "x", kind, work), times, start) == seconds
    assert math.isnan(projected(Job("probe", "x", kind, work), times, start))


def test_what_was_measured_here_wins_over_the_reference():
    known, alike = Job("train", "a", "", 10.0), Job("train", "b", "", 20.0)
    probed, new = Job("probe", "a", "", 20.0), Job("new", "", "", 1.0)
    costs = Costs(reference(train=100.0, probe=12.0), {known: 7.0}, slowness=3.0)
    assert costs.seconds([known, alike, probed, new]) == {
        known: 7.0,
        alike: 12.0,  # of the known: 2 to start, and 0.5 a unit
        probed: 3 * 22.0,  # of the reference: 2 to start, and 1 a unit
        new: 3 * 2.0,  # a start
    }


def test_only_the_same_job_is_measured():
    ran = [Job("train", "a", "", 10.0), Job("train", "b", "", 10.0)]
    asked = [ran[0], Job("train", "b", "", 20.0), Job("train", "new", "", 10.0)]
    costs = Costs(reference(start_s=0.0), {ran[0]: 3600.0, ran[1]: 7200.0}, slowness=1.0)
    (row,) = cost_rows(asked, costs)
    assert (row["jobs"], row["measured jobs"]) == (3, 1)
    assert row["measured"] == 1.0
    assert row["projected"] == pytest.approx(3.0 + 1.5)  # 1.5 hours for every 10 of work


def test_every_rule_and_kind_of_the_workflow_has_a_row(config: Config):
    texts = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
    rules = set(re.findall(r"^rule (\w+)", "\n".join(texts), re.MULTILINE))
    for name, study in config.studies.items():
        stages = {"train": study.TRAINS, "probe": study.PROBED, "tables": True}
        rules |= {f"{name}_{stage}" for stage, there_is in stages.items() if there_is}
    assert len(rules) > 20
    table = read_reference(TABLE)
    assert {job.rule for job in table.seconds} == rules | {"figures"}
    assert len(table.seconds) == len(table.jobs), "given twice"
    trained = {(j.rule, j.kind) for j in jobs(config) if j.rule.endswith("_train")}
    assert trained <= {(job.rule, job.kind) for job in table.seconds}


def benchmark(path: Path, seconds: object, age_s: float = 60.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\tcpu_time\n1.0\t{seconds}\n")
    changed = path.stat().st_mtime - age_s
    os.utime(path, (changed, changed))


def test_benchmark_files_are_of_the_run_that_the_manifest_is_of(config: Config, tmp_path: Path):
    ran = [job for job in jobs(config) if job.rule == "main_train"]
    benchmark(tmp_path / "main_train" / f"{ran[0].name}.tsv", 30.0)
    benchmark(tmp_path / "main_train" / f"{ran[1].name}.tsv", 40.0, age_s=-60.0)
    benchmark(tmp_path / "main_train" / "another-name.tsv", 50.0)
    benchmark(tmp_path / "main_train" / f"{ran[2].name}.tsv", "NA")
    (tmp_path / "main_train" / f"{ran[3].name}.tsv").write_text("s\tcpu_time\n")
    benchmark(tmp_path / "claims.tsv", 5.0, age_s=-60.0)
    benchmark(tmp_path / "figures/loss.tsv", 3.0)
    manifest = tmp_path / "manifest.json"
    sizeless = {once("claims"): 5.0, once("figures", "loss"): 3.0}
    assert measured(tmp_path, manifest, config) == sizeless
    manifest.write_text(json.dumps({"config": {"key": "of another version"}}))
    assert measured(tmp_path, manifest, config) == sizeless
    document = json.loads(config.model_dump_json(exclude={"dataset"}))
    manifest.write_text(json.dumps({"config": document}))
    assert measured(tmp_path, manifest, config) == sizeless | {ran[0]: 30.0}
    half = document | {"training": document["training"] | {"steps": config.training.steps // 2}}
    manifest.write_text(json.dumps({"config": half}))
    (job,) = measured(tmp_path, manifest, config).keys() - sizeless.keys()
    assert (job.name, job.work) == (ran[0].name, ran[0].work / 2)


def test_a_probe_ends_with_a_speed():
    speed = probe(0.0)
    assert speed.round_s > 0
    assert speed.crowding >= 1


def run(config: Config, folder: Path) -> dict[str, list[str]]:
    """What the script prints: the cells of each row, by the first."""
    words = ["--config", config.model_dump_json(), "--manifest", str(folder / "manifest.json")]
    words += ["--benchmarks", str(folder / "benchmarks"), "--reference", str(TABLE)]
    command = [sys.executable, str(SCRIPTS / "cost.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in rows}


def test_the_script_prints_core_hours_before_and_after_a_run(config: Config, tmp_path: Path):
    lines = run(config, tmp_path)
    trained = str(len(config.main.trainings()))
    assert lines["main_train"][:3] == [trained, "0", "0.00"]
    assert float(lines["total"][3]) > float(lines["main_train"][3]) > 0
    benchmark(tmp_path / "benchmarks/main_train/nanogpt-layernorm-pre-0.001-1337.tsv", 360.0)
    benchmark(tmp_path / "benchmarks/claims.tsv", 3600.0)
    ran = json.loads(config.model_dump_json(exclude={"dataset"}))
    (tmp_path / "manifest.json").write_text(json.dumps({"config": ran}))
    lines = run(config, tmp_path)
    assert lines["main_train"][:3] == [trained, "1", "0.10"]
    assert lines["one job each"][1:3] == ["1", "1.00"]
    assert lines["total"][1:3] == ["2", "1.10"]
