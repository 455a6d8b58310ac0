"""A statement with what was found: the words of a table, and the cases that decide it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from normscope.ledger.case import Case
from normscope.ledger.entry import Entry


@dataclass(frozen=True)
class Claim:
    """A statement beside what is found.

    Args:
        key: of the entry.
        published: what its own protocol, or what is in print, shows.
        own: the verdict of the published rule on that.
        corrected: what the corrected protocol shows.
        cases: its tests by what they are of; the statement holds if it holds in all.
        found: the verdict where the cases alone do not give its words.
    """

    key: str
    entry: Entry
    published: str
    corrected: str
    cases: Mapping[str, Case]
    own: str = ""
    found: str = ""

    @property
    def claim(self) -> str:
        return self.entry.statement

    @property
    def test(self) -> str:
        return self.entry.asks

    @property
    def verdict(self) -> str:
        """The answer of this statement alone, case by case."""
        return self.found or together({name: c.reading() for name, c in self.cases.items()})


def together(verdicts: Mapping[str, str]) -> str:
    """One verdict for several cases: theirs if it is the same, else which holds where."""
    if not verdicts:
        return "no data"
    if len(set(verdicts.values())) == 1:
        return next(iter(verdicts.values()))
    kinds: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        kinds.setdefault(verdict, []).append(name)
    return "depends: " + "; ".join(f"{kind} for {', '.join(of)}" for kind, of in kinds.items())


def kind(verdict: str) -> str:
    """The first word of a verdict."""
    return re.split("[: ]", verdict)[0]
