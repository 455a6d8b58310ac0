"""The store of expensive results: are its entries still what their jobs wrote?

An entry is the files of one job, ``<key><name>``: the key is 64 hex digits, Snakemake's hash of all
that decides the result. One of them is SHA256SUMS, of the others. Files are read once; later a look
at size, times and inode is enough, as the time of change (ctime) cannot be set back.
"""

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from normscope.io.files import SUMS, write_text

KEY = 64  # hex digits of an entry's key


def read_sums(path: Path) -> dict[str, str]:
    """SHA-256 by file name, of a file of such sums."""
    lines = path.read_text(errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def keys(store: Path) -> set[str]:
    """Of all entries, whole or not."""
    names = (entry.name for entry in os.scandir(store) if entry.is_file())
    return {name[:KEY] for name in names if _is_key(name)}


def remove(store: Path, dropped: Iterable[str], *, dry_run: bool = False) -> int:
    """Remove entries by their keys; the bytes that they take."""
    gone = set(dropped)
    files = [entry for entry in os.scandir(store) if entry.name[:KEY] in gone]
    freed = sum(entry.stat().st_size for entry in files)
    if not dry_run:
        for entry in files:
            Path(entry).unlink()
    return freed


def lend(store: Path, other: Path, lent: Iterable[str]) -> None:
    """Entries by their keys, of one store, into another one too: links where a disk has both.

    Entries of the other store are kept; entries never change.
    """
    wanted = set(lent)
    for entry in os.scandir(store):
        if entry.name[:KEY] in wanted and not (target := other / entry.name).exists():
            part = other / f".{entry.name}.{os.getpid()}"  # a kill leaves no half of a file
            try:
                os.link(entry, part)
            except OSError:
                shutil.copy2(entry, part)
            part.replace(target)


def remove_damaged(store: Path, seen: Path) -> list[str]:
    """Remove entries whose files do not fit their sums, so that they are made again.

    An entry with a file missing is left: it counts as absent, and storing it again completes it.

    Args:
        store: directory.
        seen: JSON of what was looked at before; brought up to date.

    Returns:
        A line for each removed entry: which, why, and what follows.
    """
    now = {e.name: _stamp(e.stat()) for e in os.scandir(store) if e.is_file()}
    before = _read(seen)
    entries: dict[str, set[str]] = defaultdict(set)
    for name in filter(_is_key, now):
        entries[name[:KEY]].add(name[KEY:])
    fresh = sorted({name[:KEY] for name, stamp in now.items() if before.get(name) != stamp})
    misfits = {key: _damaged(store, key, entries[key]) for key in fresh if key in entries}
    damaged = {key: name for key, name in misfits.items() if name is not None}
    remove(store, damaged)
    sound = {name: stamp for name, stamp in now.items() if name[:KEY] not in damaged}
    if sound != before:
        write_text(seen, json.dumps(sound))
    return [
        f"{store / key}{name} is not what its job wrote: the entry is removed, to be made again"
        for key, name in damaged.items()
    ]


def _damaged(store: Path, key: str, names: set[str]) -> str | None:
    """The name of a file of an entry that does not fit its sum."""
    if SUMS not in names:
        return None
    sums = read_sums(store / f"{key}{SUMS}")
    if names - sums.keys() != {SUMS}:
        return SUMS
    for name in sorted(names - {SUMS}):
        if hashlib.sha256((store / f"{key}{name}").read_bytes()).hexdigest() != sums[name]:
            return name
    return None


def _is_key(name: str) -> bool:
    return len(name) > KEY and set(name[:KEY]) <= set("0123456789abcdef")


def _stamp(stat: os.stat_result) -> list[int]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _read(seen: Path) -> dict[str, list[int]]:
    try:
        stamps = json.loads(seen.read_text())
    except (OSError, ValueError):  # nothing seen yet, or cut short: everything is looked at again
        return {}
    return stamps if isinstance(stamps, dict) else {}
