"""A disk that is full or read-only."""

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cases import TARGETS, clean, same, wait_for_checkpoints
from project import Project
from running import Engine

COMMAND = ("snakemake", "--cores", "2", *TARGETS)


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
        engine = Engine(project, *COMMAND)
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
