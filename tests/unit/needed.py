"""What a machine may lack: its tests are skipped with the reason; where CI is set, they fail."""

import os

import pytest


def need(tool: object, reason: str) -> None:
    """Go on only with the tool or file that a test needs.

    Args:
        tool: it, or nothing if it is missing.
        reason: what is missing, and the way out.
    """
    if not tool:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
