"""nanoGPT's data format: ``train.bin`` and ``val.bin`` (uint16 tokens) and ``meta.pkl``.

Source of the format: nanoGPT, ``data/shakespeare_char/prepare.py``.
"""

import hashlib
import io
import json
import pickle
import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from normscope.errors import Explained

FILES = ("train.bin", "val.bin", "meta.pkl")
META_LIMIT = 64 << 20  # bytes; nanoGPT's own meta.pkl has 703
INT_LIMIT = 1 << 20  # tokens are below 65,536, memo indices below a few times that
PLAIN_OPCODES = frozenset(
    "PROTO FRAME STOP MARK EMPTY_DICT DICT SETITEM SETITEMS MEMOIZE PUT BINPUT LONG_BINPUT GET "
    "BINGET LONG_BINGET UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 INT BININT BININT1 BININT2 "
    "LONG LONG1 LONG4".split()
)


class DatasetError(Explained):
    """A file is not what nanoGPT's format says."""


@dataclass(frozen=True)
class Dataset:
    """Tokens as uint16 arrays, and the characters that they stand for."""

    train: np.ndarray
    val: np.ndarray
    chars: tuple[str, ...]

    @property
    def vocab_size(self) -> int:
        return len(self.chars)


def encode(text: str) -> Dataset:
    """Characters to tokens: sorted alphabet, the first 90% train, the rest val.

    Raises:
        DatasetError: fewer than 20 characters, or more kinds of them than uint16 holds.
    """
    chars = tuple(sorted(set(text)))
    if len(text) < 20 or len(chars) > 1 << 16:
        raise DatasetError(
            f"{len(text)} characters of {len(chars)} kinds: a corpus has at least 20 characters "
            f"of at most {1 << 16:,} kinds"
        )
    index = {c: i for i, c in enumerate(chars)}
    tokens = np.fromiter((index[c] for c in text), dtype=np.uint16, count=len(text))
    cut = int(len(text) * 0.9)
    return Dataset(tokens[:cut], tokens[cut:], chars)


def files(data: Dataset) -> dict[str, bytes]:
    """The three files of nanoGPT's format, byte for byte as its prepare script writes them."""
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
    """Read a nanoGPT-format directory; a foreign ``meta.pkl`` cannot run code.

    Raises:
        DatasetError: naming the file, what is wrong with it and what is expected.
    """
    _check_sums(directory)
    chars = read_meta(directory / "meta.pkl")
    splits = [_read_tokens(directory / name, len(chars)) for name in ("train.bin", "val.bin")]
    return Dataset(splits[0], splits[1], chars)


def _check_sums(directory: Path) -> None:
    """What rule dataset made, with its ``meta.json``, must be what it was then."""
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
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() != expected_sum:
            raise DatasetError(f"{file} is truncated or altered, {path} says: {way_out}")


def _read_tokens(path: Path, vocab_size: int) -> np.ndarray:
    if not path.is_file():
        raise DatasetError(f"{path} is missing: a nanoGPT dataset has train.bin, val.bin, meta.pkl")
    raw = path.read_bytes()
    if len(raw) < 4 or len(raw) % 2:
        raise DatasetError(f"{path} has {len(raw)} bytes: not an array of at least two uint16")
    tokens = np.frombuffer(raw, dtype="<u2")
    if int(tokens.max()) >= vocab_size:
        raise DatasetError(
            f"{path} has token {int(tokens.max())}, but meta.pkl names {vocab_size} characters"
        )
    return tokens


class _PlainUnpickler(pickle.Unpickler):  # noqa: TID251 - it finds no class
    """Loads no class, as a second wall behind ``_scan``."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise DatasetError(f"it asks for {module_name}.{global_name}")


def _scan(raw: bytes) -> None:
    """Read the opcodes without running them: only those that build dicts, strings and ints."""
    for opcode, argument, _ in pickletools.genops(raw):
        if opcode.name not in PLAIN_OPCODES:
            raise DatasetError(f"it uses the pickle opcode {opcode.name} ({argument!r})"[:200])
        if isinstance(argument, int) and not 0 <= argument <= INT_LIMIT:
            raise DatasetError(f"it has an integer outside 0 to {INT_LIMIT:,}")


def read_meta(path: Path) -> tuple[str, ...]:
    """The characters named by a ``meta.pkl``, in token order.

    Raises:
        DatasetError: it holds anything but plain dicts, strings and ints, or they do not fit.
    """
    if not path.is_file():
        raise DatasetError(f"{path} is missing: a nanoGPT dataset has train.bin, val.bin, meta.pkl")
    if path.stat().st_size > META_LIMIT:
        raise DatasetError(f"{path} has {path.stat().st_size:,} bytes, over {META_LIMIT:,}")
    try:
        raw = path.read_bytes()
        _scan(raw)
        meta = _PlainUnpickler(io.BytesIO(raw)).load()
        _refuse_all_but_plain(meta, set())
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


def _refuse_all_but_plain(value: Any, seen: set[int]) -> None:
    if type(value) is dict:
        if id(value) in seen:  # shared or cyclic dicts would be walked for ever
            raise DatasetError("it holds one dict twice")
        seen.add(id(value))
        for part in (*value.keys(), *value.values()):
            _refuse_all_but_plain(part, seen)
    elif type(value) not in {str, int}:
        raise DatasetError(f"it holds a {type(value).__name__}")
