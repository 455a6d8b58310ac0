"""Foreign nanoGPT directories: refused by name and reason, or decoded to the same text."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from normscope.io import dataset, intake
from normscope.io.corpus import (
    CorpusError,
    Origin,
    check_length,
    decode,
    directory_files,
    known_lengths,
)
from normscope.io.dataset import DatasetError
from normscope.io.intake import read

TEXT = "to be\nor not to be: that is the question\nwhether tis nobler in the mind to suffer\n" * 2
DTYPES = ["<u4", "<i4", "<u8", "<i8", ">u4", ">i4", ">u8", ">i8", ">u2", "<u1"]
DTYPES += ["<f2", "<f4", ">f4", "<f8", ">f8"]


def tokens(text: str) -> tuple[np.ndarray, list[str]]:
    """As nanoGPT's prepare script numbers characters."""
    chars = sorted(set(text))
    return np.array([chars.index(c) for c in text]), chars


def write(folder: Path, train: Any, val: Any, chars: list[str]) -> None:
    """A nanoGPT directory, as its prepare script writes it."""
    stoi = {c: i for i, c in enumerate(chars)}
    meta = {"vocab_size": len(chars), "itos": dict(enumerate(chars)), "stoi": stoi}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))
    (folder / "train.bin").write_bytes(train if isinstance(train, bytes) else train.tobytes())
    (folder / "val.bin").write_bytes(val if isinstance(val, bytes) else val.tobytes())


@pytest.mark.parametrize("name", ["train", "val", "both"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tokens_of_another_type_are_refused_by_its_name(tmp_path, dtype, name):
    numbers, chars = tokens(TEXT)
    right, wrong = numbers.astype("<u2"), numbers.astype(dtype)
    cut = len(numbers) - 30
    train = right if name == "val" else wrong
    write(tmp_path, train[:cut], (right if name == "train" else wrong)[cut:], chars)
    with pytest.raises(DatasetError) as e:
        read(tmp_path)
    message = str(e.value)
    assert f"{tmp_path / ('val' if name == 'val' else 'train')}.bin: " in message
    kind = {"u": "uint", "i": "int", "f": "float"}[dtype[1]]
    assert f"{kind}{8 * int(dtype[2])}" in message
    assert ("big-endian" in message) == (dtype[0] == ">")
    assert ("every odd token is 0" in message) == (dtype in ("<u4", "<i4", "<u8", "<i8"))


@pytest.mark.parametrize("text", ["A C G T ", "3\n7\n", "x,y,z,", "10", " a b"])
@pytest.mark.parametrize("repeats", [40, 41])
@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_a_text_whose_every_second_character_is_the_first_token_is_read(
    tmp_path, text, repeats, more
):
    numbers, chars = tokens(text * repeats)
    train, val = numbers[: len(numbers) // 2 + more], numbers[-20 - more :]
    write(tmp_path, train.astype("<u2"), val.astype("<u2"), chars)
    data = read(tmp_path)
    assert (data.train.tolist(), data.val.tolist()) == (train.tolist(), val.tolist())


@pytest.mark.parametrize("dtype", ["<u4", "<i8"])
@pytest.mark.parametrize("cut", [slice(None, -2), slice(2, None), slice(2, -2), slice(None, -6)])
def test_wider_tokens_that_were_cut_are_refused_too(tmp_path, dtype, cut):
    numbers, chars = tokens(TEXT)
    wide = numbers.astype(dtype).tobytes()[cut]
    write(tmp_path, wide, numbers[-30:].astype("<u2"), chars)
    with pytest.raises(DatasetError, match=r"train\.bin: read as uint16, every odd token is 0"):
        read(tmp_path)


def test_a_vocabulary_for_which_another_type_is_also_one_of_tokens_is_no_excuse(tmp_path):
    """With 30,000 kinds of characters, the halves of float32 are tokens as uint16, too."""
    chars = [chr(0x4E00 + i) for i in range(30_000)]
    numbers = np.arange(2000) % 120 + 1
    write(tmp_path, numbers.astype("<f4"), numbers[:500].astype("<u2"), chars)
    assert np.frombuffer((tmp_path / "train.bin").read_bytes(), "<u2").max() < len(chars)
    with pytest.raises(DatasetError, match=r"train\.bin: is this float32\?"):
        read(tmp_path)
    write(tmp_path, numbers.astype("<u2"), numbers[:500].astype("<u2"), chars)
    assert read(tmp_path).train.tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (TEXT.encode(), "is text, not an array of tokens: give the text itself"),
        ("ünï 世\n".encode() * 20, "is text, not an array of tokens"),
        (b"\x93NUMPY" + bytes(122), "tofile"),
        (b"", "0 bytes"),
        (bytes(100), r"has 50 times the token 0"),
        (b"\x07\x00" * 50, r"has 50 times the token 7"),
        (bytes([1, 0] * 50 + [1]), "101 bytes"),
    ],
    ids=["text", "unicode", "npy", "empty", "zeros", "constant", "odd"],
)
@pytest.mark.parametrize("name", ["train.bin", "val.bin"])
def test_a_file_that_is_no_array_of_tokens_is_refused(tmp_path, raw, reason, name):
    numbers, chars = tokens(TEXT)
    write(tmp_path, numbers[:60].astype("<u2"), numbers[60:110].astype("<u2"), chars)
    read(tmp_path)
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DatasetError, match=f"{name} .*{reason}"):
        read(tmp_path)


