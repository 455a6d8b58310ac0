"""Entries of the store: intact, damaged, incomplete, removed, copied to another store."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from normscope.io import store
from normscope.io.files import write_sums

INCOMPLETE = b"%s  model\n" % (b"0" * 64)
A, B = "a" * 64, "0123456789abcdef" * 4


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store of two entries with two files each, a directory and an unrelated file."""
    folder = tmp_path / "store"
    folder.mkdir()
    for key in (A, B):
        run = tmp_path / key
        run.mkdir()
        (run / "model").write_bytes(os.urandom(1000))
        (run / "curve.csv").write_text(f"step\n{key}\n")
        write_sums(run, ["model", "curve.csv"])
        for path in run.iterdir():
            shutil.move(path, folder / f"{key}{path.name}")
    (folder / "revisions").mkdir()
    (folder / ".gitignore").write_text("*\n")
    return folder


def flip(path: Path) -> None:
    """Flip a bit of a file, and keep its times."""
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_an_intact_store_is_unchanged_and_read_once(place, tmp_path, monkeypatch):
    before = sorted(place.rglob("*"))
    assert store.find_damaged(place, tmp_path / "seen.json") == {}
    assert sorted(place.rglob("*")) == before
    monkeypatch.setattr(hashlib, "sha256", None)  # a second reading would fail
    assert store.find_damaged(place, tmp_path / "seen.json") == {}


@pytest.mark.parametrize("memory", [None, "", "{", "[]", '{"x": 1}'])
@pytest.mark.parametrize("name", ["model", "curve.csv", "SHA256SUMS"])
def test_a_flipped_bit_is_found_until_its_entry_is_removed(place, tmp_path, name, memory):
    seen = tmp_path / "seen.json"
    if memory is None:
        store.find_damaged(place, seen)
    else:
        seen.write_text(memory)
    flip(place / f"{A}{name}")
    for _ in range(2):  # it is not taken for verified
        assert store.find_damaged(place, seen).keys() == {A}
    for path in place.glob(f"{A}*"):
        path.unlink()
    assert store.find_damaged(place, seen) == {}


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\0\n", b"no digest\n", b"x  ../model\n", INCOMPLETE]
)
def test_invalid_sums_are_damage(place, tmp_path, content):
    (place / f"{A}SHA256SUMS").write_bytes(content)
    assert store.find_damaged(place, tmp_path / "seen.json").keys() == {A}


@pytest.mark.parametrize("is_inside", [True, False])
def test_links_lead_to_the_store_and_stay_in_a_project_that_moves(
    place, tmp_path, monkeypatch, is_inside
):
    """Relative if both are in the project; a store elsewhere may be on another disk."""
    project = tmp_path if is_inside else tmp_path / "project"
    folder = project / "results/main/models/job"
    folder.mkdir(parents=True)
    monkeypatch.chdir(project)
    left = [folder / name for name in ("missing", "note")]
    left[0].symlink_to(place / f"{'f' * 64}model")
    left[1].symlink_to("/nowhere/note")
    before = [link.readlink() for link in left]
    model, curve = folder / "model", folder / "curve.csv"
    model.symlink_to(place / f"{A}model")
    curve.symlink_to(f"/as/it/was/{A}curve.csv")  # before the project was renamed
    (folder / "file").write_text("no link")
    os.utime(model, (7, 7), follow_symlinks=False)
    for _ in range(2):
        store.relink(folder.iterdir(), place)
        for link in (model, curve):
            assert link.samefile(place / f"{A}{link.name}")
            assert link.readlink().is_absolute() != is_inside
    assert model.lstat().st_mtime == 7
    assert [link.readlink() for link in left] == before
    assert len(list(folder.iterdir())) == 5
    if is_inside:
        shutil.copytree(tmp_path, moved := tmp_path.with_name("moved"), symlinks=True)
        copied = moved / model.relative_to(tmp_path)
        assert copied.resolve().is_relative_to(moved.resolve())
