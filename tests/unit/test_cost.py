"""Core-hours of a configuration: measured where a benchmark file is, else projected."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import SCRIPTS
from recipes import recipe

from normscope.config import Config, load
from normscope.cost import cost_table, jobs, projected
from normscope.studies.study import Job
from normscope.train.recipe import flops

ROOT = SCRIPTS.parent


MAIN = yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture(scope="module")
def config() -> Config:
    return load(MAIN)


def test_flops_are_six_for_every_parameter_and_token_of_every_seed():
    sizes = {"n_layer": 2, "n_head": 1, "n_embd": 10, "block_size": 5}
    stack = recipe(seeds=[4, 5, 6, 7], steps=3, batch_size=7, **sizes)
    # 3 x 7 x 5 tokens, two blocks of 12 x 100 weights, and 2 x 5 x 10 for scores and averages
    assert flops(stack) == 4 * 6 * 105 * 2 * (1200 + 100)


def test_every_training_and_probe_is_a_job(config: Config):
    found = list(jobs(config))
    count = {rule: sum(j.rule == rule for j in found) for rule in {j.rule for j in found}}
    for name, study in config.studies.items():
        assert count.get(f"{name}_train", 0) == len(study.trainings())
        assert count.get(f"{name}_probe", 0) == len(study.probes())
    assert len({(j.rule, j.name) for j in found}) == len(found)
    assert all(j.work > 0 for j in found)


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


def test_a_projection_scales_with_work_from_the_nearest_measured_job():
    small, large = Job("train", "s", "fp32", 10.0), Job("train", "l", "fp32", 1000.0)
    other = Job("train", "o", "bf16", 20.0)
    measured = [(small, 5.0), (large, 100.0), (other, 1.0)]
    assert projected(Job("train", "x", "fp32", 20.0), measured) == 10.0  # 0.5 a unit
    assert projected(Job("train", "x", "fp32", 5000.0), measured) == 500.0  # 0.1 a unit
    assert projected(Job("train", "x", "bf16", 40.0), measured) == 2.0
    # no job of its kind: any of the rule
    assert projected(Job("train", "x", "fp8", 1000.0), measured) == 100.0
    assert math.isnan(projected(Job("probe", "x", "", 1.0), measured))


def test_jobs_as_near_as_each_other_are_averaged():
    measured = [(Job("t", "a", "", 10.0), 10.0), (Job("t", "b", "", 10.0), 30.0)]
    assert projected(Job("t", "x", "", 10.0), measured) == 20.0


def test_only_the_same_job_is_measured():
    ran = [Job("train", "a", "", 10.0), Job("train", "b", "", 10.0), Job("train", "c", "", 10.0)]
    seconds = {("train", "a"): 3600.0, ("train", "b"): 7200.0}
    asked = [ran[0], Job("train", "b", "", 20.0), Job("train", "new", "", 10.0)]
    (row,) = cost_table(asked, ran, seconds).to_dict("records")
    assert (row["jobs"], row["measured jobs"]) == (3, 1)
    assert row["measured"] == 1.0
    assert row["projected"] == pytest.approx(3.0 + 1.5)  # 1.5 hours for every 10 of work


def run(config: Config, folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["--config", config.model_dump_json(), "--manifest", str(folder / "manifest.json")]
    words += ["--benchmarks", str(folder / "benchmarks")]
    command = [sys.executable, str(SCRIPTS / "cost.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_says_what_is_missing_and_then_prints_core_hours(config: Config, tmp_path: Path):
    (tmp_path / "benchmarks").mkdir()
    found = run(config, tmp_path)
    assert found.returncode == 1
    assert "has no timing of a training" in found.stderr
    timing = tmp_path / "benchmarks" / "main_train" / "layernorm-pre-1337.tsv"
    timing.parent.mkdir()
    timing.write_text("s\tsteps\tms_per_step\n360.0\t2000\t180.0\n")
    found = run(config, tmp_path)
    assert found.returncode == 1
    assert "manifest.json is missing" in found.stderr
    ran = json.loads(config.model_dump_json(exclude={"dataset"}))
    (tmp_path / "manifest.json").write_text(json.dumps({"config": ran}))
    once = tmp_path / "benchmarks" / "runs.tsv"
    once.write_text("s\tcpu_time\n9.0\t3600.0\n")
    found = run(config, tmp_path)
    assert found.returncode == 0, found.stderr
    lines = {line.split(" | ")[0].strip("| "): line for line in found.stdout.splitlines()}
    assert lines["main_train"].split(" | ")[2:4] == ["1", "0.10"]
    assert lines["one job each"].split(" | ")[1:4] == ["1", "1", "1.00"]
    assert lines["recall_train"].split(" | ")[4].strip(" |") == "–"  # nothing to project from
