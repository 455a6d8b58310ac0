"""Checks of a foreign nanoGPT directory: the type of its tokens, and its splits."""

from pathlib import Path

import numpy as np

from normscope.io import dataset
from normscope.io.corpus import SPLITS
from normscope.io.dataset import Dataset, DatasetError

# what else an array of tokens may have been written as, the widest first: a file of uint64 is also
# one of uint32
TYPES = {
    "<i8": "uint64 or int64",
    ">i8": "big-endian uint64 or int64",
    "<u4": "uint32 or int32",
    ">u4": "big-endian uint32 or int32",
    "<f8": "float64",
    ">f8": "big-endian float64",
    "<f4": "float32",
    ">f4": "big-endian float32",
    "<f2": "float16",
}
# the same, for files that are not tokens as uint16: tokens of uint16 may be tokens as these, too
TYPES_OF_REFUSED = {">u2": "big-endian uint16", ">f2": "big-endian float16", "<u1": "uint8"}


def read(directory: Path) -> Dataset:
    """Read a nanoGPT-format directory, and refuse tokens that are not uint16.

    A file of another type can be read as uint16: one of uint32 then has twice the tokens, every
    second one being 0.

    Raises:
        DatasetError: naming the file, what is wrong with it and what is expected.
    """
    chars = dataset.read_meta(directory / "meta.pkl")
    for split in SPLITS:
        path = directory / f"{split}.bin"
        if path.is_file():
            _check_type(path, path.read_bytes(), len(chars))
    data = dataset.read(directory)
    _check_splits(directory, data)
    return data


def _check_type(path: Path, raw: bytes, vocab_size: int) -> None:
    """Refuse what are tokens of this vocabulary only, or also, in another type than uint16."""
    types = TYPES if _are_tokens(raw, "<u2", vocab_size) else TYPES | TYPES_OF_REFUSED
    for dtype, name in types.items():
        if any(raw) and _are_tokens(raw, dtype, vocab_size):
            gaps = "read as uint16, every odd token is 0: " if dtype in ("<u4", "<i8") else ""
            raise DatasetError(
                f"{path}: {gaps}is this {name}? All its numbers are tokens of meta.pkl then. Write "
                "it as uint16, as nanoGPT does: "
                f"numpy.fromfile('train.bin', '{dtype}').astype('<u2').tofile('train.bin')"
            )
    if raw.startswith(b"\x93NUMPY"):
        raise DatasetError(f"{path} is an .npy file: write the tokens with numpy's tofile")
    if _is_text(raw):
        raise DatasetError(
            f"{path} is text, not an array of tokens: give the text itself, by dataset.sha256 and "
            "dataset.sources"
        )


def _are_tokens(raw: bytes, dtype: str, vocab_size: int) -> bool:
    if not raw or len(raw) % np.dtype(dtype).itemsize:
        return False
    values = np.frombuffer(raw, dtype)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)  # float16 cannot be compared with large vocabularies
    if dtype == "<u1" and not values[1::2].any():
        return False  # uint16 that was cut within a token
    are_in = bool(((values >= 0) & (values < vocab_size)).all())  # no NaN is
    return are_in and (values.dtype.kind != "f" or bool((values == np.floor(values)).all()))


def _is_text(raw: bytes) -> bool:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return bool(text) and all(c.isprintable() or c in "\t\n\r" for c in text)


def _check_splits(directory: Path, data: Dataset) -> None:
    """Refuse splits that are none: the same, swapped, or of one token."""
    for split, tokens in zip(SPLITS, (data.train, data.val), strict=True):
        if (tokens == tokens[0]).all():
            raise DatasetError(
                f"{directory / split}.bin has {len(tokens):,} times the token {tokens[0]} and no "
                "other: a model needs at least two kinds to predict"
            )
    if np.array_equal(data.train, data.val):
        raise DatasetError(
            f"train.bin and val.bin of {directory} hold the same tokens: the validation loss would "
            "be that of the training text; give another text as val.bin"
        )
    if len(data.val) > len(data.train):
        raise DatasetError(
            f"val.bin of {directory} has {len(data.val):,} tokens, more than the "
            f"{len(data.train):,} of train.bin: they seem to be swapped; rename them"
        )
