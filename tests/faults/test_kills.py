"""SIGKILL at random moments changes no result, and no stored work is repeated."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import warm
import yaml
from cases import count, edit_command, frequent_checkpoints
from engines import Engine, jobs, started, wait_for_jobs, wait_until_quiet
from project import Project
from watch import EVERY, SHORT, STEPS, Watch

# parts of results/ that differ between runs
ON_THE_WAY = {"logs", "benchmarks", "checkpoints", "read.jsonl"}
START = """
python() {{
  if [ $((RANDOM % 8)) = 0 ]; then command python "$@"; else {python} "$@"; fi
}}
"""
TABLES = "main/tables/runs.csv"
DEPTH = "depth/models/layernorm-pre-residual-gpt2-3-0.003-5-20-1/metrics.csv"
RECALL = "recall/models/recall-layernorm-0.01-1/metrics.csv"
TINY = "pretrained/probes/tiny/model.json"
AGAIN = ("--retries", "50")  # of jobs: starting the engine again would take longer
PARTS = ("main", *(f"results/{name}" for name in (DEPTH, RECALL, TINY)))
MODELS = ("snakemake", "--cores", "2", *AGAIN, "--", *PARTS)
PAPER = ("snakemake", "--cores", "2", *AGAIN)
DVC_MODELS, DVC = ("dvc", "repro", "runs"), ("dvc", "repro")
KILLS_OF_A_CYCLE = 100
PAUSE = 1.5  # seconds between kills, at most


@pytest.fixture(scope="module", autouse=True)
def warm_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jobs are forks of a process with torch: kills hit jobs at work, not their imports.

    Every eighth job starts as usual.
    """
    start = tmp_path_factory.mktemp("start") / "start.sh"  # read by the shells of jobs
    start.write_text(START.format(python=warm.programs() / "python"))
    Engine.env["BASH_ENV"] = str(start)
    yield
    Engine.env.clear()


