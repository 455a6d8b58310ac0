"""Snakemake with the profile for Slurm, and the jobs that Slurm lists."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import project
import yaml

from normscope.io.yamlfile import overlay

SNAKEMAKE = [
    *("snakemake", "--profile", "profiles/slurm"),
    # this Slurm keeps no accounts and no accounting
    *("--slurm-no-account", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10"),
]
LONG = "nanogpt-layernorm-pre-0.001-1"  # a training of some seconds, with checkpoints
DONE = f"results/main/models/{LONG}/metrics.csv"


class Engine:
    """A running ``snakemake`` with the profile, in a project."""

    def __init__(self, root: Path, *flags: str) -> None:
        self.root, self.log = root, root / "engine.log"
        env = project.Project(root).env
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*SNAKEMAKE, *flags], cwd=root, env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def finish(self, *, ok: bool = True) -> str:
        """Wait for its end, and return its output."""
        self.process.wait()
        said = self.log.read_text()
        assert (self.process.returncode == 0) == ok, said + self.job_logs()
        return said

    def job_logs(self) -> str:
        logs = (self.root / ".snakemake/slurm_logs").rglob("*.log")
        return "".join(f"\n== {path}\n{path.read_text()}" for path in sorted(logs))

    def at_checkpoint(self) -> int:
        """The id of the training process, once it has written a checkpoint."""
        checkpoints = self.root / "results/main/checkpoints" / LONG
        wait_for(lambda: any(checkpoints.glob("*/step-*.ckpt")), self)
        return int((checkpoints / "lock").read_text())


def wait_for(happened: Callable[[], bool], engine: Engine) -> None:
    """Wait for an event, unless the engine ends before."""
    while not happened():
        assert engine.process.poll() is None, engine.log.read_text() + engine.job_logs()
        time.sleep(0.01)


def jobs(said: str) -> list[dict[str, str]]:
    """The jobs that an engine submitted, as Slurm lists them, in order."""
    (run,) = re.findall(r"SLURM run ID: (\S+)", said)
    shown = subprocess.run(
        ["scontrol", "show", "jobs", "--oneliner"], capture_output=True, text=True, check=True
    )
    rows = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in shown.stdout.splitlines()]
    ours = [row for row in rows if row.get("JobName") == run]
    return sorted(ours, key=lambda row: int(row["JobId"]))


def resumed(root: Path) -> bool:
    return "continuing from step" in (root / f"results/logs/main_train/{LONG}.log").read_text()


def fresh(root: Path, **changes: Any) -> Any:
    """A project with a tiny configuration and some changed keys."""
    made = project.fresh(root)
    path = made.root / "config.yaml"
    config = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(overlay(config, changes), sort_keys=False))
    return made


def long_run(root: Path) -> Path:
    nanogpt = {"training": {"steps": 2000, "eval_every": 1000}}
    return fresh(root, main={"protocols": {"nanogpt": nanogpt}}).root
