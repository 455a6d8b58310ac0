"""What was registered before the data existed: every statement's test, and the settings of its run.

A verdict is *post hoc* if its test or its settings were not frozen before its data existed.
"""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from normscope.errors import Explained
from normscope.schema import Strict
from normscope.verdicts.document import Claims, Statement

# the files that decide a verdict, or what is trained for it
DECISIVE_PATHS = ("src", "scripts", "workflow", "data", "config", "config.yaml", "constraints.txt")
FROZEN = "frozen.json"  # of evidence/
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Settings = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Frozen(Strict):
    """The file frozen.json, written before an evidence run.

    Args:
        commit: The commit whose tests and settings are frozen.
        settings: The digest of every frozen configuration, with its seeds and learning rates, by
            the name of its file.
        statements: The digest of every statement's test, by key.
    """

    commit: Commit
    settings: Mapping[str, Settings]
    statements: Mapping[str, Digest]


class Plan(NamedTuple):
    """What was planned of a run, against its present tests and settings.

    Args:
        digests: The digests of the present tests, by key.
        frozen: What was frozen before the run; None if nothing was.
        settings: The digest of the run's configuration.
    """

    digests: Mapping[str, str]
    frozen: Frozen | None = None
    settings: str = ""

    def why_post_hoc(self, key: str) -> str:
        """Why a verdict about new data is post hoc; empty if its test was registered."""
        if self.frozen is None or key not in self.frozen.statements:
            return "its test was not frozen before its data existed"
        if self.settings not in self.frozen.settings.values():
            return "its settings are not those that were frozen"
        if self.frozen.statements[key] != self.digests[key]:
            return "its test was changed after it had been frozen"
        return ""


def digest(statement: Statement) -> str:
    """A digest of all that decides a statement, and of none of its words."""
    tests = [one.model_dump(mode="json") for one in statement.comparisons.values()]
    return hashlib.sha256(json.dumps(tests, sort_keys=True).encode()).hexdigest()[:16]


def digests(claims: Claims) -> dict[str, str]:
    """The digest of every statement, by key."""
    return {key: digest(statement) for _, key, statement in claims}


def git(*words: str) -> str:
    """The output of a command of Git in the current directory."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        said = getattr(e, "stderr", None) or str(e)
        raise Explained(f"git {' '.join(words)}: {said.strip()}; run it in a clone") from None
    return done.stdout.strip()


def read_frozen(folder: Path) -> Frozen | None:
    """What a folder's frozen.json registers; None if there is no such file."""
    path = folder / FROZEN
    return Frozen.model_validate_json(path.read_text()) if path.is_file() else None
