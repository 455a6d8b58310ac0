"""Time each engine with nothing to do, relative to its bare start.

    python benchmarks/noop.py PROJECT [--configfile config/paper.yaml] [--rounds 5]

PROJECT is a clone in which everything is made and recorded (`dvc repro`). In turn, R times:
`snakemake -n` and `snakemake --version`, `dvc repro` and `dvc --version`. Prints medians of wall
and CPU seconds (least to greatest). With --configfile it is the plan of that grid, made or not.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median


def timed(command: list[str], project: Path, answer: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command that must say that there is nothing to do."""
    env = os.environ | {"PYTHONPATH": str(project.resolve() / "src")}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        command, cwd=project, env=env, text=True, capture_output=True, check=False
    )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or answer not in done.stdout + done.stderr:
        sys.exit(f"error: {' '.join(command)} in {project}:\n{done.stdout}{done.stderr}")
    return wall, sum(after[:2]) - sum(before[:2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("--configfile")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    commands = {
        "snakemake -n": (["snakemake", "-n"], "Nothing to be done"),
        "snakemake --version": (["snakemake", "--version"], "."),
        "dvc repro": (["dvc", "repro"], "up to date"),
        "dvc --version": (["dvc", "--version"], "."),
    }
    if args.configfile:  # DVC's stages are of config.yaml
        plan = ["snakemake", "-n", "--quiet", "all", "--configfile", args.configfile]
        commands = {
            "snakemake -n": (plan, ""),
            "snakemake --version": commands["snakemake --version"],
        }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(args.rounds):
        for name, (command, answer) in commands.items():
            seconds[name].append(timed(command, args.project, answer))
    for name, pairs in seconds.items():
        wall, cpu = ([pair[i] for pair in pairs] for i in (0, 1))
        print(
            f"{name:20} {median(wall):6.2f} s ({min(wall):.2f} to {max(wall):.2f})"
            f"   CPU {median(cpu):6.2f} s ({min(cpu):.2f} to {max(cpu):.2f})"
        )


if __name__ == "__main__":
    main()