def test_splits_that_are_the_same_or_swapped_are_refused(tmp_path):
    numbers, chars = tokens(TEXT)
    numbers = numbers.astype("<u2")
    write(tmp_path, numbers, numbers, chars)
    with pytest.raises(DatasetError, match="hold the same tokens"):
        read(tmp_path)
    write(tmp_path, numbers[:30], numbers[30:], chars)
    with pytest.raises(
        DatasetError, match=r"val\.bin .* more than the 30 of train\.bin: .*swapped"
    ):
        read(tmp_path)


def test_a_directory_without_meta_pkl_is_told_what_it_lacks(tmp_path):
    made = tmp_path / "made"
    for name in ("train.bin", "val.bin"):
        (tmp_path / name).write_bytes(bytes(100))
    with pytest.raises(CorpusError, match=r"missing .*meta\.pkl.* only datasets of characters"):
        directory_files(str(tmp_path), made)
    (tmp_path / "train.bin").unlink()
    with pytest.raises(CorpusError, match=r"missing \S+train\.bin, \S+meta\.pkl$"):
        directory_files(str(tmp_path), made)
    (tmp_path / "broken").symlink_to("nowhere")
    for path in (tmp_path / "val.bin", tmp_path / "broken", tmp_path / "absent"):
        with pytest.raises(CorpusError, match=f"{path} is not a directory"):
            directory_files(str(path), made)


def test_what_the_workflow_makes_is_no_directory_to_make_it_from(tmp_path):
    numbers, chars = tokens(TEXT)
    write(tmp_path, numbers[:60].astype("<u2"), numbers[60:110].astype("<u2"), chars)
    names = ["train.bin", "val.bin", "meta.pkl"]
    given = directory_files(str(tmp_path), tmp_path / "made")
    assert given == [str(tmp_path / name) for name in names]
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for path in (tmp_path, link):
        with pytest.raises(CorpusError, match=f"{path} is what the workflow makes"):
            directory_files(str(path), tmp_path)


@pytest.mark.parametrize("context", [1, 2, 16, 63, 64, 1000])
def test_the_length_that_an_error_asks_for_is_the_least_that_is_enough(context):
    """By trying every length: nanoGPT's split takes the first 90%, and a window needs a target."""
    splits = [(int(n * 0.9), n - int(n * 0.9)) for n in range(1, 12 * context)]
    least = next(n for n, split in enumerate(splits, 1) if min(split) >= context + 1)
    check_length(*splits[least - 1], context)
    with pytest.raises(CorpusError) as e:
        check_length(*splits[least - 2], context)
    assert f"needs {context + 1:,} of each, which a text of {least:,} characters has" in str(
        e.value
    )


