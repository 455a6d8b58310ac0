"""Options of the tests of faults: the number of kills, their seed, and the table of outcomes."""

import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cases import TALLY, TARGETS, clean, frequent_checkpoints, wait_for_checkpoints
from engines import Engine
from project import ROOT, Project, fresh

from normscope import __version__
from normscope.cost.machine import chip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=200, help="SIGKILLs at random moments")
    parser.addoption("--target", choices=("models", "paper"), default="paper")
    parser.addoption("--seed", type=int, help="of the kills, as an earlier run printed it")
    parser.addoption("--record", type=Path, help="YAML file for the table, as docs/faults.yaml")


@pytest.fixture(scope="session")
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"\n--seed {seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project without results; tests use copies."""
    return fresh(tmp_path_factory.mktemp("cloned") / "project")


@pytest.fixture(scope="session")
def modelled(cloned: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with models, tables and a figure, made undisturbed; tests use copies."""
    project = cloned.copy(tmp_path_factory.mktemp("modelled") / "project")
    frequent_checkpoints(project, 5)
    project.snakemake(*TARGETS)
    return project


@pytest.fixture
def half_made(modelled: Project, tmp_path: Path) -> Project:
    """A project whose trainings were killed, two of them after two or more checkpoints."""
    project = clean(modelled, tmp_path)
    engine = Engine(project, "snakemake", "--cores", "2", "main")
    wait_for_checkpoints(engine, project, 2)
    engine.kill(group=True)
    project.snakemake("--unlock")
    return project


def record(path: Path, target: str) -> None:
    """Write the table with version, commit, chip, date and target."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    about = {
        "version": __version__,
        "commit": commit.strip(),
        "chip": chip(),
        "date": datetime.now(UTC).date(),
        "target": target,
    }
    rows = {name: dict(tally) for name, tally in sorted(TALLY.items())}
    path.write_text(yaml.safe_dump(about | {"faults": rows}, sort_keys=False))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.option.record:
        record(config.option.record, config.option.target)
    columns = ("injected", "survived", "lost")
    width = max([len(name) for name in TALLY] + [len("fault")])
    say = terminalreporter.write_line
    say("")
    say(f"{'fault':<{width}}  {'  '.join(columns)}")
    for name, tally in sorted(TALLY.items()):
        say(f"{name:<{width}}  " + "  ".join(f"{tally[c]:>{len(c)}}" for c in columns))