@pytest.fixture(scope="module")
def is_short(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--target") == "models"


@pytest.fixture(scope="module")
def longer(cloned: Project, is_short: bool, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with trainings that are long enough to be hit, and frequent checkpoints."""
    project = cloned.copy(tmp_path_factory.mktemp("longer") / "project")
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    parts = (config, config["jacobian"], config["literature"])
    protocols = [one["training"] for part in parts for one in part["protocols"].values()]
    for part in (config["training"], *config["recall"]["tasks"].values(), *protocols):
        part["steps"] = STEPS
        if part.get("warmup_steps", 0) >= STEPS:  # of a protocol with more steps
            part["warmup_steps"] = STEPS // 3
    config["depth"]["training"]["steps"] = SHORT
    (project.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    for stage in ("runs", "paper"):
        edit_command(project, stage, "--cores 4", f"--cores 2 {' '.join(AGAIN)} --")
    if is_short:
        edit_command(project, "runs", "-- models", "-- main")
    frequent_checkpoints(project, EVERY)
    return project


def forget(project: Project) -> None:
    """Remove all results, and the cache from which DVC would restore them."""
    wait_until_quiet(project.root)
    for folder in ("results", "store", "paper", ".snakemake", ".dvc/cache", "dvc.lock"):
        path = project.root / folder
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def undisturbed(longer: Project, is_short: bool) -> dict[str, dict[str, str]]:
    """Digests of all that an undisturbed run makes."""
    began = time.monotonic()
    status, said = Engine(longer, *(MODELS if is_short else PAPER)).end()
    assert status == 0, said
    print(f"undisturbed: {time.monotonic() - began:.0f} s")
    made = artifacts(longer)
    forget(longer)
    return made


def artifacts(project: Project) -> dict[str, dict[str, str]]:
    """Digests of all that a run makes."""
    results = project.digests("results").items()
    final = {name: digest for name, digest in results if not ON_THE_WAY & {*Path(name).parts}}
    return {"store": project.digests("store"), "results": final, "paper": project.digests("paper")}


class Cycle:
    """One complete run of the workflow with kills."""

    def __init__(self, project: Project, command: tuple[str, ...], rng: random.Random) -> None:
        self.project, self.command, self.rng = project, command, rng
        self.watch, self.kills = Watch(project), Counter()

    def run(self, kills: int) -> None:
        """Kill at most ``kills`` times, then run to the end.

        An engine under which something was killed may fail, and another one goes on. A failure
        without a kill would repeat for ever: it ends the test.
        """
        status = 1
        while status:
            before = self.kills.total()
            engine = started(self.project, *self.command)
            while engine.is_alive and self.kills.total() < kills:
                self.wait(engine)
                if engine.is_alive:
                    self.watch.look()
                    self.kill(engine)
            status, said = engine.end()
            assert "Traceback" not in said, said
            assert status == 0 or self.kills.total() > before, f"failed without a kill:\n{said}"
        wait_until_quiet(self.project.root)
        self.watch.look()
        self.watch.check()

    def wait(self, engine: Engine) -> None:
        """Wait until a random moment, often after the start of a training."""
        if self.rng.random() < 0.6:
            deadline = time.monotonic() + 4 * PAUSE
            while engine.is_alive and time.monotonic() < deadline and not self.training():
                time.sleep(0.05)
        time.sleep(self.rng.uniform(0, PAUSE))
        wait_for_jobs(engine, self.project.root)

    def training(self) -> list[psutil.Process]:
        return [job for job in jobs(self.project.root) if self.watch.trained_by(job)]

    def kill(self, engine: Engine) -> None:
        """Kill a job more often than the engine, and a training more often than another job."""
        name = "dvc repro" if self.command[0] == "dvc" else "Snakemake"
        shares = (6, 2, 2) if self.command[0] == "dvc" else (18, 1, 1)
        target = self.rng.choices(("job", "engine", "group"), shares)[0]
        if target == "job":
            self.kill_job(jobs(self.project.root))
        else:
            training = [self.watch.trained_by(job) for job in jobs(self.project.root)]
            hit = {folder for folder in training if folder} if target == "group" else set()
            engine.kill(group=target == "group")
            for folder in hit:
                self.watch.dies(folder)
            how = "and its jobs" if target == "group" else "alone; its jobs keep running"
            self.kills[f"SIGKILL of {name} {how}"] += 1

    def kill_job(self, running: list[psutil.Process]) -> None:
        training = [job for job in running if self.watch.trained_by(job)]
        if not running:
            return
        job = self.rng.choice(training if training and self.rng.random() < 0.7 else running)
        folder = self.watch.trained_by(job)
        try:
            script = script_of(job)
            job.kill()
            psutil.wait_procs([job])
        except (psutil.NoSuchProcess, IndexError):
            return  # it has ended
        if folder:
            self.watch.dies(folder)
        kind = "a training" if folder else "a training, at start"
        kind = kind if script == "train" else "another job"
        self.kills[f"SIGKILL of {kind}"] += 1


def script_of(job: psutil.Process) -> str:
    fork = job.name().removeprefix("@")
    return fork if fork != job.name() else Path(job.cmdline()[1]).stem


def check(project: Project, command: tuple[str, ...], expected: dict[str, dict[str, str]]) -> None:
    """Every final artifact has the bytes of an undisturbed run, and there is nothing else."""
    made = artifacts(project)
    if command in (MODELS, DVC_MODELS):  # a part
        assert made["store"]
        assert made["store"].items() <= expected["store"].items()
        assert made["results"].items() <= expected["results"].items()
        assert command == DVC_MODELS or {TABLES, DEPTH, RECALL, TINY} <= made["results"].keys()
        return
    published = project.digests("results/paper") if command == DVC else {}
    assert made == expected | {"paper": published}
    if command == DVC:
        shown = {
            n: d for n, d in published.items() if n.startswith("plots/") or n == "metrics.json"
        }
        assert len(shown) > 1
        assert shown.items() <= project.digests("metrics").items()


@pytest.fixture(scope="module")
def kills(request: pytest.FixtureRequest) -> int:
    return request.config.option.kills


def test_random_kills(kills: int, longer: Project, undisturbed, is_short: bool, rng):
    dvc, snakemake = (DVC_MODELS, MODELS) if is_short else (DVC, PAPER)
    began, done = time.monotonic(), 0
    while done < kills:
        command, most = (dvc, kills // 10) if done < kills // 10 else (snakemake, KILLS_OF_A_CYCLE)
        cycle = Cycle(longer, command, rng)
        survived = False
        try:
            cycle.run(min(kills - done, most))
            check(longer, command, undisturbed)
            survived = True
        finally:
            for name, n in cycle.kills.items():
                count(name, n, survived)
        done += cycle.kills.total()
        seconds = time.monotonic() - began
        print(f"{done} kills, {' '.join(command)[:20]}, {seconds:.0f} s", flush=True)
        forget(longer)
