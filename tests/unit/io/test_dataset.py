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
from recipes import examples

from normscope.io import dataset
from normscope.io.dataset import META_LIMIT, DatasetError, read, read_foreign

TEXT = "to be\nor not to be: that is the question\nwhether tis nobler in the mind\n" * 2
CHARS = sorted(set(TEXT))
TOKENS = np.array([CHARS.index(c) for c in TEXT], "<u2")  # as nanoGPT's prepare script numbers them

READ = """
import sys, tracemalloc
from pathlib import Path
from normscope.io.dataset import DatasetError, read

tracemalloc.start()
try:
    read(Path(sys.argv[1]))
except DatasetError:
    print(tracemalloc.get_traced_memory()[1])
"""


def meta(chars: list[str] = CHARS) -> dict[str, Any]:
    stoi = {c: i for i, c in enumerate(chars)}
    return {"vocab_size": len(chars), "itos": dict(enumerate(chars)), "stoi": stoi}


def write(folder: Path, train: Any, val: Any, chars: list[str] = CHARS) -> Path:
    """A nanoGPT directory, as its prepare script writes it."""
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta(chars)))
    for name, tokens in (("train.bin", train), ("val.bin", val)):
        (folder / name).write_bytes(tokens if isinstance(tokens, bytes) else tokens.tobytes())
    return folder


@pytest.fixture
def directory(tmp_path) -> Path:
    """An intact dataset."""
    return write(tmp_path, TOKENS[:100], TOKENS[100:])


def refused(directory: Path, reason: str) -> None:
    for reader in (read, read_foreign):
        with pytest.raises(DatasetError, match=reason):
            reader(directory)


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
    data = read(folder)
    assert "".join(data.chars[i] for i in [*data.train, *data.val]) == text
    assert len(data.train) == int(0.9 * len(text))
    assert list(data.chars) == sorted(set(text))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_of_every_protocol_a_meta_is_read_and_one_with_other_values_refused(directory, protocol):
    path = directory / "meta.pkl"
    path.write_bytes(pickle.dumps(meta(), protocol))
    assert read(directory).chars == tuple(CHARS)
    for value in (np.float64(1), Path(), [1], (1,), {1}, b"1", 1.0, None):
        path.write_bytes(pickle.dumps(meta() | {"x": value}, protocol))
        refused(directory, r"meta\.pkl is refused: it uses the pickle opcode [A-Z0-9_]+ ")


def doubling() -> bytes:
    """Four levels of 300 keys, each level one dict: 300^4 steps to walk them all."""
    value: dict[int, Any] = {i: i for i in range(300)}
    for _ in range(3):
        value = dict.fromkeys(range(300), value)
    return pickle.dumps(value)


@pytest.mark.parametrize(
    "raw",
    [
        doubling(),
        b"\x80\x04K\x00r\xff\xff\xff\x07.",  # a memo of 2^27 entries
        b"\x80\x04" + b"}K\x00" * 100_000 + b"}" + b"s" * 100_000 + b".",  # nested
    ],
    ids=["walk", "memo", "depth"],
)
def test_a_small_meta_takes_neither_long_nor_much_memory(directory, raw):
    (directory / "meta.pkl").write_bytes(raw)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(directory)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50_000_000  # bytes


def test_a_meta_that_is_truncated_anywhere_or_huge_is_refused(directory):
    path = directory / "meta.pkl"
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(DatasetError, match=r"meta\.pkl is refused"):
            read(directory)
    os.truncate(path, META_LIMIT + 1)
    refused(directory, "over 67,108,864")


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 3},
        {"vocab_size": str(len(CHARS))},
        {"itos": {0: "t"}},
        {"itos": dict(enumerate(CHARS, 1))},
        {"itos": {"a": 0}},
        {"itos": dict.fromkeys(range(len(CHARS)), 1)},
        {"stoi": {"t": 0}},
        {"itos": 1},
        {"stoi": "t"},
    ],
)
def test_a_meta_that_contradicts_itself_is_refused(directory, changes):
    (directory / "meta.pkl").write_bytes(pickle.dumps(meta() | changes))
    refused(directory, r"contradict each other|lacks the dicts")


@pytest.mark.parametrize("name", dataset.FILES)
def test_a_file_that_is_missing_or_differs_from_meta_json_is_named(directory, name):
    content = {file: (directory / file).read_bytes() for file in dataset.FILES}
    sums = {file: hashlib.sha256(raw).hexdigest() for file, raw in content.items()}
    (directory / "meta.json").write_text(json.dumps({"sha256": sums}))
    read(directory)
    (directory / name).write_bytes(content[name][:-2])
    refused(directory, rf"{name} is truncated or altered.* remove {directory}")
    (directory / name).unlink()
    refused(directory, f"{name} is missing")
    (directory / name).write_bytes(content[name])
    (directory / "meta.json").write_text("{")
    refused(directory, r"meta\.json is damaged")


@pytest.mark.parametrize("name", ["train.bin", "val.bin"])
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        *((bytes(n), f"has {n} bytes: not an array") for n in (0, 1, 2, 3, 5)),
        (np.array([0, len(CHARS)], "<u2"), f"has token {len(CHARS)}, but meta.pkl names"),
        (TEXT.encode(), r"has token \d+, but .* is it an array of uint16"),
        *((TOKENS.astype(t), r"has token \d+") for t in (">u2", ">u4", "<u1", "<f2", "<f4", "<f8")),
    ],
)
def test_a_file_that_is_not_an_array_of_tokens_is_refused(directory, name, raw, reason):
    (directory / name).write_bytes(raw if isinstance(raw, bytes) else raw.tobytes())
    refused(directory, f"{name} {reason}")


@pytest.mark.parametrize(
    ("train", "val", "reason"),
    [
        (TOKENS, TOKENS, "hold the same tokens"),
        (TOKENS[:30], TOKENS[30:], r"val\.bin .* more than the 30 of train\.bin: .*swapped"),
        (bytes(100), TOKENS[:40], r"train\.bin contains only the token 0"),
        (TOKENS, b"\x07\x00" * 50, r"val\.bin contains only the token 7"),
    ],
)
def test_splits_that_make_no_sense_are_refused(tmp_path, train, val, reason):
    with pytest.raises(DatasetError, match=reason):
        read_foreign(write(tmp_path, train, val))


ARRAYS = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda values, dtype: np.array(values).astype(dtype),
        st.lists(st.integers(0, 90), min_size=2, max_size=40),
        st.sampled_from(["<u2", "<u2", "<u4", ">u2", "<f4"]),
    ),
)
ALPHABETS = st.lists(st.characters(), max_size=99, unique=True)


@examples(100)
@given(chars=ALPHABETS, train=ARRAYS, val=ARRAYS, raw=st.none() | st.binary())
def test_random_files_are_refused_by_name_or_decoded(tmp_path, chars, train, val, raw):
    write(tmp_path, train, val, chars)
    if raw is not None:
        (tmp_path / "meta.pkl").write_bytes(raw)
    try:
        data = read_foreign(tmp_path)
    except DatasetError as e:
        assert any(name in str(e) for name in dataset.FILES)  # noqa: PT017 - either may happen
    else:
        assert list(data.chars) == chars
        for name, split in (("train.bin", data.train), ("val.bin", data.val)):
            assert split.tolist() == np.fromfile(tmp_path / name, "<u2").tolist()
