"""How busy the workflow keeps its cores: CPU seconds of jobs over wall seconds times cores.

    python benchmarks/efficiency.py CLONE [--cores 2] [--configfile config/tiny.yaml]

CLONE is a fresh clone; everything is made there, once. Jobs' CPU seconds are summed from the
benchmark files of Snakemake and of the scripts of cached rules. Beside them stands the kernel's
count, as Snakemake looks at a job only every few seconds. What Snakemake itself took is the
kernel's count of its process; what imports took is the start of each script, times its jobs.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

STARTS = 3
SHARED = {"jacobian_train": "main_train"}  # a rule that runs another one's script
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
        return f"figures/{benchmark.stem}.py"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path, help="a fresh clone")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--configfile")
    args = parser.parse_args()
    if any((args.project / made).exists() for made in ("results", "store")):
        sys.exit(f"error: {args.project} has results or a store: give a fresh clone")
    env = {k: v for k, v in os.environ.items() if k != "SNAKEMAKE_OUTPUT_CACHE"}
    env |= {"PYTHONPATH": str(args.project.resolve() / "src")}
    flags = ["--cores", str(args.cores), "--quiet", "all"]
    flags += ["--configfile", args.configfile] if args.configfile else []
    with tempfile.NamedTemporaryFile("r") as out:
        began = time.monotonic()
        command = [sys.executable, "-c", COUNTED, out.name, *flags]
        subprocess.run(command, cwd=args.project, env=env, check=True)
        wall = time.monotonic() - began
        own, by_kernel = map(float, out.read().split())
    in_files, jobs = measured(args.project / "results/benchmarks")
    scripts = args.project.resolve() / "scripts"
    imports = sum(start(scripts / name, args.project, env) * n for name, n in jobs.items())
    print(f"{jobs.total()} jobs, {args.cores} cores, {wall:.0f} s")
    rows = {
        "jobs, by benchmark files": in_files,
        "jobs, by the kernel": by_kernel,
        "of these, starts and imports": imports,
        "Snakemake itself": own,
    }
    for name, seconds in rows.items():
        print(f"{name:30} {seconds:8.0f} s   {seconds / (wall * args.cores):.3f} of the cores")


if __name__ == "__main__":
    main()
