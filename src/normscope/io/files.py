"""Writing files so that a kill or a full disk leaves the old or the new file, never a part."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from normscope.errors import Explained
from normscope.locks import lock

DAMAGED = "{path} is damaged ({why}): remove it and start again, and it is made again"

SUMS = "SHA256SUMS"  # as ``sha256sum --check`` reads it
SEAL = ".sha256"


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file through a temporary file, which is synced before it is renamed.

    Raises:
        OSError: naming the file and the reason; the old file is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # always the same name, so that the next attempt overwrites what a killed process left
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with _open_locked(temporary) as f:
            f.truncate(0)
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
            temporary.replace(path)
    except OSError as e:
        raise OSError(
            e.errno,
            f"{e.strerror} while writing {len(data):,} bytes; fix that and start again",
            str(path),
        ) from e


@contextmanager
def _open_locked(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for one process at a time.

    Another process waits until the first has renamed the file or has ended, and opens a new one.
    """
    while True:
        with open(path, "ab") as f:
            lock(f)
            try:
                renamed = path.stat().st_ino != os.fstat(f.fileno()).st_ino
            except FileNotFoundError:
                renamed = True
            if renamed:
                continue
            try:
                yield f
            except OSError:
                path.unlink(missing_ok=True)
                raise
            return


def seal(*paths: Path) -> None:
    """Write the SHA-256 of each file or folder to a hidden file next to it, to reveal damage."""
    for path in paths:
        write_text(path.with_name(f".{path.name}{SEAL}"), _digest(path))


def is_altered(path: Path) -> bool:
    """Whether a file or folder differs from what was sealed; False if it has no seal."""
    sealed = path.with_name(f".{path.name}{SEAL}")
    return sealed.is_file() and _digest(path) != sealed.read_text().strip()


def find_altered(folder: Path) -> list[Path]:
    """All files and folders below a folder that differ from what was sealed."""
    sealed = (path.with_name(path.name[1 : -len(SEAL)]) for path in folder.rglob(f".*{SEAL}"))
    return [path for path in sealed if path.exists() and is_altered(path)]


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and digests of a folder's files that are not hidden."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(p for p in path.rglob("[!.]*") if p.is_file())
    lines = "".join(f"{_digest(p)}  {p.relative_to(path)}\n" for p in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` of UTF-8 text with a final newline."""
    write_bytes(path, (text.rstrip("\n") + "\n").encode())


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys; NaN and infinities are refused, because JSON lacks them."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False))


def read_json(path: Path) -> Any:
    """The content of a JSON file that a job wrote."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as e:
        raise Explained(DAMAGED.format(path=path, why=e)) from e


def read_svg(path: Path) -> bytes:
    """A figure that a job drew."""
    svg = path.read_bytes()
    if b"<svg" not in svg or not svg.rstrip().endswith(b"</svg>"):
        raise Explained(DAMAGED.format(path=path, why=f"{len(svg)} bytes without a whole drawing"))
    return svg


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write SHA256SUMS for files of a folder, after the files themselves."""
    sums = (f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}" for n in names)
    write_text(folder / SUMS, "\n".join(sums))
