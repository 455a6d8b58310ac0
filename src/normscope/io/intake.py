"""Checks of a foreign nanoGPT directory: the type of its tokens, and its splits."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from normscope.io import dataset
from normscope.io.corpus import SPLITS
from normscope.io.dataset import Dataset, DatasetError

# what else an array of tokens may have been written as, the widest first: a file of uint64 is also
# one of uint32
WIDE = {"<i8": "uint64 or int64", "<u4": "uint32 or int32"}
TYPES = {
    ">i8": "big-endian uint64 or int64",
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
    paths = [path for split in SPLITS if (path := directory / f"{split}.bin").is_file()]
    raws = {path: path.read_bytes() for path in paths}
    _check_width(raws, len(chars), [0])
    for path, raw in raws.items():
        _check_type(path, raw, len(chars))
    _check_width(raws, len(chars), [2, 4, 6])  # files that lack their first bytes
    data = dataset.read(directory)
    _check_splits(directory, data)
    return data


def _check_width(raws: Mapping[Path, bytes], vocab_size: int, starts: Sequence[int]) -> None:
    """Refuse tokens of 4 or 8 bytes: as uint16 they have gaps of zeros.

    A text in which every second character is token 0 has the same gaps. Its zeros are all in the
    gaps, whereas real tokens of 4 bytes have zeros of their own; a vocabulary made from a text
    has no token that the text lacks.
    """
    used = {int(token) for raw in raws.values() for token in np.unique(_whole(raw, "<u2"))}
    for dtype, name in WIDE.items():
        wide = {path: _wide(raw, dtype, vocab_size, starts) for path, raw in raws.items()}
        wide = {path: tokens for path, tokens in wide.items() if tokens}
        if wide and (0 in set().union(*wide.values()) or len(used) < vocab_size):
            gaps = "read as uint16, every odd token is 0: "
            raise _of_type(next(iter(wide)), gaps, dtype, name)


def _wide(raw: bytes, dtype: str, vocab_size: int, starts: Sequence[int]) -> set[int]:
    """The tokens in a wider type from one of some bytes on; none if they are not tokens."""
    for start in starts:
        values = _whole(raw[start:], dtype)
        if values.any() and ((values >= 0) & (values < vocab_size)).all():
            return {int(token) for token in np.unique(values)}
    return set()


def _whole(raw: bytes, dtype: str) -> np.ndarray:
    """As many numbers of a type as there are whole ones."""
    return np.frombuffer(raw, dtype, count=len(raw) // np.dtype(dtype).itemsize)


def _of_type(path: Path, gaps: str, dtype: str, name: str) -> DatasetError:
    return DatasetError(
        f"{path}: {gaps}is this {name}? All its numbers are tokens of meta.pkl then. Write it as "
        "uint16, as nanoGPT does: "
        f"numpy.fromfile('train.bin', '{dtype}').astype('<u2').tofile('train.bin')"
    )


def _check_type(path: Path, raw: bytes, vocab_size: int) -> None:
    """Refuse what are tokens of this vocabulary only, or also, in another type than uint16."""
    types = TYPES if _are_tokens(raw, "<u2", vocab_size) else TYPES | TYPES_OF_REFUSED
    for dtype, name in types.items():
        if any(raw) and _are_tokens(raw, dtype, vocab_size):
            raise _of_type(path, "", dtype, name)
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
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = values.astype(np.float64)  # float16 is too coarse for large vocabularies
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
