"""Entries of the store: intact, damaged, incomplete, removed, copied to another store."""

import hashlib
import os
import shutil
import subprocess
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


def test_sums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"")
    write_sums(tmp_path, ["a", "b"])
    # FIPS 180-2, appendix B.1
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tmp_path / "SHA256SUMS").read_text().splitlines()[0] == f"{abc}  a"
    if tool := shutil.which("sha256sum"):
        subprocess.run([tool, "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_an_intact_store_is_unchanged_and_read_once(place, tmp_path, monkeypatch):
    before = sorted(place.rglob("*"))
    assert store.remove_damaged(place, tmp_path / "seen.json") == []
    assert sorted(place.rglob("*")) == before
    monkeypatch.setattr(hashlib, "sha256", None)  # a second reading would fail
    assert store.remove_damaged(place, tmp_path / "seen.json") == []


@pytest.mark.parametrize("memory", [None, "", "{", "[]", '{"x": 1}'])
@pytest.mark.parametrize("name", ["model", "curve.csv", "SHA256SUMS"])
def test_a_flipped_bit_removes_only_its_entry(place, tmp_path, name, memory):
    seen = tmp_path / "seen.json"
    if memory is None:
        store.remove_damaged(place, seen)
    else:
        seen.write_text(memory)
    flip(place / f"{A}{name}")
    (line,) = store.remove_damaged(place, seen)
    assert line.startswith(str(place / A))
    assert store.keys(place) == {B}
    assert store.remove_damaged(place, seen) == []


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\0\n", b"no digest\n", b"x  ../model\n", INCOMPLETE]
)
def test_invalid_sums_remove_the_entry(place, tmp_path, content):
    (place / f"{A}SHA256SUMS").write_bytes(content)
    assert len(store.remove_damaged(place, tmp_path / "seen.json")) == 1
    assert store.keys(place) == {B}


@pytest.mark.parametrize("name", ["model", "SHA256SUMS"])
def test_an_incomplete_entry_is_left_to_be_completed(place, tmp_path, name):
    (place / f"{A}{name}").unlink()
    assert store.remove_damaged(place, tmp_path / "seen.json") == []
    assert store.keys(place) == {A, B}


@pytest.mark.parametrize("one_disk", [True, False])
def test_only_these_entries_are_lent(place, tmp_path, monkeypatch, one_disk):
    other = tmp_path / "other"
    other.mkdir()
    (other / f"{A}model").write_bytes(b"as it was")
    if not one_disk:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "EXDEV")))
    store.lend(place, other, [A])
    names = {f"{A}{name}" for name in ("model", "curve.csv", "SHA256SUMS")}
    assert {path.name for path in other.iterdir()} == names
    assert (other / f"{A}model").read_bytes() == b"as it was"
    for name in names - {f"{A}model"}:
        assert (other / name).read_bytes() == (place / name).read_bytes()
        assert (other / name).samefile(place / name) == one_disk
