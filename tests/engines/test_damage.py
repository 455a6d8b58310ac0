"""Truncated or altered files whose modification times are unchanged."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from cases import TARGETS, clean, same, wait_for_checkpoints
from project import Project
from running import Engine

Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "truncated": lambda raw: raw[: len(raw) // 2 & ~1],
    "bit flipped": lambda raw: raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:],
    "emptied": lambda raw: b"",
    "zeros": lambda raw: raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2),
}


def damage(path: Path, how: str) -> None:
    stat = path.stat()
    path.write_bytes(DAMAGES[how](path.read_bytes()))
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
        damage(path, "zeros")
    said = half_made.snakemake("main", ok=False)
    assert f"remove {second.relative_to(half_made.root)} to train this run from step 0" in said
    shutil.rmtree(second)
    half_made.snakemake(*TARGETS)
    same(half_made, modelled)


def without_a_row(raw: bytes) -> bytes:
    return b"".join(raw.splitlines(keepends=True)[:-1])


def test_tables(modelled: Project, tmp_path: Path):
    project = modelled.copy(tmp_path / "project")
    tables = project.root / "results/main/tables"
    ways = (*DAMAGES.values(), without_a_row, lambda raw: raw.replace(b"3", b"4", 1))
    names = ("runs.csv", "curves.csv", "arms.csv")
    for some in (ways[:3], ways[3:]):
        for name, way in zip(names, some, strict=True):
            (tables / name).write_bytes(way((tables / name).read_bytes()))
        said = project.snakemake(*TARGETS)
        for name in names:
            assert f"results/main/tables/{name} is damaged: it is made again" in said
        same(project, modelled)
