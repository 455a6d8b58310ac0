"""Damaged checkpoints, and those of other runs."""

import os
import shutil
from pathlib import Path

from cases import TARGETS, clean, same, wait_for_checkpoints
from project import Project
from running import Engine


def zero_half(path: Path) -> None:
    """Replace the second half of a file by zeros, and keep its modification time."""
    stat, raw = path.stat(), path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_all_checkpoints_and_those_of_other_runs(modelled: Project, tmp_path: Path):
    half_made = clean(modelled, tmp_path)
    engine = Engine(half_made, "snakemake", "--cores", "2", "main")
    wait_for_checkpoints(engine, half_made, 2)
    engine.kill(group=True)
    half_made.snakemake("--unlock")
    folders = (half_made.root / "results/main/checkpoints").glob("*/*/")  # a job's, of its models
    first, second = [f for f in folders if len(list(f.glob("step-*.ckpt"))) > 1][:2]
    job = first.parent.name
    swap = half_made.root / "swap"
    for a, b in ((first, swap), (second, first), (swap, second)):
        a.rename(b)
    newest = sorted(first.glob("step-*.ckpt"))
    half_made.snakemake(f"results/main/models/{job}/metrics.csv")
    log = half_made.root / f"results/logs/main_train/{job}.log"
    assert newest
    assert "belongs to other settings" in log.read_text()
    for path in second.glob("step-*.ckpt"):
        zero_half(path)
    said = half_made.snakemake("main", ok=False)
    assert f"remove {second.relative_to(half_made.root)} to train this run from step 0" in said
    shutil.rmtree(second)
    half_made.snakemake(*TARGETS)
    same(half_made, modelled)
