"""Interrupted projects, and the comparison with one that was not."""

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import yaml
from project import Project
from running import Engine

TARGETS = ("main", "results/paper/figures/loss.svg")  # of the undisturbed project
MADE = ("store", "results/main/tables", "results/paper", "results/dataset")


def clean(modelled: Project, at: Path) -> Project:
    """A copy that has only its dataset."""
    project = modelled.copy(at / "project")
    for folder in ("store", "results/main", "results/paper"):
        shutil.rmtree(project.root / folder)
    return project


def checkpoint_every(project: Project, steps: int) -> None:
    """Make the trainings of a project write checkpoints after this many steps."""
    outputs = project.root / "src/normscope/train/outputs.py"
    text = outputs.read_text()
    assert text.count("default=250") == 1
    outputs.write_text(text.replace("default=250", f"default={steps}"))


def edit_command(project: Project, stage: str, old: str, new: str) -> None:
    """Replace text in the commands of one stage of dvc.yaml."""
    path = project.root / "dvc.yaml"
    content = yaml.safe_load(path.read_text())
    commands = content["stages"][stage]["cmd"]
    commands = [commands] if isinstance(commands, str) else commands
    assert sum(old in command for command in commands) == 1, f"{old!r} in {commands}"
    content["stages"][stage]["cmd"] = [command.replace(old, new) for command in commands]
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def wait_for_checkpoints(engine: Engine, project: Project, generations: int) -> None:
    """Wait until two running jobs have this many checkpoints; the first is stopped meanwhile."""
    waiting: dict[Path, int] = {}
    try:
        while engine.is_alive:
            for folder in (project.root / "results/main/checkpoints").glob("*"):
                if folder not in waiting and len(list(folder.glob("*/step-*.ckpt"))) >= generations:
                    with suppress(ProcessLookupError):  # it has just ended
                        trainer = int((folder / "lock").read_text())
                        os.kill(trainer, signal.SIGSTOP)
                        waiting[folder] = trainer
            if len(waiting) >= 2:
                return
            time.sleep(0.01)
    finally:
        for trainer in waiting.values():
            os.kill(trainer, signal.SIGCONT)
    raise AssertionError(engine.end()[1])


def same(project: Project, modelled: Project) -> None:
    """Check that both projects made the same files."""
    for folder in MADE:
        assert project.digests(folder) == modelled.digests(folder), folder
