"""nanoGPT's format: the same bytes as its prepare script, and no foreign file is trusted."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.io import dataset
from normscope.io.dataset import META_LIMIT, DatasetError

TEXT = "to be or not to be: that is the question"

READ_META = """
import sys, tracemalloc
from pathlib import Path
from normscope.io.dataset import DatasetError, read_meta

tracemalloc.start()
try:
    read_meta(Path(sys.argv[1]))
except DatasetError:
    print(tracemalloc.get_traced_memory()[1])
"""


class Code:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


class Thing:
    pass


def meta() -> dict[str, Any]:
    return pickle.loads(dataset.files(dataset.encode(TEXT))["meta.pkl"])


@pytest.fixture
def directory(tmp_path) -> Path:
    """A sound dataset."""
    for name, content in dataset.files(dataset.encode(TEXT)).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_files_are_nanogpts_byte_for_byte(tinyshakespeare):
    """Hashes of what nanoGPT's data/shakespeare_char/prepare.py writes."""
    files = dataset.files(dataset.encode(tinyshakespeare.decode()))
    assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == {
        "train.bin": "6ec305602a99ac2802745a134e1f5e33e2231b4855525b00b9aebb730ac2626f",
        "val.bin": "d37d30cc0c8327c270d493299c3dca54135f6d5f1c9ef60cda78076e311204b1",
        "meta.pkl": "6ee5a37533af83b67fcbe6b93705fde9e15e78bafe895f54b2cb2cb32534526c",
    }


@given(st.text(alphabet="abc\n é世🙂", min_size=20))
def test_a_text_survives_writing_and_reading(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("data")
    for name, content in dataset.files(dataset.encode(text)).items():
        (folder / name).write_bytes(content)
    data = dataset.read(folder)
    assert "".join(data.chars[i] for i in [*data.train, *data.val]) == text
    assert len(data.train) == int(0.9 * len(text))
    assert list(data.chars) == sorted(set(text))


def test_the_largest_alphabet_of_uint16_is_encoded_and_a_larger_one_refused():
    letters = [chr(0x10000 + i) for i in range((1 << 16) + 1)]
    data = dataset.encode("".join(letters[:-1]))
    assert np.array_equal(np.concatenate([data.train, data.val]), np.arange(1 << 16))
    with pytest.raises(DatasetError, match="65537 kinds"):
        dataset.encode("".join(letters))


def test_code_in_meta_does_not_run(directory, tmp_path):
    marker = tmp_path / "ran"
    raw = pickle.dumps(meta() | {"x": Code(marker)})
    pickle.loads(raw)
    assert marker.exists()
    marker.unlink()
    (directory / "meta.pkl").write_bytes(raw)
    with pytest.raises(DatasetError, match="opcode STACK_GLOBAL"):
        dataset.read(directory)
    assert not marker.exists()


def test_behind_the_scan_a_second_wall_stops_code(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "_scan", lambda raw: None)
    (directory / "meta.pkl").write_bytes(pickle.dumps(Code(tmp_path / "ran")))
    with pytest.raises(DatasetError, match=r"asks for posix\.system"):
        dataset.read(directory)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("value", "opcode"),
    [
        (Thing(), "STACK_GLOBAL"),
        (np.float64(1), "STACK_GLOBAL"),
        (Path(), "STACK_GLOBAL"),
        ([1], "EMPTY_LIST"),
        ((1,), "TUPLE1"),
        ({1}, "EMPTY_SET"),
        (b"1", "SHORT_BINBYTES"),
        (1.0, "BINFLOAT"),
        (True, "NEWTRUE"),
        (None, "NONE"),
    ],
)
def test_values_other_than_plain_ones_are_refused(directory, value, opcode):
    path = directory / "meta.pkl"
    path.write_bytes(pickle.dumps(meta() | {"x": value}))
    with pytest.raises(DatasetError, match=f"opcode {opcode} "):
        dataset.read(directory)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(meta() | {"x": value}, protocol))
        with pytest.raises(DatasetError, match=r"opcode [A-Z0-9_]+ |holds a bool"):
            dataset.read(directory)


