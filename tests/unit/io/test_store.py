"""Files that are written whole, and the store."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from normscope.errors import Explained
from normscope.io import store
from normscope.io.files import (
    find_altered,
    is_altered,
    read_json,
    read_svg,
    seal,
    write_bytes,
    write_sums,
)

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


WRITE = """
import resource, signal, sys
from pathlib import Path
from normscope.io.files import write_bytes

path, letters, size, times, limit = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    for i in range(int(times)):
        write_bytes(Path(path), letters[i % len(letters)].encode() * int(size))
        print(flush=True)
except OSError as e:
    print(e)
"""


def writer(
    path: Path, letters: str, size: int = 100_000, times: int = 300, limit: int = 1_000_000
) -> subprocess.Popen[str]:
    """A process that writes a file again and again, each time with the next letter."""
    arguments = map(str, (path, letters, size, times, limit))
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, *arguments], stdout=subprocess.PIPE, text=True
    )


def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    error, _ = writer(path, "a", size=2000, limit=1000).communicate()
    for words in ("File too large", "2,000 bytes", str(path)):
        assert words in error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_and_a_kill_find_a_whole_file(tmp_path):
    path = tmp_path / "file"
    wholes = {b"a" * 300_000, b"b" * 300_000}
    with writer(path, "ab", size=300_000, times=10**9) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
            assert path.read_bytes() in wholes
        process.kill()
    assert path.read_bytes() in wholes
    write_bytes(path, b"c")  # over what the killed process left
    assert path.read_bytes() == b"c"
    assert list(tmp_path.iterdir()) == [path]


def test_a_seal_is_the_sha256_of_the_file_and_reveals_a_change(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n")
    seal(path)
    assert not is_altered(path)
    hidden = tmp_path / ".table.csv.sha256"
    assert hidden.read_text().strip() == hashlib.sha256(b"a,b\n").hexdigest()
    path.write_bytes(b"a,c\n")
    assert is_altered(path)
    hidden.unlink()
    assert not is_altered(path)


def test_the_seal_of_a_folder_reveals_every_change_of_its_files(tmp_path):
    folder = tmp_path / "made" / "plots"
    write_bytes(folder / "deep" / "a.csv", b"a")
    write_bytes(folder / "b.csv", b"b")
    seal(folder, folder / "b.csv")
    (folder / ".snakemake_timestamp").touch()  # Snakemake's, later
    assert find_altered(tmp_path) == []
    for change in (
        lambda: (folder / "deep" / "a.csv").write_bytes(b"b"),
        lambda: (folder / "deep" / "a.csv").rename(folder / "a.csv"),
        (folder / "new.csv").touch,
        (folder / "deep" / "a.csv").unlink,
    ):
        shutil.rmtree(folder / "deep", ignore_errors=True)
        for path in folder.glob("[!b.]*"):
            path.unlink()
        write_bytes(folder / "deep" / "a.csv", b"a")
        assert find_altered(tmp_path) == []
        change()
        assert find_altered(tmp_path) == [folder]
    (folder / "b.csv").unlink()
    assert find_altered(tmp_path) == [folder]  # what is missing is not altered


@pytest.mark.parametrize("read", [read_json, read_svg])
@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"<svg", b"\xff\xfe\0"])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path, read, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(Explained, match=f"^{path} is damaged .*: remove it and start again"):
        read(path)
