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


def of_cases(entry: Entry, cases: Mapping[Pair, Case]) -> str:
    """The quantity in every case."""
    return _joined(entry, [_named(pair, _case(entry, pair, case)) for pair, case in cases.items()])


def of_published(entry: Entry, cases: Sequence[Pair]) -> str:
    """The published number, or the means under the published protocol if it was tested."""
    if entry.contrast is None or entry.contrast.as_published is None:
        return entry.published.number or "no number"
    means = [_named(pair, " against ".join(_means(entry, pair))) for pair in cases]
    return _joined(entry, means)


def _joined(entry: Entry, parts: Sequence[str]) -> str:
    return f"{entry.quantity}: {'; '.join(parts)}" if parts else "–"


def _case(entry: Entry, pair: Pair, case: Case) -> str:
    """One case, by the entry's sentence or by the common one."""
    first, *others = _means(entry, pair)
    if case.open or case.fact is not None:
        return case.open or first
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
    return words


def _named(pair: Pair, words: str) -> str:
    return f"{pair.name}: {words}" if pair.name else words


def _means(entry: Entry, pair: Pair) -> list[str]:
    """The means of the sides, geometric on a logarithmic scale; of a fact the worst value."""
    if entry.test == "fact":
        return [significant_or_tiny(pair.effect(entry))]
    means = pair.means()
    if entry.scale == "log":
        means = [exp(mean(map(log, rows[VALUE]))) for rows in pair.sides]
    return [significant_or_tiny(value) for value in means]


def _settings(counts: Mapping[str, int]) -> str:
    """The chosen settings, with the number of seeds if there is more than one."""
    return ", ".join(counts if len(counts) == 1 else (f"{s} ({n})" for s, n in counts.items()))
