"""Files are the old ones or the new ones, whatever happens while they are written."""

import subprocess
import sys

import pytest

from normscope.io.files import seal, write_bytes, write_json, write_sealed

NO_SPACE = """
import resource, signal, sys
from pathlib import Path
from normscope.io.files import write_bytes

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_bytes(Path(sys.argv[1]), bytes(2000))
except OSError as e:
    print(e)
"""

WRITE_FOR_EVER = """
import sys
from pathlib import Path
from normscope.io.files import write_bytes

while True:
    for letter in (b"a", b"b"):
        write_bytes(Path(sys.argv[1]), letter * 300_000)
        print(flush=True)
"""


def test_missing_directories_are_made_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_bytes(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_refuses_what_json_has_not(tmp_path, number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "j", {"x": number})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file_and_says_which(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", NO_SPACE, str(path)], capture_output=True, text=True, check=True
    )
    assert "File too large" in done.stdout
    assert "2,000 bytes" in done.stdout
    assert str(path) in done.stdout
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_and_a_kill_find_a_whole_file(tmp_path):
    path = tmp_path / "file"
    wholes = {b"a" * 300_000, b"b" * 300_000}
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
            assert path.read_bytes() in wholes
        process.kill()
    assert path.read_bytes() in wholes
    write_bytes(path, b"c")  # over what the kill left
    assert path.read_bytes() == b"c"
    assert list(tmp_path.iterdir()) == [path]


WRITE_AND_EXIT = """
import sys
from pathlib import Path
from normscope.io.files import write_bytes

for _ in range(300):
    write_bytes(Path(sys.argv[1]), sys.argv[2].encode() * 100_000)
"""


def test_two_writers_of_one_file_leave_what_one_of_them_wrote(tmp_path):
    path = tmp_path / "file"
    command = [sys.executable, "-c", WRITE_AND_EXIT, str(path)]
    writers = [subprocess.Popen([*command, letter]) for letter in "ab"]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert path.read_bytes() in (b"a" * 100_000, b"b" * 100_000)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert list(tmp_path.iterdir()) == [path]


def test_a_seal_is_the_sha256_of_the_file(tmp_path):
    path = tmp_path / "table.csv"
    write_sealed(path, b"a,b\n")
    assert path.read_bytes() == b"a,b\n"
    done = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True)
    assert seal(path).read_text().strip() == done.stdout.split()[0]
