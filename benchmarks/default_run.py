"""Time the default run from a fresh clone, relative to one training of nanoGPT.

    python benchmarks/default_run.py --nanogpt DIR [--cores 2] [--configfile config/tiny.yaml]

DIR is a checkout of karpathy/nanoGPT, whose train.py runs its README's CPU configuration (2000
steps) with all cores: once before the workflow and once after it, and the mean counts. The workflow
runs in a clone of this project's last commit, made for it, with nothing stored.

Prints how busy the cores were: the CPU seconds of jobs, from benchmark files and from the kernel
(Snakemake polls a job only every few seconds), and those of the Snakemake process. The last line is
``ratio R``, the wall time of the workflow divided by that of the training.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

import reference
from reference import quiet, with_steal

from normscope.machine import chip

ROOT = Path(__file__).resolve().parents[1]
ITERS = 2000
# Snakemake in a process that writes its CPU time and that of its jobs at its end
COUNTED = """
import atexit, resource, sys
from snakemake.cli import main
used = lambda who: sum(resource.getrusage(who)[:2])
process, jobs, out = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN, open(sys.argv.pop(1), "w")
atexit.register(lambda: print(used(process), used(jobs), file=out, flush=True))
main()
"""


def cpu_seconds(benchmarks: Path) -> list[float]:
    """CPU seconds of each job with a benchmark file."""
    rows = [next(csv.DictReader(p.open(), delimiter="\t")) for p in benchmarks.rglob("*.tsv")]
    return [float(row["cpu_time"]) for row in rows]


def workflow(project: Path, cores: int, configfile: str | None) -> float:
    """Run the workflow in a clone and print its CPU times; return its wall seconds."""
    env = {k: v for k, v in os.environ.items() if k != "SNAKEMAKE_OUTPUT_CACHE"}
    env |= {"PYTHONPATH": str(project / "src")}
    flags = ["--cores", str(cores), "--quiet", "all"]
    flags += ["--configfile", configfile] if configfile else []
    with tempfile.NamedTemporaryFile("r") as out:
        command = [sys.executable, "-c", COUNTED, out.name, *flags]
        _, wall, steal = with_steal(
            lambda: subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)
        )
        by_snakemake, by_kernel = map(float, out.read().split())
    jobs = cpu_seconds(project / "results/benchmarks")
    print(f"{len(jobs)} jobs, {cores} cores, {wall:.0f} s, steal {steal:.1%}")
    rows = {
        "jobs, by benchmark files": sum(jobs),
        "jobs, by the kernel": by_kernel,
        "Snakemake": by_snakemake,
    }
    for name, seconds in rows.items():
        share = seconds / (by_kernel + by_snakemake)
        busy = seconds / (wall * cores)
        print(
            f"{name:30} {seconds:8.0f} s   {share:6.1%} of the CPU time   {busy:.3f} of the cores"
        )
    return wall


def training(checkout: Path) -> float:
    """Wall seconds of one nanoGPT training."""
    with tempfile.TemporaryDirectory() as out:
        seconds = quiet(lambda: _wall_seconds(checkout, Path(out)))
    print(f"nanoGPT, {ITERS} steps: {seconds:.0f} s")
    return seconds


def _wall_seconds(checkout: Path, out: Path) -> float:
    _, seconds, _ = with_steal(lambda: reference.train(checkout, out, ITERS, *reference.ON_CPU))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nanogpt", type=Path, required=True)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--configfile")
    args = parser.parse_args()
    checkout = reference.check(args.nanogpt.resolve())
    print(chip())
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "normscope")
        clone = ["git", "clone", "--quiet", str(ROOT), str(project)]
        subprocess.run(clone, check=True)
        seconds = [training(checkout)]
        wall = workflow(project, args.cores, args.configfile)
        seconds.append(training(checkout))
    print(f"ratio {wall / mean(seconds):.1f}")


if __name__ == "__main__":
    main()
