"""The cases of a contrast: for each, the two sides, merged on the seed."""

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from normscope.errors import Explained
from normscope.statistics.tuning import chosen
from normscope.verdicts.case import MIXTURE, SELECTION, too_few
from normscope.verdicts.comparison import SEED, At, Cells, Contrast, Need
from normscope.verdicts.expression import holds, mean, measure
from normscope.verdicts.reading import Reading
from normscope.verdicts.vocabulary import Value, Vocabulary

VALUE = "_value"  # the column with the measure of a contrast


@dataclass(frozen=True, eq=False)
class Pair:
    """The sides of one case. A single side is compared with the bound alone.

    Args:
        name: The name of the case.
        where: The values of columns that distinguish the case from the others of its contrast.
        contrast: Its contrast.
        sides: One or two tables with one row per seed.
        needed: For each need, the rows of the other cells that it names, by their label.
    """

    name: str
    where: Mapping[str, Value | None]
    contrast: Contrast
    sides: Sequence[pd.DataFrame]
    needed: Sequence[Mapping[str, pd.DataFrame]]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the models on any side; none if models do not have seeds."""
        seeded = [rows["seed"] for rows in self.sides if "seed" in rows]
        return tuple(sorted({int(seed) for seeds in seeded for seed in seeds.dropna()}))

    def why_open(self, *, of_mean: bool = False) -> str:
        """Why the case cannot be tested; empty if it can.

        Args:
            of_mean: Whether its mean is tested. The mean of models that train and of models that
                fail has no test that keeps its level with a few seeds.
        """
        every = [*self.sides, *(rows for sides in self.needed for rows in sides.values())]
        if any(rows.empty for rows in every):
            return "no data"
        if any((diverged(rows) & rows[VALUE].isna()).any() for rows in every):
            return SELECTION
        for need, others in zip(self.contrast.needs, self.needed, strict=True):
            if why := self._why_not_met(need, others):
                return why
        if of_mean and any("failed" in rows and rows["failed"].any() for rows in self.sides):
            return MIXTURE
        return ""

    def _why_not_met(self, need: Need, others: Mapping[str, pd.DataFrame]) -> str:
        if isinstance(need.where, dict):
            met = {f"{label} ": holds(need.check, rows) for label, rows in others.items()}
        else:
            checks = [holds(need.check, rows) for rows in self.sides]
            met = {"": any(checks) if need.where == "either" else _all(checks)}
        for label, is_met in met.items():
            if is_met is None:
                return too_few(len(self.sides[0])) or "no data"
            if not is_met:
                return f"undecided: {label}{need.why}"
        return ""

    def values(self, *, infinite: bool) -> list[float]:
        """The tested values: one per seed that all sides have, where it is known.

        Args:
            infinite: Whether infinity is a value, as on a logarithmic scale.

        Raises:
            Explained: A side has several rows of one seed, so that its cells are not distinct.
        """
        for side in self.sides:
            _require_distinct(self.contrast, side, [SEED])
        first, *others = self.sides
        if not others:
            values = first[VALUE]
            known = np.isfinite(values) | (infinite & (values == math.inf))
            return values[known].tolist()
        both = first.merge(others[0], on=SEED, suffixes=("", "_other"))
        both = both[np.isfinite(both[VALUE]) & np.isfinite(both[f"{VALUE}_other"])]
        return list(map(self._combine, both[VALUE], both[f"{VALUE}_other"]))

    def _combine(self, one: float, other: float) -> float:
        """The difference, or the ratio, which is 0 if the first value is not positive."""
        if self.contrast.over is None:
            return one - other
        if one <= 0:
            return 0.0
        return one / other if other > 0 else sys.float_info.max

    def compared(self) -> "Pair":
        """The case with the rows of those seeds alone that all sides have."""
        if len(self.sides) == 1:
            return self
        common = set.intersection(*(set(rows[SEED]) for rows in self.sides))
        return replace(self, sides=[rows[rows[SEED].isin(common)] for rows in self.sides])

    def chosen(self) -> list[Mapping[str, int]]:
        """For each side, the chosen settings, and for how many seeds."""
        columns = self.contrast.best.columns if self.contrast.best else []
        return [
            Counter(", ".join(map(str, row)) for row in rows[columns].itertuples(index=False))
            for rows in self.sides
        ]

    def means(self) -> list[float]:
        """The mean of each side; NaN if it has no value."""
        return [mean(rows[VALUE]) for rows in self.sides]

    def effect(self, reading: Reading) -> float:
        """The contrast of the means, or the worst value of a fact; NaN if it is unknown."""
        if reading.test == "fact":
            values = self.sides[0][VALUE]
            return float(values.max() if reading.direction == "less" else values.min())
        means = self.means()
        return means[0] if len(means) == 1 else self._combine(*means)


def _require_distinct(c: Contrast, rows: pd.DataFrame, columns: list[str]) -> None:
    """Refuse rows that have the same values of some columns.

    Raises:
        Explained: Two rows do; with the columns in which they differ.
    """
    group = rows.groupby(columns, sort=False, dropna=False).ngroup()
    if group.duplicated().any():
        first, second, *_ = rows[group == group[group.duplicated()].iloc[0]].to_dict("records")
        raise Explained(c.ambiguity(first, second))


def _all(checks: list[bool | None]) -> bool | None:
    """Whether all are true; None if one is unknown and none is false."""
    if any(check is False for check in checks):
        return False
    return None if None in checks else True


def pairs(
    c: Contrast, table: pd.DataFrame, vocabulary: Vocabulary, changes: Cells | None = None
) -> Iterator[Pair]:
    """The cases of a contrast, in the order of its lists and then of the table.

    Args:
        c: Which cells are compared.
        table: The contrast's table.
        vocabulary: The vocabulary of the table's study.
        changes: Changes to the contrast's cells.
    """
    rows = objects(table)
    rows[VALUE] = measure(c.measure, rows)
    known = rows[rows[VALUE].notna() | diverged(rows)]
    cells = c.cells | (changes or {})
    first = select(known, cells, vocabulary)
    needed = [_cells_of_need(need, cells, rows, vocabulary) for need in c.needs]
    others = [({}, None)] if c.other is None else _other_sides(cells, c.other)
    for differs, other in others:
        labels = [f"the pair with {vocabulary.label(*item)}" for item in differs.items()]
        sides = [first] if other is None else [first, select(known, other, vocabulary)]
        for where, parts in _split(c, sides):
            words = [vocabulary.label(column, value) for column, value in where.items()]
            name = ", ".join(filter(None, [*labels, *words]))
            yield Pair(name, {**differs, **where}, c, parts, needed)


def absent(c: Contrast, found: Sequence[Pair], vocabulary: Vocabulary) -> list[str]:
    """The names of cases without data, of the columns of ``each`` whose values are listed."""
    columns = [name for name in c.each if not (c.at and name == c.at.column)]
    listed = {name: values for name in columns if isinstance(values := c.cells.get(name), list)}
    known = {tuple(pair.where[name] for name in listed) for pair in found}
    return [
        ", ".join(map(vocabulary.label, listed, values))
        for values in itertools.product(*listed.values())
        if values not in known
    ]


def _split(
    c: Contrast, sides: Sequence[pd.DataFrame]
) -> Iterator[tuple[dict[str, Value | None], list[pd.DataFrame]]]:
    """For each value of the columns ``each``: these values, and the sides."""
    columns = [name for name in c.each if not (c.at and name == c.at.column)]
    groups = [_grouped(rows, columns) for rows in sides]
    for key in groups[0]:
        if any(key not in group for group in groups):
            continue
        values: dict[str, Value | None] = dict(zip(columns, key, strict=True))
        parts = [group[key] for group in groups]
        if c.at:
            picked = _common(c.at, parts)
            values[c.at.column] = picked
            parts = [rows[rows[c.at.column] == picked] for rows in parts]
        if c.best:
            parts = [_at_best(c, rows) for rows in parts]
        if not any(rows.empty for rows in parts) or not values:
            order = [*c.each, *(name for name in values if name not in c.each)]
            yield {name: values[name] for name in order}, parts


def _at_best(c: Contrast, rows: pd.DataFrame) -> pd.DataFrame:
    """For each seed, the row of the setting that was chosen (``statistics.tuning``)."""
    assert c.best is not None
    _require_distinct(c, rows, [SEED, *c.best.columns])
    return chosen(
        rows.assign(_by=measure(c.best.by, rows)),
        [],
        by="_by",
        setting=c.best.columns,
        seed=SEED,
    )


def _cells_of_need(
    need: Need, cells: Cells, rows: pd.DataFrame, vocabulary: Vocabulary
) -> dict[str, pd.DataFrame]:
    """The rows of the other cells that a need names, one value at a time, by their label."""
    if not isinstance(need.where, dict):
        return {}
    values = [given if isinstance(given, list) else [given] for given in need.where.values()]
    sides = {}
    for key in itertools.product(*values):
        where = dict(zip(need.where, key, strict=True))
        label = " ".join(vocabulary.label(column, value) for column, value in where.items())
        sides[label] = select(rows, {**cells, **where}, vocabulary)
    return sides


def objects(table: pd.DataFrame) -> pd.DataFrame:
    """The table with Python objects as cells, and NaN wherever a value is missing."""
    return table.astype(object).where(table.notna(), math.nan).reset_index(drop=True)


def diverged(rows: pd.DataFrame) -> pd.Series:
    """Which models diverged, by the column ``diverged`` or ``diverged_at`` (a step, or NaN)."""
    lost = pd.Series(False, index=rows.index)
    if "diverged" in rows:
        lost |= rows["diverged"].astype(bool)
    if "diverged_at" in rows:
        lost |= rows["diverged_at"].notna()
    return lost


def select(rows: pd.DataFrame, cells: Mapping[str, Any], vocabulary: Vocabulary) -> pd.DataFrame:
    """The rows of the cells, in the order of the cells."""
    parts = []
    for cell in vocabulary.cells(cells):
        is_in = pd.Series(True, index=rows.index)
        for column, value in cell.items():
            is_in &= rows[column] == value
        parts.append(rows[is_in])
    chosen = pd.concat(parts) if parts else rows.head(0)
    return chosen[~chosen.index.duplicated()]  # cells may overlap


def _other_sides(cells: Cells, changes: Cells) -> Iterator[tuple[dict[str, Value], Cells]]:
    """The cells of the second side: one for each value that ``changes`` lists, with that value."""
    for column, given in changes.items():
        if isinstance(given, list):
            for value in given:
                yield {column: value}, {**cells, **changes, column: value}
            return
    yield {}, {**cells, **changes}


def _grouped(rows: pd.DataFrame, columns: Sequence[str]) -> dict[tuple, pd.DataFrame]:
    """The rows by their values of some columns, in the order of the rows."""
    if not columns:
        return {(): rows}
    return dict(iter(rows.groupby(list(columns), sort=False, dropna=False)))


def _common(at: At, sides: Sequence[pd.DataFrame]) -> Value | None:
    """The value that ``at`` picks among those that all sides have; None if there is none."""
    values = set.intersection(*(set(side[at.column]) for side in sides))
    allowed = [v for v in values if at.at_least is None or v >= at.at_least]
    pick = max if at.pick == "greatest" else min
    return pick(allowed, default=None)
