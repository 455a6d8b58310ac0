"""What was fixed before the data existed: frozen tests, and the history of all verdicts.

A verdict is confirmatory if its test and the settings of its run were frozen before its models were
trained, on seeds that nobody had seen. Any other verdict from trained models or prompts is
exploratory.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from normscope.io.yamlfile import read_yaml
from normscope.ledger.entry import Claims, Entry
from normscope.ledger.reading import DECISIVE
from normscope.schema import Distinct, Seed, Some, Strict

# the files that decide a verdict, or what is trained for it
DECIDES = ("src", "scripts", "workflow", "data", "config", "config.yaml", "constraints.txt")
# the files of evidence/ that tell confirmatory verdicts, where they exist
FROZEN, HISTORY, SEEN = REGISTRY = ("frozen.json", "history.jsonl", "seen.yaml")
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Status = Literal["confirmatory", "exploratory", "deterministic"]
NUMBERS = ("effect", "low", "high")  # of a case
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


class Line(Strict):
    """A line of history.jsonl: a verdict that an evidence run gave.

    Args:
        frozen: The commit of the freeze before the run; None if nothing was frozen.
        commit: The commit whose code judged the statement.
        status: How its data and its test came about; unknown in the lines of the first runs.
        result: The digest of what all cases found; unknown in older lines.
    """

    statement: str
    digest: Digest
    seeds: tuple[int, ...]
    verdict: str
    n: int
    p: float | None
    frozen: Commit | None
    commit: Annotated[str, Field(pattern="^[0-9a-f]{7,40}$")]
    status: Status | None = None
    result: Digest | None = None


class Seen(Strict):
    """Seeds whose results somebody saw, and that the history does not list: a part of seen.yaml.

    Args:
        by: The runs that used them.
    """

    by: str
    seeds: Annotated[list[Seed], Some, Distinct]


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
        if reading.refutable:  # so that digests are those of tests without this key
            del test["refutable"]
        readings[name] = test
    parts = {"study": entry.study, "primary": entry.primary, "readings": readings}
    parts["published"] = entry.published.verdict
    text = json.dumps(parts | {"function": function}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_of_cases(readings: Mapping[str, Mapping[str, Any]]) -> str:
    """A digest of what all cases found: their answers, and their numbers to six digits.

    Args:
        readings: Those of a statement, as claims.json has them.
    """
    rows = [
        [case["reads"].partition(":")[0], case["n"]]
        + [None if case[key] is None else f"{case[key]:.6g}" for key in NUMBERS]
        for reading in readings.values()
        for case in reading["cases"].values()
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


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
    """The lines of a history; none if there is no file."""
    if not path.is_file():
        return []
    return [Line.model_validate_json(line) for line in path.read_text().splitlines()]


def read_seen(path: Path) -> list[Seen]:
    """The seeds of a file seen.yaml; none if there is no file."""
    if not path.is_file():
        return []
    return TypeAdapter(list[Seen]).validate_python(read_yaml(path))


class Registry:
    """Tells confirmatory from exploratory verdicts.

    Args:
        digests: The digests of the present tests, by key.
        frozen: What was frozen before the run; None if nothing was.
        history: The verdicts of all evidence runs.
        seen: Further seeds that were used.
        settings: The digest of the run's configuration.
    """

    def __init__(
        self,
        digests: Mapping[str, str],
        frozen: Frozen | None = None,
        history: Iterable[Line] = (),
        seen: Iterable[Seen] = (),
        settings: str = "",
    ) -> None:
        self.digests, self.frozen, self.settings = digests, frozen, settings
        commit = None if frozen is None else frozen.commit
        lines = list(history)
        earlier = [line for line in lines if commit is None or line.frozen != commit]
        # the first result of each test and its seeds under this freeze
        self.given = {
            (line.statement, line.digest, line.seeds): line.result
            for line in reversed(lines)
            if line.frozen == commit and line.result is not None
        }
        listed = {seed for line in earlier for seed in line.seeds}
        # who used a seed; the history is named first
        self.used = {seed: one.by for one in seen for seed in one.seeds}
        self.used |= dict.fromkeys(listed, "earlier runs")
        self.confirmed = [line for line in earlier if line.status == "confirmatory"]

    def is_confirmed(self, key: str, seeds: Collection[int], result: str) -> bool:
        """Whether an earlier run gave this result, from the same test and the same seeds.

        It then stays confirmatory when the kept ledger is judged again, after another freeze.
        """
        now = (key, self.digests[key], tuple(seeds), result)
        return any(now == (o.statement, o.digest, o.seeds, o.result) for o in self.confirmed)

    def is_another(self, key: str, seeds: Collection[int], result: str) -> bool:
        """Whether the same test gave another result of these seeds under the same freeze.

        What judges was then changed after the result had been known.
        """
        return self.given.get((key, self.digests[key], tuple(seeds)), result) != result

    def why_exploratory(self, key: str, seeds: Collection[int]) -> str:
        """Why a verdict from these seeds is exploratory; empty if it is confirmatory."""
        if self.frozen is None or key not in self.frozen.statements:
            return "its test was not frozen before its data existed"
        if self.settings not in self.frozen.settings.values():
            return "its settings are not those that were frozen"
        if self.frozen.statements[key] != self.digests[key]:
            return "its test was changed after it had been frozen"
        if not seeds:
            return "its data existed before its test"
        by: dict[str, list[str]] = {}
        for seed in sorted(self.used.keys() & set(seeds)):
            by.setdefault(self.used[seed], []).append(str(seed))
        return "; ".join(f"{runs} used its seeds {', '.join(named)}" for runs, named in by.items())


def read_registry(folder: Path, digests: Mapping[str, str], settings: str) -> Registry:
    """The registry of a run, from those files of ``REGISTRY`` that exist in a folder.

    Args:
        digests, settings: As ``Registry`` takes them.
    """
    frozen, history, seen = (folder / name for name in REGISTRY)
    return Registry(
        digests,
        read_frozen(frozen) if frozen.is_file() else None,
        read_history(history),
        read_seen(seen),
        settings,
    )
