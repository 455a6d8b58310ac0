"""The whole default run from a fresh clone, beside one training of nanoGPT on the same cores.

    python benchmarks/default_run.py --nanogpt DIR [--cores 2] [--configfile config/tiny.yaml]

DIR is a checkout of karpathy/nanoGPT, whose train.py runs its README's CPU configuration (2000
steps) with all cores: once before the workflow and once after it, and the mean counts. The workflow
runs in a clone of this project's last commit, made for it, with nothing stored.

Prints how busy the cores were: jobs' CPU seconds are summed from the benchmark files of Snakemake
and of the scripts of cached rules. Beside them stands the kernel's count, as Snakemake looks at a
job only every few seconds. What Snakemake itself took is the kernel's count of its process; what
imports took is the start of each script, times its jobs. Last ``ratio R``: the workflow's wall time
over that of the training.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import mean, median

import nanogpt
from machine import quiet, with_steal

from normscope.cost.machine import chip

ROOT = Path(__file__).resolve().parents[1]
ITERS = 2000
STARTS = 3
SHARED = dict.fromkeys(
    ["jacobian_train", "depth_train"], "main_train"
)  # rules that run another one's script
# Snakemake in a process that says at its end what it used itself, and what its jobs did
COUNTED = """
import atexit, resource, sys
from snakemake.cli import main
used = lambda who: sum(resource.getrusage(who)[:2])
own, jobs, out = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN, open(sys.argv.pop(1), "w")
atexit.register(lambda: print(used(own), used(jobs), file=out, flush=True))
main()
"""


def script(benchmark: Path) -> str:
    """The script that a benchmark file is of, by its path below the folder of all of them."""
    folder = benchmark.parent.name
    if folder == "figures":
        return "draw.py"
    rule = folder or benchmark.stem
    return f"{SHARED.get(rule, rule)}.py"


def measured(benchmarks: Path) -> tuple[float, Counter[str]]:
    """CPU seconds of all jobs with a benchmark file, and how many each script had."""
    total, jobs = 0.0, Counter[str]()
    for path in sorted(benchmarks.rglob("*.tsv")):
        (row,) = csv.DictReader(path.open(), delimiter="\t")
        total += float(row["cpu_time"])
        jobs[script(path.relative_to(benchmarks))] += 1
    return total, jobs


def start(script: Path, project: Path, env: dict[str, str]) -> float:
    """CPU seconds from the start of Python to a script's first line of work, median."""
    seconds = []
    for _ in range(STARTS):
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        command = [sys.executable, script, "--help"]
        subprocess.run(command, cwd=project, env=env, stdout=subprocess.DEVNULL, check=True)
        seconds.append(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before)
    return median(seconds)


def workflow(project: Path, cores: int, configfile: str | None) -> float:
    """Run all in a fresh clone and print where the cores' time went; its wall seconds."""
    env = {k: v for k, v in os.environ.items() if k != "SNAKEMAKE_OUTPUT_CACHE"}
    env |= {"PYTHONPATH": str(project / "src")}
    flags = ["--cores", str(cores), "--quiet", "all"]
    flags += ["--configfile", configfile] if configfile else []
    with tempfile.NamedTemporaryFile("r") as out:
        command = [sys.executable, "-c", COUNTED, out.name, *flags]
        _, wall, steal = with_steal(
            lambda: subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)
        )
        own, by_kernel = map(float, out.read().split())
    in_files, jobs = measured(project / "results/benchmarks")
    imports = sum(start(project / "scripts" / name, project, env) * n for name, n in jobs.items())
    print(f"{jobs.total()} jobs, {cores} cores, {wall:.0f} s, steal {steal:.1%}")
    rows = {
        "jobs, by benchmark files": in_files,
        "jobs, by the kernel": by_kernel,
        "of these, starts and imports": imports,
        "Snakemake itself": own,
    }
    for name, seconds in rows.items():
        share = seconds / (by_kernel + own)
        busy = seconds / (wall * cores)
        print(
            f"{name:30} {seconds:8.0f} s   {share:6.1%} of the CPU time   {busy:.3f} of the cores"
        )
    return wall


def training(checkout: Path) -> float:
    """Wall seconds of one training of nanoGPT's."""
    with tempfile.TemporaryDirectory() as out:
        seconds = quiet(lambda: _timed(checkout, Path(out)))
    print(f"nanoGPT, {ITERS} steps: {seconds:.0f} s")
    return seconds


def _timed(checkout: Path, out: Path) -> float:
    _, seconds, _ = with_steal(lambda: nanogpt.train(checkout, out, ITERS, *nanogpt.ON_CPU))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nanogpt", type=Path, required=True)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--configfile")
    args = parser.parse_args()
    checkout = nanogpt.check(args.nanogpt.resolve())
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
