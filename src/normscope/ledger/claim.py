"""A statement and the result of its tests, and the registry of tests that are functions."""

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
    """The data on which statements are tested.

    Args:
        tables: The tables of every study, by the names of the study and the table.
        studies: The configuration of every study, by name.
        level: The confidence level of intervals.
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
    """The result of a statement's tests.

    Args:
        cases: The cases by name.
        published: What the published protocol, or the document itself, shows.
        its_verdict: The verdict of the published rule on that.
        corrected: What the corrected protocol shows.
        alone: The verdict in words, if the cases do not determine them.
        primary: The name of the case that decides, if the entry names one and it is there.
    """

    cases: Mapping[str, Case]
    published: str = ""
    its_verdict: str = ""
    corrected: str = ""
    alone: str = ""
    primary: str | None = None


@dataclass(frozen=True)
class Claim:
    """A statement of a document, and the result of its tests."""

    document: str
    key: str
    entry: Entry
    finding: Finding = field(default_factory=lambda: Finding({}))

    @property
    def cases(self) -> Mapping[str, Case]:
        return self.finding.cases

    @property
    def deciding(self) -> Mapping[str, Case]:
        """The cases that decide: only the primary one if the entry names one."""
        if self.entry.holds_in != "primary":
            return self.cases
        return {n: case for n, case in self.cases.items() if n == self.finding.primary}

    @property
    def verdict(self) -> str:
        """The verdict without a correction for the other statements, case by case."""
        return self.finding.alone or together({n: c.reading() for n, c in self.deciding.items()})


Test = Callable[[Entry, Evidence], Finding]
TESTS: dict[str, Test] = {}  # by the key of the entry, from the modules that were imported


def claim(key: str) -> Callable[[Test], Test]:
    """Register a function as the test of the entry ``key``, which a contrast cannot express."""

    def mark(test: Test) -> Test:
        if key in TESTS:
            raise ValueError(f"two functions test {key}")
        TESTS[key] = test
        return test

    return mark


def together(verdicts: Mapping[str, str]) -> str:
    """The verdict of several cases: the common one, or which verdict each case has."""
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