@pytest.mark.parametrize(
    ("depth", "reason"), [(5, "lacks the dicts"), (100_000, "maximum recursion depth")]
)
def test_deep_nesting_is_refused(directory, depth, reason):
    (directory / "meta.pkl").write_bytes(
        b"\x80\x04" + b"}K\x00" * depth + b"}" + b"s" * depth + b"."
    )
    with pytest.raises(DatasetError, match=reason):
        dataset.read(directory)


def doubling() -> bytes:
    """Four levels of 300 keys, each level one dict: 300^4 steps for who walks them all."""
    value: dict[int, Any] = {i: i for i in range(300)}
    for _ in range(3):
        value = dict.fromkeys(range(300), value)
    return pickle.dumps(value)


@pytest.mark.parametrize(
    "raw", [doubling(), b"\x80\x04K\x00r\xff\xff\xff\x07."], ids=["walk", "memo of 2^27 entries"]
)
def test_a_small_meta_takes_neither_long_nor_much_memory(tmp_path, raw):
    path = tmp_path / "meta.pkl"
    path.write_bytes(raw)
    done = subprocess.run(
        [sys.executable, "-c", READ_META, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 10_000_000  # bytes


def test_a_truncated_meta_is_refused_at_every_length(directory):
    path = directory / "meta.pkl"
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(DatasetError, match=r"meta\.pkl is refused"):
            dataset.read_meta(path)


def test_a_huge_meta_is_refused_unread(directory):
    os.truncate(directory / "meta.pkl", META_LIMIT + 1)
    with pytest.raises(DatasetError, match="over 67,108,864"):
        dataset.read(directory)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 3},
        {"vocab_size": "12"},
        {"itos": {0: "t"}},
        {"itos": dict(enumerate("abcdefghijklm", 1))},
        {"itos": {"a": 0}},
        {"itos": dict.fromkeys(range(12), 1)},
        {"stoi": {"t": 0}},
        {"itos": 1},
        {"stoi": "t"},
    ],
)
def test_a_meta_that_contradicts_itself_is_refused(directory, changes):
    (directory / "meta.pkl").write_bytes(pickle.dumps(meta() | changes))
    with pytest.raises(DatasetError, match=r"contradict each other|lacks the dicts"):
        dataset.read(directory)


def test_nanogpts_meta_of_every_protocol_is_read(directory):
    chars = dataset.read(directory).chars
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (directory / "meta.pkl").write_bytes(pickle.dumps(meta(), protocol))
        assert dataset.read(directory).chars == chars == tuple(sorted(set(TEXT)))


@pytest.mark.parametrize("name", ["train.bin", "val.bin"])
def test_a_token_without_a_character_is_refused(directory, name):
    n = len(set(TEXT))
    (directory / name).write_bytes(np.array([0, n], dtype="<u2").tobytes())
    with pytest.raises(DatasetError, match=rf"{name} has token {n}, but meta.pkl names {n}"):
        dataset.read(directory)


@pytest.mark.parametrize("name", ["train.bin", "val.bin"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_a_size_that_is_no_array_of_uint16_is_refused(directory, name, size):
    (directory / name).write_bytes(bytes(size))
    with pytest.raises(DatasetError, match=f"{name} has {size} bytes"):
        dataset.read(directory)


@pytest.mark.parametrize("name", ["train.bin", "val.bin", "meta.pkl"])
def test_a_missing_file_is_named(directory, name):
    (directory / name).unlink()
    with pytest.raises(DatasetError, match=f"{name} is missing"):
        dataset.read(directory)


@pytest.mark.parametrize("name", dataset.FILES)
def test_a_file_that_is_not_what_meta_json_says_is_named(tmp_path, name):
    made = dataset.files(dataset.encode("to be or not to be, that is the question"))
    sums = {}
    for file, content in made.items():
        (tmp_path / file).write_bytes(content)
        sums[file] = hashlib.sha256(content).hexdigest()
    (tmp_path / "meta.json").write_text(json.dumps({"sha256": sums}))
    dataset.read(tmp_path)
    (tmp_path / name).write_bytes(made[name][:-2])
    with pytest.raises(DatasetError, match=rf"{name} is truncated or altered.* remove {tmp_path}"):
        dataset.read(tmp_path)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(DatasetError, match=r"meta\.json is damaged"):
        dataset.read(tmp_path)
