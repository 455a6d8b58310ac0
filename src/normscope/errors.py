"""Errors that a user can fix: they are shown as one message, without a traceback."""

import contextlib
import difflib
import os
import stat
import sys
from collections.abc import Callable, Iterable

from pydantic import ValidationError

from normscope.locks import lock


class Explained(Exception):
    """An error that a user can fix; its message names the thing, the reason and the way out."""


def suggest(word: object, known: Iterable[object]) -> str:
    """A hint for an unknown word: the closest known word, or all known words."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(word), names, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(names) or 'none'}"


def run_script(main: Callable[[], None]) -> None:
    """Run the ``main`` of a script, after the same job of a killed Snakemake has ended.

    An error that a user can fix ends the process with ``error: ...`` and status 1.
    """
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

    Both would write the same files.
    """
    log = sys.stderr.fileno()
    if not stat.S_ISREG(os.fstat(log).st_mode):
        return
    with contextlib.suppress(OSError):  # a file system without locks
        if not lock(log, wait=False):
            print("waiting for the same job of a Snakemake that was killed", file=sys.stderr)
            lock(log)
