"""What was fixed before the data existed: frozen tests, and the history of all verdicts.

A verdict is confirmatory if its test was frozen before its models were trained, on seeds that no
earlier run used. Any other verdict from trained models or prompts is exploratory.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from normscope.ledger.entry import Claims, Entry
from normscope.ledger.reading import DECISIVE
from normscope.schema import Strict

# the files that decide a verdict, or what is trained for it
DECIDES = ("src", "scripts", "workflow", "data", "config", "config.yaml", "constraints.txt")
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Status = Literal["confirmatory", "exploratory", "deterministic"]


class Frozen(Strict):
    """The file frozen.json, written before an evidence run.

    Args:
        commit: The commit whose tests and settings are frozen.
        configuration: The file that configures the run.
        settings: SHA-256 of the whole configuration, with seeds and chosen learning rates.
        statements: The digest of every statement's test, by key.
    """

    commit: Commit
    configuration: str
    settings: str
    statements: Mapping[str, Digest]


class Line(Strict):
    """A line of history.jsonl: a verdict that an evidence run gave.

    Args:
        frozen: The commit of the freeze before the run; None if nothing was frozen.
        commit: The commit whose code judged the statement.
    """

    statement: str
    digest: Digest
    seeds: tuple[int, ...]
    verdict: str
    n: int
    p: float | None
    frozen: Commit | None
    commit: Annotated[str, Field(pattern="^[0-9a-f]{7,40}$")]


def digest(entry: Entry, function: str = "") -> str:
    """A digest of all that decides a statement, and of none of its words.

    Args:
        entry: The statement.
        function: What else decides it: its document, within which p-values are corrected, and the
            code of the function that tests it, if one does.
    """
    readings = {}
    for name, reading in entry.readings.items():
        test = reading.model_dump(mode="json", include=DECISIVE)
        if test["contrast"]:
            del test["contrast"]["sentence"]
        else:
            test["quantity"] = reading.quantity  # a function may ask for it
        if reading.reach is not None:  # it may be left out
            test["reach"] = reading.reach
        readings[name] = test
    parts = {"study": entry.study, "primary": entry.primary, "readings": readings}
    parts["published"] = entry.published.verdict
    text = json.dumps(parts | {"function": function}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digests(claims: Claims, functions: Mapping[str, str]) -> dict[str, str]:
    """The digest of every statement, by key.

    Args:
        functions: The code of the functions that test statements, by key.
    """
    return {
        key: digest(entry, document + functions.get(key, "")) for document, key, entry in claims
    }


def read_frozen(path: Path) -> Frozen:
    """The frozen tests of a file."""
    return Frozen.model_validate_json(path.read_text())


def read_history(path: Path) -> list[Line]:
    """The lines of a history."""
    return [Line.model_validate_json(line) for line in path.read_text().splitlines()]


class Registry:
    """Tells confirmatory from exploratory verdicts.

    Args:
        digests: The digests of the present tests, by key.
        frozen: What was frozen before the run; None if nothing was.
        history: The verdicts of all evidence runs.
    """

    def __init__(
        self, digests: Mapping[str, str], frozen: Frozen | None, history: Iterable[Line]
    ) -> None:
        self.digests = digests
        self.frozen = frozen
        commit = None if frozen is None else frozen.commit
        earlier = [line for line in history if commit is None or line.frozen != commit]
        self.used = {seed for line in earlier for seed in line.seeds}

    def why_exploratory(self, key: str, seeds: Collection[int]) -> str:
        """Why a verdict from these seeds is exploratory; empty if it is confirmatory."""
        if self.frozen is None or key not in self.frozen.statements:
            return "its test was not frozen before its data existed"
        if self.frozen.statements[key] != self.digests[key]:
            return "its test was changed after it had been frozen"
        if not seeds:
            return "its data existed before its test"
        if used := sorted(self.used.intersection(seeds)):
            return f"earlier runs used its seeds {', '.join(map(str, used))}"
        return ""
