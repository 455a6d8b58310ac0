"""Errors that a user can mend: they are shown as one message, without a traceback."""

import sys
from collections.abc import Callable

from pydantic import ValidationError


class Explained(Exception):
    """Names the thing, the reason and the way out."""


def report(main: Callable[[], None]) -> None:
    """Run a script's ``main``; end with ``error: ...`` and status 1 on an error of this kind."""
    from pydantic_settings import SettingsError  # noqa: PLC0415 - the workflow needs no flags

    try:
        main()
    except (Explained, OSError, SettingsError, ValidationError) as e:
        sys.exit(f"error: {e}")
