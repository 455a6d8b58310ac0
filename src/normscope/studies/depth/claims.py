"""The tutorial's statement on sensitivity, which is about the largest of several means."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from normscope.errors import Explained
from normscope.verdicts.case import Case
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.contrast import find
from normscope.verdicts.pairs import select
from normscope.verdicts.reading import Reading

RATE = "learning_rate"


@claim("pre_less_sensitive")
def compare_sensitivities(reading: Reading, evidence: Evidence) -> Finding:
    """Whether the first side of the contrast is more sensitive to the learning rate.

    The sensitivity of a side is the largest advantage of one of its rates: the mean loss over rates
    minus that at this rate. The largest of observed means would be the larger, the noisier they
    are. No rate is therefore chosen. The first side is more sensitive if one of its rates has a
    larger advantage than each rate of the second; the p-value is the largest over the rates of the
    second side (Berger 1982) and then the smallest over those of the first, times their number. The
    opposite is tested in the same way.
    """
    c = reading.contrast
    if c is None or c.less is None or len(c.less) > 1 or not c.less.keys() <= c.cells.keys():
        raise Explained("its contrast compares two sides: name both, in cells and in less")
    ((column, second),) = c.less.items()
    values: list[Any] = [c.cells[column], second]
    table = evidence.table(c.table)
    vocabulary = evidence.studies[c.table.partition(".")[0]].vocabulary()
    sides = [c.cells, c.cells | c.less]
    rates = [select(table, cells, vocabulary)[RATE].unique() for cells in sides]
    findings = {
        pair: find(
            reading,
            evidence,
            table[table[RATE] == table[column].map(dict(zip(values, pair, strict=True)))],
        )
        for pair in itertools.product(*rates)
    }
    if not findings:
        return find(reading, evidence)
    names = next(iter(findings.values())).cases
    cases, best = {}, next(iter(findings))
    for name in names:
        pairs = {pair: finding.cases[name] for pair, finding in findings.items()}
        cases[name], best = _largest(pairs)
    return replace(findings[best], cases=cases)


Pairs = Mapping[tuple[float, float], Case]


def _largest(cases: Pairs) -> tuple[Case, tuple[float, float]]:
    """The test of the largest, and the pair of rates with the largest advantage of each side."""
    rows = [list(group) for _, group in itertools.groupby(cases, key=lambda pair: pair[0])]
    columns = list(zip(*rows, strict=True))
    for pair, case in cases.items():
        if math.isnan(case.p_holds):
            return case, pair
    effect = {pair: case.effect for pair, case in cases.items()}
    best = max((min(row, key=effect.__getitem__) for row in rows), key=effect.__getitem__)
    unknown = dict.fromkeys(("low", "high", "spread"), math.nan)
    largest = replace(
        cases[best],
        p_holds=_of_one_and_all(rows, lambda pair: cases[pair].p_holds),
        p_fails=_of_one_and_all(columns, lambda pair: cases[pair].p_fails),
        p_beyond=_of_one_and_all(rows, lambda pair: cases[pair].p_beyond),
        smallest=len(rows) * cases[best].smallest,
        **unknown,
    )
    return largest, best


def _of_one_and_all(
    groups: Sequence[Sequence[tuple[float, float]]], p: Callable[[tuple[float, float]], float]
) -> float:
    """The p-value that all of one group are true, for any group."""
    return min(1.0, len(groups) * min(max(map(p, group)) for group in groups))
