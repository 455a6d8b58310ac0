"""The sentences that describe what a test found."""

import math
from collections.abc import Mapping, Sequence

from normscope.ledger.case import Case, exp, log, units
from normscope.ledger.entry import Entry
from normscope.ledger.expression import mean
from normscope.ledger.pairs import VALUE, Pair
from normscope.words import significant_or_tiny

ONE_SIDE = "{effect}{interval}, {n}"
TWO_SIDES = "{effect}{interval} ({first} against {second}), {n}"


def joined(entry: Entry, parts: Sequence[str]) -> str:
    """The quantity, and what it is in every case."""
    return f"{entry.quantity}: {'; '.join(parts)}" if parts else "–"


def of_fact(entry: Entry, case: Case) -> str:
    """The quantity in the row that decides."""
    return joined(entry, [significant_or_tiny(case.effect)])


def of_means(entry: Entry, pair: Pair) -> str:
    """The means of the sides; geometric on a logarithmic scale."""
    return _named(pair, " against ".join(_means(entry, pair)))


def of_case(entry: Entry, pair: Pair, case: Case) -> str:
    """One case, by the entry's sentence or by the common one."""
    if case.open:
        return _named(pair, case.open)
    first, *others = _means(entry, pair)
    low, high = (significant_or_tiny(v) for v in (case.low, case.high))
    words = (pair.contrast.sentence or (TWO_SIDES if others else ONE_SIDE)).format(
        first=first,
        second="".join(others),
        effect=significant_or_tiny(case.effect),
        interval="" if math.isnan(case.low) else f" [{low}, {high}]",
        n=units(case.n, case.unit),
    )
    if pair.contrast.best:
        names = ", ".join(pair.contrast.best.columns).replace("_", " ")
        words += f" at {names} {' against '.join(map(_settings, pair.chosen()))}"
    return _named(pair, words)


def _named(pair: Pair, words: str) -> str:
    return f"{pair.name}: {words}" if pair.name else words


def _means(entry: Entry, pair: Pair) -> list[str]:
    means = pair.means()
    if entry.scale == "log":
        means = [exp(mean(map(log, rows[VALUE]))) for rows in pair.sides]
    return [significant_or_tiny(value) for value in means]


def _settings(counts: Mapping[str, int]) -> str:
    """The chosen settings, with the number of seeds if there is more than one."""
    return ", ".join(counts if len(counts) == 1 else (f"{s} ({n})" for s, n in counts.items()))
