"""Interrupted projects, the processes that make them, and the comparison with one that was not."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import yaml
from project import Project


class Engine:
    """``snakemake`` or ``dvc repro``, in a separate session."""

    def __init__(self, project: Project, *command: str) -> None:
        self.said = project.root / "said.txt"
        # a shell that runs the tests in the background makes them ignore SIGINT
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with open(self.said, "w") as f:
            self.process = subprocess.Popen(
                command,
                cwd=project.root,
                env=project.env,
                stdin=subprocess.DEVNULL,
                stdout=f,
                stderr=f,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self, *, group: bool) -> None:
        """Send SIGKILL to the engine alone, or to it and all scripts running in its directory."""
        (os.killpg if group else os.kill)(self.process.pid, signal.SIGKILL)
        for job in jobs(self.said.parent) if group else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                job.kill()
        self.process.wait()

    def end(self) -> tuple[int, str]:
        """Wait for the end, and return the exit status and the output."""
        return self.process.wait(), self.said.read_text()


def processes(root: Path, *wanted: str) -> list[psutil.Process]:
    """Processes in a directory whose command or name contains one of these words."""
    running = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline()[:2], process.name()]
            if any(word in part for part in words for word in wanted):
                if process.cwd() != str(root):
                    continue
                running.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
    return running


def jobs(root: Path) -> list[psutil.Process]:
    """The scripts that run in a directory."""
    return processes(root, "scripts/", "@")  # warm.py names its forks


def wait_for_jobs(engine: Engine, root: Path) -> list[psutil.Process]:
    """Wait for the first running scripts; none if the engine ends before."""
    while engine.is_alive:
        if running := jobs(root):
            return running
        time.sleep(0.02)
    return []


def wait_until_quiet(root: Path) -> None:
    """Wait until no engine and no script runs in a directory."""
    while processes(root, "snakemake") or jobs(root):
        time.sleep(0.1)


def restart(project: Project, *command: str) -> Engine:
    """An engine, started after the locks of killed engines were removed as the README says."""
    if command[0] == "dvc":
        # a Snakemake that outlived dvc still runs; unlocking would let two run in one directory
        while processes(project.root, "snakemake"):
            time.sleep(0.1)
    locks = project.root / ".snakemake" / "locks"
    if locks.is_dir() and any(locks.iterdir()):
        project.snakemake("--unlock", "--quiet")
    return Engine(project, *command)


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
