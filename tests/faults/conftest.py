"""Faults: how many kills, with which seed, and the table of what came of each fault."""

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

from engines import Engine
from project import Project, fresh

TARGETS = ("runs", "results/paper/figures/loss.svg")  # of one that is made undisturbed
MADE = ("store", "results/tables", "results/paper", "results/dataset")
TALLY: dict[str, Counter[str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=200, help="SIGKILLs at random moments")
    parser.addoption("--target", choices=("models", "paper"), default="paper")
    parser.addoption("--seed", type=int, help="of the kills, as an earlier run printed it")


@contextmanager
def fault(name: str, injected: int = 1) -> Iterator[None]:
    """Faults of a kind that the body injects, survived if its assertions hold."""
    tally = TALLY.setdefault(name, Counter())
    tally["injected"] += injected
    tally["lost"] += injected
    yield
    tally["lost"] -= injected
    tally["survived"] += injected


@pytest.fixture(scope="session")
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"\n--seed {seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of which nothing is made; tests take copies."""
    return fresh(tmp_path_factory.mktemp("cloned") / "project")


@pytest.fixture(scope="session")
def modelled(cloned: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One with models, tables and a figure, made undisturbed; tests take copies."""
    project = cloned.copy(tmp_path_factory.mktemp("modelled") / "project")
    frequent_checkpoints(project, 5)
    project.snakemake(*TARGETS)
    return project


@pytest.fixture
def half_made(modelled: Project, tmp_path: Path) -> Project:
    """The same, but for trainings that a SIGKILL cut short, two after two checkpoints or more."""
    project = clean(modelled, tmp_path)
    engine = Engine(project, "snakemake", "--cores", "2", "runs")
    wait_for_checkpoints(engine, project, 2)
    engine.kill(group=True)
    project.snakemake("--unlock")
    return project


def clean(modelled: Project, at: Path) -> Project:
    """A copy with its dataset alone."""
    project = modelled.copy(at / "project")
    for folder in ("store", "results/runs", "results/tables", "results/paper"):
        shutil.rmtree(project.root / folder)
    return project


def frequent_checkpoints(project: Project, steps: int) -> None:
    outputs = project.root / "src/normscope/outputs.py"
    text = outputs.read_text()
    assert text.count("default=250") == 1
    outputs.write_text(text.replace("default=250", f"default={steps}"))


def wait_for_checkpoints(engine: Engine, project: Project, generations: int) -> None:
    """Until two runs have so many."""
    while engine.is_alive:
        folders = (project.root / "results/checkpoints").glob("*")
        if sum(len(list(f.glob("step-*.ckpt"))) >= generations for f in folders) >= 2:
            return
        time.sleep(0.01)
    raise AssertionError(engine.end()[1])


def same(project: Project, modelled: Project) -> None:
    """What the project made is what the undisturbed one made."""
    for folder in MADE:
        assert project.digests(folder) == modelled.digests(folder), folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    columns = ("injected", "survived", "lost")
    width = max([len(name) for name in TALLY] + [len("fault")])
    say = terminalreporter.write_line
    say("")
    say(f"{'fault':<{width}}  {'  '.join(columns)}")
    for name, tally in sorted(TALLY.items()):
        say(f"{name:<{width}}  " + "  ".join(f"{tally[c]:>{len(c)}}" for c in columns))
