"""Snakemake and DVC in separate processes, to be killed, and the jobs that they started."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
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


def started(project: Project, *command: str) -> Engine:
    """An engine, started after the locks of killed engines were removed as the README says."""
    if command[0] == "dvc":
        # a Snakemake that outlived dvc still runs; unlocking would let two run in one directory
        while processes(project.root, "snakemake"):
            time.sleep(0.1)
    locks = project.root / ".snakemake" / "locks"
    if locks.is_dir() and any(locks.iterdir()):
        project.snakemake("--unlock", "--quiet")
    return Engine(project, *command)