def test_lengths_are_known_of_a_directory_and_of_what_was_made_of_this_text(tmp_path):
    numbers, chars = tokens(TEXT)
    write(tmp_path, numbers[:60].astype("<u2"), numbers[60:110].astype("<u2"), chars)
    made = tmp_path / "meta.json"
    here = Origin(directory=str(tmp_path))
    assert known_lengths(here, made) == (60, 50)
    assert known_lengths(Origin(directory=str(tmp_path / "absent")), made) is None
    text = Origin(sha256="0" * 64)
    for content in ("", "[]", "{", "{}"):
        made.write_text(content)
        assert known_lengths(text, made) is None
    made.write_text(
        f'{{"origin": "text with sha256 {text.sha256}", "train_tokens": 9, "val_tokens": 1}}'
    )
    assert known_lengths(text, made) == (9, 1)
    assert known_lengths(Origin(sha256="1" * 64), made) is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "0 characters of 0 kinds"),
        (b"\n" * 100, "100 characters of 1 kinds"),
        (b"to be \xff", "not UTF-8 text .*position 6"),
        (TEXT.encode("utf-16"), "UTF-16 text: .*iconv -f UTF-16"),
        (TEXT.encode("utf-32"), "UTF-32 text: .*iconv -f UTF-32"),
        ("über\n".encode("latin-1") * 20, "not UTF-8 text .*iconv"),
        (TEXT.encode("utf-16-be"), "NUL characters.*UTF-16"),
        (b"\x7fELF\0\0", "NUL characters: it is a binary file"),
    ],
)
def test_what_is_no_text_is_refused(raw, reason):
    with pytest.raises(CorpusError, match=reason):
        decode(raw)


META = st.one_of(
    st.text(max_size=12).map(lambda text: sorted(set(text))),
    st.lists(st.text(max_size=3) | st.integers(), max_size=8),
    st.sampled_from([[chr(i) for i in range(n)] for n in (2, 65, 256, 257, 900)]),
)
ARRAYS = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda values, dtype: np.array(values).astype(dtype),
        st.lists(st.integers(0, 90), min_size=2, max_size=40),
        st.sampled_from(["<u2", "<u2", *DTYPES]),
    ),
    st.text(max_size=30).map(str.encode),
)


@examples(100)
@given(chars=META, train=ARRAYS, val=ARRAYS, meta=st.none() | st.integers(0, 100) | st.binary())
def test_random_files_are_refused_by_name_or_decoded_alike(tmp_path, chars, train, val, meta):
    write(tmp_path, train, val, list(chars))
    if isinstance(meta, int):  # of another size, or of other characters
        meta = pickle.dumps({"vocab_size": meta, "itos": dict(enumerate(chars)), "stoi": {}})
    if meta is not None:
        (tmp_path / "meta.pkl").write_bytes(meta)
    try:
        data = read(tmp_path)
    except DatasetError as e:
        refusal = str(e)
    else:
        check_decoded(tmp_path, data)
        return
    assert re.search(r"(train|val)\.bin|meta\.pkl", refusal)


def check_decoded(folder: Path, data: dataset.Dataset) -> None:
    """By numpy and the vocabulary as pickle has it."""
    meta = pickle.loads((folder / "meta.pkl").read_bytes())
    for name, split in (("train.bin", data.train), ("val.bin", data.val)):
        numbers = np.fromfile(folder / name, "<u2")
        text = "".join(meta["itos"][int(i)] for i in numbers)
        assert "".join(data.chars[i] for i in split) == text
        assert len(set(numbers.tolist())) > 1


@examples(200)
@given(st.text(min_size=18, max_size=60) | st.text(alphabet="ab\r\n\ufeff", min_size=18))
def test_a_text_is_refused_or_decoded_as_it_is(text):
    """With a byte order mark and line ends of any kind, which are characters like others."""
    raw = text.encode()
    try:
        data = dataset.encode(decode(raw))
    except (CorpusError, DatasetError):
        data = None
    assert (data is None) == ("\0" in text or len(set(text)) < 2 or len(text) < 20)
    assert data is None or "".join(data.chars[i] for i in [*data.train, *data.val]) == text


@examples(100)
@given(st.binary(max_size=80))
def test_bytes_are_refused_or_are_their_text(raw):
    try:
        text = decode(raw)
    except CorpusError:
        text = None
    is_utf16 = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    is_text = not is_utf16 and b"\0" not in raw and raw.decode(errors="ignore").encode() == raw
    assert (text is not None) == (is_text and len(set(raw.decode())) > 1)
    assert text is None or text.encode() == raw


def test_the_types_are_tried_the_widest_first():
    sizes = [int(dtype[2]) for dtype in intake.TYPES if dtype[1] in "iu"]
    assert sizes == sorted(sizes, reverse=True)
