"""Writing files so that a kill or a full disk leaves the old file or the new one, never a part."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SUMS = "SHA256SUMS"  # as ``sha256sum --check`` reads it


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file, synced before it takes the name.

    Raises:
        OSError: naming the file and the reason; ``path`` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # one name, so that what a kill leaves is overwritten by the next try
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)
    except OSError as e:
        temporary.unlink(missing_ok=True)
        raise OSError(
            e.errno,
            f"{e.strerror} while writing {len(data):,} bytes; mend that and start again",
            str(path),
        ) from e


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` of UTF-8 text with a final newline."""
    write_bytes(path, (text.rstrip("\n") + "\n").encode())


def write_json(path: Path, value: Any) -> None:
    """JSON with sorted keys; NaN and infinities are refused, as JSON has none."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False))


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """SHA-256 of files of a folder, written after them: what they are, and that they are whole."""
    sums = (f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}" for n in names)
    write_text(folder / SUMS, "\n".join(sums))
