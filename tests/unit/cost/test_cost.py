"""The costs of jobs, projected and measured, and the order that follows from them."""

import heapq
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, SCRIPTS
from recipes import recipe

from normscope.config import Config, load
from normscope.cost.projection import (
    Reference,
    about,
    benchmarked,
    critical_paths,
    jobs,
    once,
    read_reference,
    seconds_left,
)
from normscope.paper.figures import OF_LEDGER, drawn
from normscope.paper.figures import load as load_figures
from normscope.pilot import read_project
from normscope.studies.folder import FOLDER
from normscope.studies.study import Job
from normscope.train.recipe import flops

TABLE = ROOT / "workflow/costs.yaml"
MAIN = read_project(ROOT)


@pytest.fixture(scope="module")
def config() -> Config:
    return load(MAIN)


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


def test_the_number_of_seeds_per_job_does_not_change_the_total_work(config: Config):
    def works(loaded: Config) -> dict[str, float]:
        sums: dict[str, float] = {}
        for job in jobs(loaded):
            sums[job.rule] = sums.get(job.rule, 0.0) + job.work
        return sums

    stacked = ("recall", "jacobian", "depth", "literature")
    alone = {name: MAIN[name] | {"stack": 1} for name in stacked}
    assert works(load(MAIN | {"stack": 1} | alone)) == pytest.approx(works(config))


def test_the_remaining_time_follows_the_pace_of_the_run():
    """Half the work done in twice its expected time on two cores: the other half takes as long."""
    assert seconds_left(1e6, 0, 0, 4) == 250_000
    assert seconds_left(1e6, 1e6, 1e6, 2) == pytest.approx(1e6, rel=1e-4)
    assert seconds_left(0, 5, 9, 1) == 0


ROWS = [("fp32", 10.0, 5.0), ("fp32", 1000.0, 100.0), ("bf16", 20.0, 1.0)]


@pytest.mark.parametrize(
    ("kind", "work", "rows", "start", "seconds"),
    [
        ("fp32", 20.0, ROWS, 0.0, 10.0),  # the nearest job takes 0.5 s per unit of work
        ("fp32", 5000.0, ROWS, 0.0, 500.0),  # and here 0.1 s
        ("bf16", 40.0, ROWS, 0.0, 2.0),
        ("fp8", 1000.0, ROWS, 0.0, 100.0),  # no job of this kind: the nearest of another kind
        ("fp32", 20.0, ROWS[:1], 2.0, 8.0),  # 2 s to start, and 0.3 s per unit
        ("fp32", 20.0, ROWS[:1], 9.0, 5.0),  # all of it is the start
        ("fp32", 20.0, [], 2.0, 2.0),  # an unknown rule
    ],
)
def test_a_projection_scales_the_nearest_job_with_work(kind, work, rows, start, seconds):
    table = [("train", *row) for row in rows]
    reference = Reference(machine="a", start_s=start, jobs=table)
    assert reference.seconds(Job("train", "x", kind, work)) == seconds


def test_every_rule_and_kind_of_the_workflow_has_a_row(config: Config):
    texts = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
    rules = set(re.findall(r"^ *rule (\w+):", "\n".join(texts), re.MULTILINE))
    for name, study in config.studies.items():
        stages = {"train": study.TRAINS, "probe": study.PROBED, "tables": True}
        rules |= {f"{name}_{stage}" for stage, there_is in stages.items() if there_is}
    assert len(rules) > 20
    table = read_reference(TABLE)
    rows = {(rule, kind, work) for rule, kind, work, _ in table.jobs}
    assert {rule for rule, *_ in rows} == rules | {"figures", *OF_LEDGER}
    assert len(rows) == len(table.jobs), "given twice"
    trained = {(j.rule, j.kind) for j in jobs(config) if j.rule.endswith("_train")}
    assert trained <= {(rule, kind) for rule, kind, _ in rows}


