"""Errors that a user can mend: they are shown as one message, without a traceback."""

import contextlib
import difflib
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterable

from pydantic import ValidationError


class Explained(Exception):
    """Names the thing, the reason and the way out."""


def suggest(word: object, known: Iterable[object]) -> str:
    """For a word that is unknown: the nearest of those that are known, or all of them."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(word), names, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none'}"


def report(main: Callable[[], None]) -> None:
    """Run a script's ``main``; end with ``error: ...`` and status 1 on an error of this kind."""
    from pydantic_settings import SettingsError  # noqa: PLC0415 - the workflow needs no flags

    try:
        _wait_for_orphan()
        main()
    except (Explained, OSError, SettingsError, ValidationError) as e:
        sys.exit(f"error: {e}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted; start again to continue")


def _wait_for_orphan() -> None:
    """Wait for another process with this log: the same job, which outlived a killed Snakemake.

    Both would write the same files. The kernel releases the lock when a process ends, however.
    """
    log = sys.stderr.fileno()
    if not stat.S_ISREG(os.fstat(log).st_mode):
        return
    with contextlib.suppress(OSError):  # a file system without locks
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for the same job of a Snakemake that was killed", file=sys.stderr)
            fcntl.flock(log, fcntl.LOCK_EX)
