"""Kills, damaged checkpoints, and disks that are full or read-only."""

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from project import Project, fresh
from running import (
    TARGETS,
    Engine,
    checkpoint_every,
    clean,
    jobs,
    restart,
    same,
    wait_for_checkpoints,
    wait_until_quiet,
)

from normscope.io.files import SUMS
from normscope.io.store import KEY, keys, read_sums

KILLS, PAUSE_S = 20, 0.3
STEPS, EVERY = 1000, 10  # of a training, and between its checkpoints
COMMAND = ("snakemake", "--cores", "2", "--retries", "20", "--", *TARGETS)
COMPARED = ("store", "results/main/models", "results/main/tables", "results/paper")


def longer(root: Path) -> Project:
    """A project with trainings that are long enough to be hit, and frequent checkpoints."""
    project = fresh(root)
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    config["main"]["protocols"]["nanogpt"]["training"] |= {"steps": STEPS}
    (project.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    checkpoint_every(project, EVERY)
    return project


def entries(project: Project) -> dict[str, tuple[int, int]]:
    """The inode and size of each file of the whole entries of the store."""
    store, whole = project.root / "store", {}
    for key in keys(store) if store.is_dir() else ():
        files = {path.name[KEY:]: path.stat() for path in store.glob(f"{key}*")}
        if SUMS in files and files.keys() == {SUMS, *read_sums(store / f"{key}{SUMS}")}:
            whole |= {key + name: (s.st_ino, s.st_size) for name, s in files.items()}
    return whole


def checkpoints_of(project: Project, process: psutil.Process) -> Path | None:
    """The folder of checkpoints of the training that a process runs."""
    for lock in (project.root / "results/main/checkpoints").glob("*/lock"):
        if lock.read_text() == str(process.pid):
            return lock.parent
    return None


def test_twenty_kills(tmp_path: Path):
    """Of trainings, other jobs, the engine alone, and the engine with its jobs."""
    rng = random.Random(0)
    project = longer(tmp_path / "project")
    undisturbed = longer(tmp_path / "undisturbed")
    undisturbed.snakemake(*TARGETS)
    stored: dict[str, tuple[int, int]] = {}
    reached: dict[Path, int] = {}  # the last checkpointed step of each killed training
    killed = status = 0
    while status or not killed:
        engine, before = restart(project, *COMMAND), killed
        while engine.is_alive and killed < KILLS:
            wait(project, engine, rng)
            now = entries(project)
            assert stored.items() <= now.items(), "a stored result was lost or made again"
            stored = now
            killed += kill_one(project, engine, reached, rng)
        status, said = engine.end()
        assert "Traceback" not in said, said
        assert status == 0 or killed > before, f"failed without a kill:\n{said}"
    wait_until_quiet(project.root)
    assert killed == KILLS
    for folder in COMPARED:
        assert project.digests(folder) == undisturbed.digests(folder), folder
    assert reached
    for job in {folder.parent for folder in reached}:
        timing = project.root / f"results/benchmarks/main_train/{job.name}.tsv"
        done, parts = int(timing.read_text().split()[6]), list(job.glob("*x*"))
        kept = sum(reached.get(part, 0) for part in parts)
        assert done <= len(parts) * STEPS - kept, f"{job.name} repeated checkpointed steps"


def wait(project: Project, engine: Engine, rng: random.Random) -> None:
    """Wait for a training that has written a checkpoint, or sometimes only for some seconds."""
    is_short = rng.random() < 0.3
    deadline = time.monotonic() + (rng.uniform(0, 4) if is_short else 60)
    while engine.is_alive and time.monotonic() < deadline:
        folders = [checkpoints_of(project, job) for job in jobs(project.root)]
        if not is_short and any(any(f.glob("*/step-*.ckpt")) for f in folders if f):
            time.sleep(rng.uniform(0, PAUSE_S))
            return
        time.sleep(0.02)


def kill_one(project: Project, engine: Engine, reached: dict[Path, int], rng: random.Random) -> int:
    """Kill a job, rarely the engine; return how many kills that was."""
    running = jobs(project.root)
    training = [job for job in running if checkpoints_of(project, job)]
    target = rng.choices(("job", "engine", "group"), (6, 1, 1))[0]
    hit = [rng.choice(training or running)] if running and target == "job" else running
    folders = [checkpoints_of(project, job) for job in hit] if target != "engine" else []
    if not engine.is_alive or (target == "job" and not running):
        return 0
    if target == "job":
        try:
            hit[0].kill()
            psutil.wait_procs(hit)
        except psutil.NoSuchProcess:  # it has just ended
            return 0
    else:
        engine.kill(group=target == "group")
    for path in (path for folder in folders if folder for path in folder.glob("*/step-*.ckpt")):
        step = int(path.stem.removeprefix("step-"))
        reached[path.parent] = max(reached.get(path.parent, 0), step)
    return 1


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


MAKE_TABLES = ("snakemake", "--cores", "2", *TARGETS)


@contextmanager
def small_disk(at: Path) -> Iterator[Path]:
    """A small file system mounted on a directory, with the files of the directory."""
    contents = {p.relative_to(at): p.read_bytes() for p in at.rglob("*") if p.is_file()}
    at.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(at)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"cannot mount a small disk (needs the right to mount): {done.stderr}")
    try:
        for path, content in contents.items():
            (at / path).parent.mkdir(parents=True, exist_ok=True)
            (at / path).write_bytes(content)
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def fill(disk: Path) -> Path:
    """Fill the disk with a file."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(bytes(1 << 12)):
            pass
    return filler


def test_full_disk_of_results(modelled: Project, tmp_path: Path):
    project = clean(modelled, tmp_path)
    with small_disk(project.root / "results") as disk:
        engine = Engine(project, *MAKE_TABLES)
        wait_for_checkpoints(engine, project, 1)
        filler = fill(disk)
        status, said = engine.end()
        assert status
        assert "No space left on device" in said
        assert "start again" in said
        filler.unlink()
        said = project.snakemake(*TARGETS)
        logs = [p.read_text() for p in (project.root / "results/logs/main_train").glob("*.log")]
        assert sum("continuing from step" in log for log in logs) >= 2
        same(project, modelled)


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


def test_read_only_directory(modelled: Project, tmp_path: Path):
    project = clean(modelled, tmp_path)
    with small_disk(project.root / "store") as disk, read_only(disk):
        said = project.snakemake(*TARGETS, ok=False)
        assert "Traceback" not in said
        assert "store cannot be written" in said
        # nothing was trained
        assert not list(project.root.glob("results/main/checkpoints/*/*/step-*"))
