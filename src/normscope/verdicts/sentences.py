"""The sentences that describe what a test found."""

import math
from collections.abc import Mapping, Sequence

from normscope.verdicts.case import Case, exp, log, units
from normscope.verdicts.expression import mean
from normscope.verdicts.pairs import VALUE, Pair
from normscope.verdicts.reading import Reading
from normscope.words import significant_or_tiny

ONE_SIDE = "{effect}{interval}, {n}"
TWO_SIDES = "{effect}{interval} ({first} against {second}), {n}"


def of_cases(reading: Reading, cases: Mapping[Pair, Case], absent: Sequence[str]) -> str:
    """The quantity in every case, and the names of those that have no data."""
    known = [_named(pair, _case(reading, pair, case)) for pair, case in cases.items()]
    return _joined(reading, known + [f"{name}: no data" for name in absent if known])


def of_published(reading: Reading, cases: Sequence[Pair]) -> str:
    """The means under the published protocol; empty if it was not tested."""
    if reading.contrast is None or reading.contrast.as_published is None:
        return ""
    means = [_named(pair, " against ".join(_means(reading, pair))) for pair in cases]
    return _joined(reading, means)


def _joined(reading: Reading, parts: Sequence[str]) -> str:
    return f"{reading.quantity}: {'; '.join(parts)}" if parts else "–"


def _case(reading: Reading, pair: Pair, case: Case) -> str:
    """One case, by the contrast's sentence or by the common one."""
    first, *others = _sides(reading, pair.compared())
    if case.open or case.fact is not None:
        return case.open or first
    low, high = (significant_or_tiny(v) for v in (case.low, case.high))
    words = (pair.contrast.sentence or (TWO_SIDES if others else ONE_SIDE)).format(
        first=first,
        second="".join(others),
        effect=significant_or_tiny(case.effect),
        interval="" if math.isnan(case.low) else f" [{low}, {high}]",
        n=units(case.n, case.unit) + ", medians" * (reading.test == "median"),
    )
    if pair.contrast.best:
        names = ", ".join(pair.contrast.best.columns).replace("_", " ")
        words += f" at {names} {' against '.join(map(_settings, pair.chosen()))}"
    return words


def _named(pair: Pair, words: str) -> str:
    return f"{pair.name}: {words}" if pair.name else words


def _sides(reading: Reading, pair: Pair) -> list[str]:
    """The medians of the sides if the test is of medians, or else their means."""
    if reading.test != "median":
        return _means(reading, pair)
    values = (rows[VALUE].astype(float).median(skipna=False) for rows in pair.sides)
    return [significant_or_tiny(value) for value in values]


def _means(reading: Reading, pair: Pair) -> list[str]:
    """The means of the sides, geometric on a logarithmic scale; of a fact the worst value."""
    if reading.test == "fact":
        return [significant_or_tiny(pair.effect(reading))]
    means = pair.means()
    if reading.scale == "log":
        means = [exp(mean(map(log, rows[VALUE]))) for rows in pair.sides]
    return [significant_or_tiny(value) for value in means]


def _settings(counts: Mapping[str, int]) -> str:
    """The chosen settings, with the number of seeds if there is more than one."""
    return ", ".join(counts if len(counts) == 1 else (f"{s} ({n})" for s, n in counts.items()))
