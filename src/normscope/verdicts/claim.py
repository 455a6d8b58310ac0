"""A statement and the result of its tests, and the registry of tests that are functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from normscope.errors import Explained
from normscope.verdicts.case import Case
from normscope.verdicts.entry import Entry
from normscope.verdicts.reading import Reading


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
    """The result of the test of a reading.

    Args:
        cases: The cases by name.
        published: What the published protocol shows; empty if it is not in the tables.
        its_verdict: The verdict of the published rule on that.
        corrected: What the corrected protocol shows.
        alone: The verdict in words, if the cases do not determine them.
    """

    cases: Mapping[str, Case]
    published: str = ""
    its_verdict: str = ""
    corrected: str = ""
    alone: str = ""

    @property
    def answer(self) -> str:
        """The verdict without a correction for other readings and statements, case by case."""
        return self.alone or together({name: case.answer() for name, case in self.cases.items()})

    @property
    def has_models(self) -> bool:
        """Whether a case has trained models, of a known extent, on all of its sides."""
        return any(case.extents for case in self.cases.values())


@dataclass(frozen=True)
class Claim:
    """A statement of a document, and what its readings' tests found."""

    document: str
    key: str
    entry: Entry
    findings: Mapping[str, Finding]

    @property
    def asked(self) -> dict[str, Finding]:
        """The findings of the readings that decide.

        A reading of another size, training or text is not asked in a run without such models.
        """
        return {
            name: finding
            for name, finding in self.findings.items()
            if self.entry.readings[name].reach is None or finding.has_models
        }


Test = Callable[[Reading, Evidence], Finding]
TESTS: dict[str, Test] = {}  # by the key of the statement, from the modules that were imported


def claim(key: str) -> Callable[[Test], Test]:
    """Register a function as the test of all readings of ``key``.

    It may hand those with a contrast to ``ledger.contrast.find``.
    """

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
    return "by case: " + "; ".join(f"{kind} for {', '.join(n)}" for kind, n in cases.items())
