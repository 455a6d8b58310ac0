"""Files are the old ones or the new ones, whatever happens while they are written."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from normscope.errors import Explained
from normscope.io.files import (
    altered,
    is_altered,
    read_json,
    read_svg,
    seal,
    write_bytes,
)

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
    assert altered(tmp_path) == []
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
        assert altered(tmp_path) == []
        change()
        assert altered(tmp_path) == [folder]
    (folder / "b.csv").unlink()
    assert altered(tmp_path) == [folder]  # what is missing is not altered


@pytest.mark.parametrize("read", [read_json, read_svg])
@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"<svg", b"\xff\xfe\0"])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path, read, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(Explained, match=f"^{path} is damaged .*: remove it and start again"):
        read(path)