def test_a_critical_path_is_a_training_its_longest_probe_and_the_tables(config: Config):
    cost = {"train": 1.0, "probe": 20.0, "tables": 300.0}
    rows = [(f"{s}_{stage}", "", 1.0, c) for s in config.studies for stage, c in cost.items()]
    paths = critical_paths(config, Reference(machine="a", start_s=1e3, jobs=rows))
    assert set(paths) == {(job.rule, job.name) for job in jobs(config)}
    for name, study in config.studies.items():
        probed = {training for probe in study.probes() for training in study.probed(probe)}
        for training in study.trainings():
            assert paths[f"{name}_train", training] == (321.0 if training in probed else 301.0)
        assert {paths[f"{name}_probe", probe] for probe in study.probes()} <= {320.0}


@pytest.mark.parametrize(("cores", "slack"), [(2, 1.015), (4, 1.03), (8, 1.05)])
def test_longest_critical_path_first_leaves_few_cores_idle(
    config: Config, cores: int, slack: float
):
    """List scheduling of the default run; a schedule cannot be shorter than the bound."""
    reference = read_reference(TABLE)
    cost = {(job.rule, job.name): reference.seconds(job) for job in jobs(config)}
    needs: dict[tuple[str, str], set[tuple[str, str]]] = {job: set() for job in cost}
    for name, study in config.studies.items():
        for probe in study.probes():
            trained = study.trainings().keys() & set(study.probed(probe))
            needs[f"{name}_probe", probe] = {(f"{name}_train", training) for training in trained}
        tables = (f"{name}_tables", "")
        needs[tables] = {job for job in cost if job[0] in (f"{name}_train", f"{name}_probe")}
        cost[tables] = reference.seconds(once(tables[0]))
    paths = critical_paths(config, reference)
    waiting, running, done, now = list(needs), [], set(), 0.0
    while len(done) < len(needs):
        ready = [job for job in waiting if needs[job] <= done]
        for job in heapq.nlargest(cores - len(running), ready, key=lambda job: paths.get(job, 0)):
            waiting.remove(job)
            heapq.heappush(running, (now + cost[job], job))
        now, job = heapq.heappop(running)
        done.add(job)
    assert now < slack * max(sum(cost.values()) / cores, *paths.values())


def test_benchmark_files_are_read_for_the_jobs_of_the_configuration(tmp_path: Path):
    a, b, cut, absent = (Job("train", name, "", 1.0) for name in ("a", "b", "cut", "absent"))
    files = {"train/a": "30.0", "train/b": "NA", "train/other": "50.0", "claims": "5.0"}
    for name, seconds in files.items():
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"s\tcpu_time\n1.0\t{seconds}\n")
    (tmp_path / "train/cut.tsv").write_text("s\tcpu_time\n")
    found = benchmarked(tmp_path, [a, b, cut, absent, once("claims")])
    assert found == {a: 30.0, once("claims"): 5.0}


def test_the_script_prints_core_hours_by_rule(config: Config):
    words = ["--config", config.model_dump_json(), "--reference", str(TABLE)]
    command = [sys.executable, str(SCRIPTS / "cost.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cells = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if "|" in line]
    rows = {rule: (n, hours) for rule, n, hours in cells}
    assert rows["main_train"][0] == str(len(config.main.trainings()))
    reference = read_reference(TABLE)
    seconds = sum(reference.seconds(job) for job in jobs(config) if job.rule == "main_train")
    assert float(rows["main_train"][1]) == pytest.approx(seconds / 3600, abs=0.005)
    assert float(rows["total"][1]) > float(rows["main_train"][1])
    assert not any(rule.startswith("card") for rule in rows)
    shown = drawn(load_figures(FOLDER, config.studies), config)
    assert rows["figures"][0] == str(len(OF_LEDGER) + len(shown))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (9.9, "a few seconds"),
        (89, "about 90 seconds"),
        (99 * 60, "about 99 minutes"),
        (71 * 3600, "about 71 hours"),
        (80 * 3600, "about 3 days"),
    ],
)
def test_a_duration_has_one_or_two_digits(seconds, words):
    assert about(seconds) == words
