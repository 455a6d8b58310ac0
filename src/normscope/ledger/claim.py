"""A statement with what was found: the words of a table, and the cases that decide it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from normscope.errors import Explained
from normscope.ledger.case import Case
from normscope.ledger.entry import Entry


@dataclass(frozen=True)
class Evidence:
    """What statements are judged by.

    Args:
        tables: of every study, by its name and theirs.
        studies: the configuration of every study, by its name.
        level: confidence level of the intervals.
    """

    tables: Mapping[str, Mapping[str, pd.DataFrame]]
    studies: Mapping[str, Any]
    level: float

    def table(self, name: str) -> pd.DataFrame:
        """The table ``study.table``.

        Raises:
            Explained: no study has it.
        """
        study, _, table = name.partition(".")
        if table not in self.tables.get(study, {}):
            raise Explained(f"no study has a table {name}")
        return self.tables[study][table]


@dataclass(frozen=True)
class Finding:
    """What was found of a statement.

    Args:
        cases: its tests by what they are about.
        published: what its own protocol, or what is in print, shows.
        own: the verdict of the published rule on that.
        corrected: what the corrected protocol shows.
        alone: the verdict where the cases alone do not give its words.
        primary: name of the case that decides, where the test names one and it is known.
    """

    cases: Mapping[str, Case]
    published: str = ""
    own: str = ""
    corrected: str = ""
    alone: str = ""
    primary: str | None = None


@dataclass(frozen=True)
class Claim:
    """A statement of a document, and what was found about it."""

    document: str
    key: str
    entry: Entry
    finding: Finding = field(default_factory=lambda: Finding({}))

    @property
    def cases(self) -> Mapping[str, Case]:
        return self.finding.cases

    @property
    def deciding(self) -> Mapping[str, Case]:
        """The cases that the verdict rests on: the primary one alone where the entry names one."""
        if self.entry.holds_in != "primary":
            return self.cases
        return {n: case for n, case in self.cases.items() if n == self.finding.primary}

    @property
    def verdict(self) -> str:
        """The answer of this statement alone, case by case."""
        return self.finding.alone or together({n: c.reading() for n, c in self.deciding.items()})


Test = Callable[[Entry, Evidence], Finding]
TESTS: dict[str, Test] = {}  # of the modules that were imported, by the key of their entry


def claim(key: str) -> Callable[[Test], Test]:
    """Mark a function as the test of the entry ``key``, where a contrast cannot say it."""

    def mark(test: Test) -> Test:
        if key in TESTS:
            raise ValueError(f"two functions test {key}")
        TESTS[key] = test
        return test

    return mark


def together(verdicts: Mapping[str, str]) -> str:
    """One verdict for several cases: theirs if it is the same, else which holds where."""
    if not verdicts:
        return "no data"
    if len(set(verdicts.values())) == 1:
        return next(iter(verdicts.values()))
    cases: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        cases.setdefault(verdict, []).append(name)
    return "depends: " + "; ".join(f"{kind} for {', '.join(n)}" for kind, n in cases.items())


def kind(verdict: str) -> str:
    """The first word of a verdict."""
    return re.split("[: ]", verdict)[0]
