"""The profile for Slurm on a real Slurm: requests, retries, checkpoints, the store, groups."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine
import project
import pytest
from engine import DONE, SNAKEMAKE, Engine, jobs, long_run, resumed

TARGETS = ("main", "pretrained", "results/paper/figures/loss.pdf")  # jobs of all kinds but the last
TIME_LIMITED = ("--set-resources", "main_train:runtime=attempt")  # a minute, then two, then three


@pytest.fixture(scope="module", autouse=True)
def stalled(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A training that stops in its first minute, the least that Slurm can limit; others go on."""
    root = long_run(tmp_path_factory.mktemp("stalled") / "project")
    started = Engine(root, DONE, *TIME_LIMITED)
    os.kill(started.at_checkpoint(), signal.SIGSTOP)
    yield started
    if started.process.poll() is None:
        started.process.terminate()
        started.process.wait()


@pytest.fixture(scope="module")
def finished(stalled: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """A project whose jobs of every kind ran on Slurm, and the output of the engine."""
    made = engine.fresh(tmp_path_factory.mktemp("finished") / "project", pretrained={"threads": 2})
    gpu = ("--set-resources", "pretrained_probe:gpu=1")
    return made, Engine(made.root, *TARGETS, *gpu).finish()


def test_a_cancelled_training_is_resumed_by_the_next_start(stalled: Engine, tmp_path: Path):
    root = long_run(tmp_path / "project")
    first = Engine(root, DONE, "--retries", "0")
    first.at_checkpoint()
    running = [job for job in jobs(first.log.read_text()) if job["JobState"] == "RUNNING"]
    subprocess.run(["scancel", running[-1]["JobId"]], check=True)
    said = first.finish(ok=False)
    assert jobs(said)[-1]["JobState"] == "CANCELLED"
    assert not resumed(root)
    Engine(root, DONE).finish()
    assert resumed(root)


def test_slurm_sees_what_rules_and_groups_ask_for(finished: tuple[Any, str]):
    # a group requests the cores and memory of one job, and the minutes of all
    planned = project.stats(finished[1])

    def number(kind: str) -> int:
        return sum(n for rule, n in planned.items() if re.search(kind, rule))

    expected = {
        "dataset": (1, "1000M", 10, False),
        "train": (1, "1006M", 11 * number("_train$"), False),
        "probe": (1, "2000M", 30 * number("(?<!pretrained)_probe$"), False),
        "pretrained_probe": (2, "3000M", 240 * number("pretrained_probe$"), True),
        "tables": (1, "1500M", 20 * number("_tables$"), False),
        "figures": (1, "1000M", 10 * number("^figure_"), False),
    }
    asked = {}
    for job in jobs(finished[1]):
        hours, minutes, _ = job["TimeLimit"].split(":")
        memory, gpu = re.search(r"mem=(\w+)", job["TRES"]), job.get("TresPerJob") == "gres:gpu:1"
        assert memory
        rules = re.sub(r"^rule_(\w+_(?=tables))?", "", job["Comment"])
        (kind,) = (kind for kind in expected if rules.startswith(kind))
        # a group may be submitted in parts, as its jobs are ready
        _, most, before, _ = asked.get(kind, (0, "", 0, False))
        total = before + 60 * int(hours) + int(minutes)
        asked[kind] = (int(job["NumCPUs"]), max(most, memory[1]), total, gpu)
    assert asked == expected


def test_jobs_are_submitted_in_groups(finished: tuple[Any, str], tmp_path: Path):
    assert "Ctrl-C stops" not in finished[1]  # the time on a cluster depends on its queue
    full = engine.fresh(tmp_path / "full")
    shutil.copy(engine.project.ROOT / "config.yaml", full.root)
    planned = full.run(*SNAKEMAKE, "--configfile", "config/paper.yaml", "-n")
    steps = int(re.findall(r"^total +(\d+)$", planned, re.MULTILINE)[0]) - 1  # all is none
    groups = planned.count("] Group job ")
    alone = len(re.findall(r"^(?:rule|checkpoint) (?!all:)\w+:$", planned, re.MULTILINE))
    print(f"\nthe paper grid: {steps} jobs, {groups + alone} to submit, of these {groups} groups")
    assert steps > 200
    assert groups + alone < steps / 4


def test_results_and_stores_of_slurm_serve_a_local_run(finished: tuple[Any, str], tmp_path: Path):
    made, _ = finished
    clone = made.copy(tmp_path / "clone")
    for name in ("results", ".snakemake"):
        shutil.rmtree(clone.root / name)
    clone.snakemake(*TARGETS)
    assert clone.digests("results/paper") == made.digests("results/paper")
    assert clone.digests("store") == made.digests("store")
    assert not list((clone.root / "results/benchmarks/main_train").glob("*"))  # none was trained
    # and what is trained here has the same name and bytes there
    for name in ("results", ".snakemake", "store"):
        shutil.rmtree(clone.root / name)
    clone.snakemake(DONE)
    trained = clone.digests("store")
    assert len(trained) == 5
    assert trained.items() <= made.digests("store").items()


def test_a_job_that_exceeds_its_time_is_given_more_and_resumes(stalled: Engine):
    tries = [job for job in jobs(stalled.finish()) if "train" in job["Comment"]]
    states = [job["JobState"] for job in tries]
    assert states[0] == "TIMEOUT"
    assert states[-1] == "COMPLETED"
    limits = ["00:01:00", "00:02:00", "00:03:00"][: len(tries)]
    assert [job["TimeLimit"] for job in tries] == limits
    memory = ["1006M", "2012M", "3018M"][: len(tries)]
    assert [job["MinMemoryNode"] for job in tries] == memory
    assert resumed(stalled.root)


CLUSTER = Path(__file__).parent / "cluster"


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.fail("only root can start a Slurm")
    try:
        started = subprocess.run([CLUSTER, "start"], capture_output=True, text=True, check=False)
        if started.returncode:
            pytest.fail(f"no Slurm: {started.stdout}{started.stderr}")
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run([CLUSTER, "stop"], check=True)
