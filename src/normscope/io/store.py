"""The store of expensive results.

An entry consists of the files of one job, ``<key><name>``: the key has 64 hex digits and is
Snakemake's hash of everything that determines the result. One of the files is SHA256SUMS, with the
sums of the others. Each file is verified once; later only its size, times and inode are compared,
because the time of change (ctime) cannot be set back.
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
EXPERIMENTS = Path(".dvc/tmp/exps")  # DVC runs experiments in copies of the repository below it


def default_store() -> str:
    """The folder ``store`` of this repository; in a copy for an experiment, of the original."""
    here = Path.cwd()
    originals = [p.parents[2] for p in here.parents if p.parts[-3:] == EXPERIMENTS.parts]
    return str(Path(*originals[:1] or [here], "store"))


def read_sums(path: Path) -> dict[str, str]:
    """Read a SHA256SUMS file: the sums by file name."""
    lines = path.read_text(errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def keys(store: Path) -> set[str]:
    """The keys of all entries, including incomplete ones."""
    names = (entry.name for entry in os.scandir(store) if entry.is_file())
    return {name[:KEY] for name in names if _is_key(name)}


def link_into(store: Path, other: Path, lent: Iterable[str]) -> None:
    """Link entries into another store, or copy them if it is on another disk.

    Entries that the other store has are not replaced, because entries never change.
    """
    wanted = set(lent)
    for entry in os.scandir(store):
        if entry.name[:KEY] in wanted and not (target := other / entry.name).exists():
            part = other / f".{entry.name}.{os.getpid()}"  # a kill leaves no partial entry
            try:
                os.link(entry, part)
            except OSError:
                shutil.copy2(entry, part)
            part.replace(target)


def relink(links: Iterable[Path], store: Path) -> None:
    """Point links to entries to those of a store, with the links' times unchanged.

    The links are relative if they and the store are below the working directory, so that they hold
    after it was moved or copied. Links to entries that the store lacks, and other paths, are left.
    """
    here, store = Path.cwd().resolve(), store.resolve()
    for link in links:
        if not link.is_symlink() or not _is_key(link.readlink().name):
            continue
        entry, folder = store / link.readlink().name, link.parent.resolve()
        inside = entry.is_relative_to(here) and folder.is_relative_to(here)
        target = os.path.relpath(entry, folder) if inside else str(entry)
        if str(link.readlink()) != target and entry.exists():
            times, part = link.lstat(), link.with_name(f".{link.name}.tmp")
            part.unlink(missing_ok=True)
            part.symlink_to(target)
            os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns), follow_symlinks=False)
            part.replace(link)


def reset_modes(store: Path) -> None:
    """Give files that everyone may write the mode of a new file, where this user owns them."""
    os.umask(umask := os.umask(0))
    for entry in os.scandir(store):
        if not (entry.is_file() and _is_key(entry.name)):
            continue
        stat = entry.stat()
        if stat.st_mode & 0o777 == 0o666 and stat.st_uid == os.getuid():
            Path(entry).chmod(0o666 & ~umask)


def find_damaged(store: Path, seen: Path) -> dict[str, str]:
    """Find entries whose files differ from their sums.

    An entry with a missing file is not damaged: Snakemake treats it as absent and completes it.

    Args:
        store: directory.
        seen: JSON of the files that were verified earlier; updated.

    Returns:
        The name of the first file that differs, by the key of its entry.
    """
    now = {e.name: _stamp(e.stat()) for e in os.scandir(store) if e.is_file()}
    before = _read(seen)
    entries: dict[str, set[str]] = defaultdict(set)
    for name in filter(_is_key, now):
        entries[name[:KEY]].add(name[KEY:])
    fresh = sorted({name[:KEY] for name, stamp in now.items() if before.get(name) != stamp})
    misfits = {key: _find_damage(store, key, entries[key]) for key in fresh if key in entries}
    damaged = {key: name for key, name in misfits.items() if name is not None}
    sound = {name: stamp for name, stamp in now.items() if name[:KEY] not in damaged}
    if sound != before:
        write_text(seen, json.dumps(sound))
    return damaged


def _find_damage(store: Path, key: str, names: set[str]) -> str | None:
    """The name of a file of an entry that differs from its sum."""
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
    except (OSError, ValueError):  # missing or truncated: everything is verified again
        return {}
    return stamps if isinstance(stamps, dict) else {}
