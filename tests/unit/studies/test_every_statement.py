"""Every comparison can come out as claimed and the opposite, on tables made from its own words.

The measure is put beyond what is expected on one side, and then on the other, for 24 seeds of the
models that each side names. It catches sides that are empty or the same, an expectation that no
value meets or misses, and a measure without the columns that it needs.
"""

import itertools
import math
from typing import Any

import pandas as pd
import pytest
from scipy.optimize import brentq
from statements import CLAIMS, CONFIG

from normscope.columns import Table
from normscope.verdicts import expression
from normscope.verdicts.comparison import Comparison, sides
from normscope.verdicts.sample import is_log, sample
from normscope.verdicts.test import result

COMPARISONS = {
    f"{key}{f'.{name}' if name else ''}": comparison
    for _, key, statement in CLAIMS
    for name, comparison in statement.comparisons.items()
}
SEEDS = range(24)
TRIED = [-100.0, -10.0, -1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 0.5, 0.9, 1.0, 1.5, 3.0, 10.0, 100.0]
# a share or a square is never below 0
ONE_SIDED = {"scaling_keeps_keys_selectable"}


def inverse(of: str, table: Table, target: float) -> dict[str, float]:
    """Values of the columns of a measure at which it has a value, within their ranges."""
    columns = expression.columns_in(of)
    for column, base in itertools.product(columns, (0.5, 1.0)):
        low, high = table[column].range or (-math.inf, math.inf)
        row = dict.fromkeys(columns, base)

        def off(value: float, row: dict = row, column: str = column) -> float:
            frame = pd.DataFrame([row | {column: value}])
            return float(expression.values(of, frame).iloc[0]) - target

        tried = sorted({min(max(value, low), high) for value in TRIED} - {math.inf, -math.inf})
        for a, b in itertools.pairwise(tried):
            if math.isfinite(off(a) + off(b)) and off(a) * off(b) <= 0:
                return row | {column: brentq(off, a, b) if off(a) * off(b) < 0 else a}
    raise AssertionError(f"{of} is never {target}")


def targets(comparison: Comparison, table: Table, *, claimed: bool) -> tuple[float, float]:
    """The least and the greatest value of the quantity, within what is expected or beyond it."""
    log = is_log(comparison, table)
    low, high = comparison.expected.bounds(is_ratio=log)
    if log:
        far = (high * 2, high * 3) if math.isfinite(high) else (low / 3, low / 2)
        if not claimed:
            return far
        if math.isfinite(low) and math.isfinite(high):
            middle = math.sqrt(low * high)
            return middle / (high / low) ** 0.02, middle * (high / low) ** 0.02
        return (high / 3, high / 2) if math.isfinite(high) else (low * 2, low * 3)
    if math.isfinite(low) and math.isfinite(high):
        middle, width = (low + high) / 2, (high - low) / 50
        return (middle - width, middle + width) if claimed else (high + width, high + 2 * width)
    end, sign = (high, -1) if math.isfinite(high) else (low, 1)
    step = 0.1 * (abs(end) or 0.2) * sign * (1 if claimed else -1)
    near, far = end + step / 2, end + step
    return min(near, far), max(near, far)


def rows(comparison: Comparison, table: Table, *, claimed: bool) -> pd.DataFrame:
    """24 seeds of the models of each side."""
    vocabulary = CONFIG.studies[comparison.measured.study].vocabulary()
    words, operator = sides(comparison.compare)
    least, most = targets(comparison, table, claimed=claimed)
    parts: list[dict[str, Any]] = []
    floor = 0.4 if operator != "/" else 1.0
    for i, side in enumerate(words):
        cell = {**comparison.models, **vocabulary.side(side, table)}
        one = vocabulary.cells({k: v[:1] if isinstance(v, list) else v for k, v in cell.items()})[0]
        for seed in SEEDS:
            quantity = least + (most - least) * seed / len(SEEDS)
            if len(words) == 1:
                value = quantity
            else:
                value = floor if i else quantity * floor if operator == "/" else floor + quantity
            solved = inverse(comparison.measured.of, table, value)
            parts.append({"model": str(seed), **one, "seed": seed, **solved})
    frame = pd.DataFrame(parts).reindex(columns=table.names)
    fine = {"accuracy": 1.0, "failed": 0, "diverged": False}
    return frame.assign(
        **{
            name: frame[name].astype(object).where(frame[name].notna(), value)
            for name, value in fine.items()
            if name in frame
        }
    )


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_can_come_out_as_claimed_and_opposite(name: str):
    comparison = COMPARISONS[name]
    study, _, table_name = comparison.measured.table.partition(".")
    table = CONFIG.studies[study].TABLES[table_name]
    of = [table[column] for column in expression.columns_in(comparison.measured.of)]
    is_count = all(column.role == "count" for column in of)
    for claimed in (True, False):
        if not claimed and name in ONE_SIDED:
            continue
        made = rows(comparison, table, claimed=claimed)
        given = sample(comparison, made, table, CONFIG.studies[study].vocabulary())
        found = result(comparison, given, is_count=is_count, level=0.95)
        assert found.outcome == ("as claimed" if claimed else "opposite"), (found, given.values[:5])
