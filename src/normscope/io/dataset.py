"""nanoGPT's data format: ``train.bin`` and ``val.bin`` (uint16 tokens) and ``meta.pkl``.

Source of the format: nanoGPT, ``data/shakespeare_char/prepare.py``.
"""

import hashlib
import json
import pickle
import pickletools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from normscope.errors import Explained

FILES = ("train.bin", "val.bin", "meta.pkl")
META_LIMIT = 64 << 20  # bytes; nanoGPT's meta.pkl has 703
INT_LIMIT = 1 << 20  # tokens are below 65,536, and memo indices below a few times that
# opcodes that build dicts, strings and integers, and call nothing
PLAIN_OPCODES = frozenset(
    "PROTO FRAME STOP MARK EMPTY_DICT DICT SETITEM SETITEMS MEMOIZE PUT BINPUT LONG_BINPUT GET "
    "BINGET LONG_BINGET UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 INT BININT BININT1 BININT2 "
    "LONG LONG1 LONG4".split()
)


class DatasetError(Explained):
    """A file does not follow nanoGPT's format."""


@dataclass(frozen=True)
class Dataset:
    """Tokens as uint16 arrays, and the character of each token."""

    train: np.ndarray
    val: np.ndarray
    chars: tuple[str, ...]

    @property
    def vocab_size(self) -> int:
        return len(self.chars)


def encode(text: str) -> Dataset:
    """Number the sorted characters of a text; the first 90% are for training, the rest is val.

    Raises:
        DatasetError: the text has fewer than 20 characters, or more kinds of them than uint16
            can number.
    """
    chars = tuple(sorted(set(text)))
    if len(text) < 20 or len(chars) > 1 << 16:
        raise DatasetError(
            f"{len(text)} characters, {len(chars)} distinct: a corpus has at least 20 characters, "
            f"and at most {1 << 16:,} distinct ones"
        )
    index = {c: i for i, c in enumerate(chars)}
    tokens = np.fromiter((index[c] for c in text), dtype=np.uint16, count=len(text))
    cut = int(len(text) * 0.9)
    return Dataset(tokens[:cut], tokens[cut:], chars)


def files(data: Dataset) -> dict[str, bytes]:
    """Return the three files of nanoGPT's format, with the same bytes as its prepare script."""
    meta = {
        "vocab_size": data.vocab_size,
        "itos": dict(enumerate(data.chars)),
        "stoi": {c: i for i, c in enumerate(data.chars)},
    }
    return {
        "train.bin": data.train.astype("<u2").tobytes(),
        "val.bin": data.val.astype("<u2").tobytes(),
        # protocol 4 is the default of Python 3.8 to 3.13; later ones would change the bytes
        "meta.pkl": pickle.dumps(meta, protocol=4),
    }


def read(directory: Path) -> Dataset:
    """Read a nanoGPT-format directory; a hostile ``meta.pkl`` cannot run code.

    Raises:
        DatasetError: naming the file, what is wrong with it and what is expected.
    """
    for name in FILES:
        if not (directory / name).is_file():
            raise DatasetError(
                f"{directory / name} is missing: a nanoGPT dataset has {', '.join(FILES)}"
            )
    _check_sums(directory)
    chars = _read_meta(directory / "meta.pkl")
    train, val = (_read_tokens(directory / name, len(chars)) for name in FILES[:2])
    return Dataset(train, val, chars)


def read_foreign(directory: Path) -> Dataset:
    """Read a nanoGPT-format directory that another program wrote, and check that it makes sense.

    Raises:
        DatasetError: see ``read``; or the tokens are not uint16, or a split has only one kind of
            token, or the splits are the same or swapped.
    """
    data = read(directory)
    for name, tokens in zip(FILES, (data.train, data.val), strict=False):
        path = directory / name
        if (tokens == tokens[0]).all():
            raise DatasetError(
                f"{path} contains only the token {tokens[0]}: a model needs at least two kinds to "
                "predict"
            )
        # Integers of 4 or 8 bytes, read as uint16, have zeros at all odd positions. So has a text
        # whose every second character is token 0, but its even positions have no zeros.
        if not tokens[1::2].any() and not tokens[::2].all():
            raise DatasetError(
                f"{path}: read as uint16, every odd token is 0: is this an array of uint32 or "
                "int64? Write it as uint16, as nanoGPT does, with numpy's astype('uint16')"
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
    return data


def _check_sums(directory: Path) -> None:
    """Compare the files with ``meta.json``, if rule dataset wrote the directory."""
    path = directory / "meta.json"
    if not path.is_file():
        return
    way_out = f"remove {directory} and start again"
    try:
        sums = json.loads(path.read_text())["sha256"]
        expected = [(directory / name, sums[name]) for name in FILES]
    except (ValueError, KeyError, TypeError) as e:
        raise DatasetError(f"{path} is damaged ({e!r}): {way_out}") from e
    for file, expected_sum in expected:
        if hashlib.sha256(file.read_bytes()).hexdigest() != expected_sum:
            raise DatasetError(f"{file} is truncated or altered, {path} says: {way_out}")


def _read_tokens(path: Path, vocab_size: int) -> np.ndarray:
    raw = path.read_bytes()
    if len(raw) < 4 or len(raw) % 2:
        raise DatasetError(f"{path} has {len(raw)} bytes: not an array of at least two uint16")
    tokens = np.frombuffer(raw, dtype="<u2")
    if int(tokens.max()) >= vocab_size:
        raise DatasetError(
            f"{path} has token {int(tokens.max())}, but meta.pkl names {vocab_size} characters: is "
            "it an array of uint16, as nanoGPT writes it?"
        )
    return tokens


def _scan(raw: bytes) -> None:
    """Refuse a pickle that does anything except build dicts, strings and small integers."""
    for opcode, argument, _ in pickletools.genops(raw):
        if opcode.name not in PLAIN_OPCODES:
            raise DatasetError(f"it uses the pickle opcode {opcode.name} ({argument!r})"[:200])
        if isinstance(argument, int) and not 0 <= argument <= INT_LIMIT:
            raise DatasetError(f"it has an integer outside 0 to {INT_LIMIT:,}")


def _read_meta(path: Path) -> tuple[str, ...]:
    """Return the characters of a ``meta.pkl``, in token order.

    Raises:
        DatasetError: it contains anything except dicts, strings and ints, or they contradict each
            other.
    """
    if path.stat().st_size > META_LIMIT:
        raise DatasetError(f"{path} has {path.stat().st_size:,} bytes, over {META_LIMIT:,}")
    raw = path.read_bytes()
    try:
        _scan(raw)
        meta = pickle.loads(raw)  # noqa: S301 - scanned
    except Exception as e:  # a hostile pickle can raise anything
        raise DatasetError(
            f"{path} is refused: {str(e) or type(e).__name__}. "
            "Only dicts, strings and ints are allowed"
        ) from e
    itos, stoi = (meta.get(k) if isinstance(meta, dict) else None for k in ("itos", "stoi"))
    if not isinstance(itos, dict) or not isinstance(stoi, dict):
        raise DatasetError(f"{path} lacks the dicts itos and stoi")
    n = len(itos)
    well_formed = (
        meta.get("vocab_size") == n
        and set(itos) == set(range(n))
        and all(isinstance(c, str) for c in itos.values())
        and stoi == {c: i for i, c in itos.items()}
    )
    if not well_formed:
        raise DatasetError(f"{path}: vocab_size, itos and stoi contradict each other")
    return tuple(itos[i] for i in range(n))
