"""Every statement with a contrast can hold and can fail: tables that are made from its own words.

The models are those that config/paper.yaml plans, with twelve seeds; the measure is put beyond the
reading's bound on one side, and then on the other. It catches a contrast whose sides are empty or
the same, a bound that no value can reach, and a need that cannot be met.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import pytest
from normscope.verdicts.claim import TESTS, Evidence
from normscope.verdicts.contrast import find
from normscope.verdicts.reading import Reading
from scipy.optimize import brentq
from statements import CLAIMS, CONFIG

from normscope.verdicts.comparison import SEED, Contrast
from normscope.verdicts.expression import columns_in, holds, measure, span
from normscope.verdicts.vocabulary import Vocabulary, agree

VOCABULARIES = {name: study.vocabulary() for name, study in CONFIG.studies.items()}
READINGS = {
    f"{key}.{name}": reading
    for _, key, entry in CLAIMS
    for name, reading in entry.readings.items()
    if key not in TESTS and reading.contrast is not None and reading.test != "fact"
}
SEEDS = range(1, 13)
FAR, SPREAD = 0.5, 0.02  # beyond a margin and between seeds, as shares of it
VALUES = [0.0, *(sign * 10.0**e for e in range(-4, 5) for sign in (1, -1))]


def rows_of(c: Contrast, cells: Mapping[str, Any], vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """A planned model of each cell and setting, or any if none is planned, with all seeds."""
    apart = [*c.distinguished_by, *(c.best.columns if c.best else [])]
    some = {column: next(iter(vocabulary.values.get(column, [100]))) for column in apart}
    planned: dict[tuple, dict[str, Any]] = {}
    for i, cell in enumerate(vocabulary.cells(cells)):
        grid = vocabulary.grids.get(c.table.partition(".")[2], ())
        for row in [row for row in grid if agree(row, cell)] or [some]:
            planned.setdefault((i, *(row.get(column) for column in apart)), {**row, **cell})
    return [row | {SEED: seed} for row in planned.values() for seed in SEEDS]


def sides(c: Contrast) -> Iterator[Mapping[str, Any]]:
    """The cells of the first side, then those of the second, and then those of needs."""
    yield c.cells
    yield from [] if c.other is None else [c.cells | c.other]
    for need in c.needs:
        if isinstance(need.where, dict):
            yield c.cells | need.where


def solved(text: str, target: float, vocabulary: Vocabulary, known: dict[str, float]) -> dict:
    """Values of the columns of a measure at which it is the target."""
    columns = [name for name in columns_in(text) if name not in known]
    for column in columns:
        low, high = vocabulary.ranges.get(column, (-math.inf, math.inf))
        tried = sorted({min(max(v, low), high) for v in (*VALUES, low, high) if math.isfinite(v)})
        base = dict.fromkeys(columns, 0.5) | known

        def off(value: float, column: str = column, base: dict[str, float] = base) -> float:
            row = pd.DataFrame([base | {column: value}])
            return float(measure(text, row).iloc[0]) - target

        at = [(value, off(value)) for value in tried]
        for (a, one), (b, other) in itertools.pairwise(at):
            if one * other <= 0 and math.isfinite(one + other):
                return base | {column: a if one == 0 else b if other == 0 else brentq(off, a, b)}
    raise AssertionError(f"{text} is never {target}")


def targets(reading: Reading, vocabulary: Vocabulary, *, holding: bool) -> list[list[float]]:
    """For each side, the measure of three models in turn, by which the reading holds, or fails."""
    c = reading.contrast
    assert c is not None
    low, high = reading.margins
    is_log = reading.scale == "log"
    step = 2.0 if is_log else max(FAR * (high - low), FAR * abs(high), 0.02)
    above, below = (high * step, low / step) if is_log else (high + step, low - step)
    inside = math.sqrt(low * high) if is_log else (low + high) / 2
    if reading.direction == "within":
        center = inside if holding else above
        width = SPREAD * (math.log(high / low) if is_log else high - low)
    else:
        center = above if (reading.direction == "greater") is holding else below
        width = SPREAD * step
    spread = [center * math.exp(i * width) if is_log else center + i * width for i in (-1, 0, 1)]
    if c.other is None:
        least, most = span(c.measure, vocabulary.ranges)
        inner = (least + low) / 2 if min(spread) < least else (most + high) / 2
        return [spread if least <= min(spread) and max(spread) <= most else [inner] * 3]
    floor = 1.0 if is_log else 0.4 if c.measure in vocabulary.ranges else 2.0
    return [[q * floor if is_log else q + floor for q in spread], [floor] * 3]


def table_of(reading: Reading, *, holding: bool) -> tuple[str, str, pd.DataFrame]:
    """The study, the table's name, and rows by which a reading holds, or fails."""
    c = reading.contrast
    assert c is not None
    study, _, name = c.table.partition(".")
    vocabulary = VOCABULARIES[study]
    met = {column: needed(c, column) for need in c.needs for column in columns_in(need.check)}
    numbers = [
        [solved(c.measure, target, vocabulary, met) for target in of_side]
        for of_side in targets(reading, vocabulary, holding=holding)
    ]
    rows: dict[tuple, dict[str, Any]] = {}
    for i, cells in enumerate(sides(c)):
        for row in rows_of(c, cells, vocabulary):
            values = numbers[i][row[SEED] % 3] if i < len(numbers) else met
            whole = {"diverged": False, "diverged_at": math.nan, "failed": 0} | row | values
            rows.setdefault(tuple(sorted(map(str, row.items()))), whole)
    return (
        study,
        name,
        pd.DataFrame(list(rows.values())).reindex(columns=list(vocabulary.columns[name])),
    )


def needed(c: Contrast, column: str) -> float:
    """A value of a column with which all needs are met."""
    checks = [need.check for need in c.needs if column in columns_in(need.check)]
    for value in (1.0, 0.0, 0.5, -1.0, 10.0, -10.0, 100.0):
        if all(holds(check, pd.DataFrame([{column: value}])) for check in checks):
            return value
    raise AssertionError(checks)


ONE_SIDED = {"scaling_keeps_keys_selectable.inputs"}  # a share above 0 is never below it


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_can_hold_and_can_fail(name: str):
    reading = READINGS[name]
    for holding, answer in ((True, "holds"), (False, "fails")):
        study, table, rows = table_of(reading, holding=holding)
        found = find(reading, Evidence({study: {table: rows}}, CONFIG.studies, 0.95))
        is_open = not holding and name in ONE_SIDED
        assert found.answer == ("undecided: p is above 0.05" if is_open else answer)
