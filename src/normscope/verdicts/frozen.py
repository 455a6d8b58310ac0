"""What was registered before the data existed: tests of statements, and the settings of studies.

A verdict is *post hoc* if its test, or the settings of a study that it reads, were not frozen
before its data existed.
"""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, TypeAdapter

from normscope.errors import Explained
from normscope.schema import Strict
from normscope.verdicts.document import Statement

# the files that decide a verdict, or what is trained for it; how results are shown decides none
DECISIVE_PATHS = (
    *("src", "scripts", "workflow", "data", "config", "config.yaml", "constraints.txt"),
    *(":(exclude)src/normscope/pages", ":(exclude)src/normscope/studies/*/figures*"),
    *(":(exclude)src/normscope/studies/*/pages.py", ":(exclude)src/normscope/studies/*/section.md"),
    ":(exclude)data/findings.yaml",
)
FROZEN = "frozen.json"  # of evidence/
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Settings = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Frozen(Strict):
    """What was frozen of a study, before its models were trained.

    Args:
        commit: The commit that has the tests and the settings.
        settings: The digest of its settings, with their seeds, learning rates and texts.
        statements: The digest of the test of every statement that reads it, by the statement's key.
    """

    commit: Commit
    settings: Settings
    statements: Mapping[str, Digest]


FROZEN_STUDIES = TypeAdapter(dict[str, Frozen])  # the content of frozen.json, by study


class Plan(NamedTuple):
    """What was planned of a run, against its present tests and settings.

    Args:
        settings: The digest of the settings of every study of the run, by name.
        frozen: What was frozen of every study before it ran, by name.
    """

    settings: Mapping[str, str] = {}
    frozen: Mapping[str, Frozen] = {}

    def why_post_hoc(self, key: str, statement: Statement) -> str:
        """Why a verdict about new data is post hoc; empty if its test was registered."""
        for study in statement.studies:
            frozen = self.frozen.get(study)
            if frozen is None or key not in frozen.statements:
                return "its test was not frozen before its data existed"
            if frozen.statements[key] != digest(statement):
                return "its test was changed after it had been frozen"
            if frozen.settings != self.settings[study]:
                return "its settings are not those that were frozen"
        return ""


def digest(statement: Statement) -> str:
    """A digest of all that decides a statement, and of none of its words."""
    tests = [one.model_dump(mode="json") for one in statement.comparisons.values()]
    return hashlib.sha256(json.dumps(tests, sort_keys=True).encode()).hexdigest()[:16]


def git(*words: str) -> str:
    """The output of a command of Git in the current directory."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        said = getattr(e, "stderr", None) or str(e)
        raise Explained(f"git {' '.join(words)}: {said.strip()}; run it in a clone") from None
    return done.stdout.strip()


def read_frozen(folder: Path) -> dict[str, Frozen]:
    """What a folder's frozen.json registers, by study; empty if there is no such file."""
    path = folder / FROZEN
    return FROZEN_STUDIES.validate_json(path.read_text()) if path.is_file() else {}
