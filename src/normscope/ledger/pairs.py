"""The cases of a contrast: for each the rows of its two sides, and why it may not be asked.

The start of the workflow forms pairs of planned models without SciPy, which ``case`` imports.
"""

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from normscope.errors import Explained
from normscope.ledger.cells import (
    Row,
    Rows,
    best_of,
    common,
    diverged,
    greatest,
    grouped,
    partners,
    select,
)
from normscope.ledger.comparison import EVERY, GREATEST, Cells, Contrast, Need
from normscope.ledger.expression import holds, mean, measure
from normscope.ledger.vocabulary import Value, Vocabulary

Sides = list[Rows]


@dataclass(frozen=True)
class Pair:
    """The sides of a case; without a second one the first is compared with the bound alone.

    Args:
        name: of the case.
        where: what tells it from the other cases of its contrast: values by column.
        contrast: that it is of.
        sides: one or two, of rows that are one a seed.
        needed: for each need the rows of other cells that it is about, by their label.
        tried: rows of all sides before the best of them were chosen.
    """

    name: str
    where: Mapping[str, Value | None]
    contrast: Contrast
    sides: Sides
    needed: Sequence[Mapping[str, Rows]]
    tried: int

    @property
    def models(self) -> int:
        """Models that one more replicate would take."""
        replicates = {row[self.contrast.replicates] for rows in self.sides for row in rows}
        return round(self.tried / max(1, len(replicates)))

    def is_at(self, cells: Cells) -> bool:
        """Whether the case is that of these values."""
        return all(self.where.get(column) == value for column, value in cells.items())

    def why_open(self) -> str:
        """Why the case cannot be tested; empty if it can."""
        from normscope.ledger.case import SELECTION  # noqa: PLC0415

        every = [*self.sides, *(rows for sides in self.needed for rows in sides.values())]
        if not all(every):
            return "no data"
        if any(self._is_lost(row) for rows in every for row in rows):
            return SELECTION
        for need, others in zip(self.contrast.needs, self.needed, strict=True):
            if why := self._why_not_met(need, others):
                return why
        return ""

    def _is_lost(self, row: Row) -> bool:
        """Whether a model diverged, and that is not itself an outcome with a number."""
        return diverged(row) and math.isnan(measure(self.contrast.measure, row))

    def _why_not_met(self, need: Need, others: Mapping[str, Rows]) -> str:
        from normscope.ledger.case import too_few  # noqa: PLC0415

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
        """What is tested: of each seed that all sides have, where it is known.

        Args:
            infinite: whether infinity is a value, as on a logarithmic scale, which takes it.

        Raises:
            Explained: a seed has several rows, so that cells are not told apart.
        """
        sides = [self._by_replicate(rows) for rows in self.sides]
        if len(sides) == 1:
            return [
                v for v in sides[0].values() if math.isfinite(v) or (infinite and v == math.inf)
            ]
        one, other = sides
        both = [(one[key], other[key]) for key in one if key in other]
        return [self._combine(a, b) for a, b in both if math.isfinite(a) and math.isfinite(b)]

    def _by_replicate(self, rows: Rows) -> dict[Value, float]:
        by = self.contrast.replicates
        chosen: dict[Value, Row] = {}
        for row in rows:
            twin = chosen.setdefault(row[by], row)
            if twin is not row:
                keys = itertools.takewhile(lambda column: column != by, row)
                differ = ", ".join(column for column in keys if row[column] != twin[column])
                raise Explained(
                    f"{self.contrast.table}: {self.contrast.cells} are several rows of {by} "
                    f"{row[by]}, which differ in {differ or 'nothing that names a cell'}: say "
                    "which one in cells, or list the column in each"
                )
        return {key: measure(self.contrast.measure, row) for key, row in chosen.items()}

    def _combine(self, one: float, other: float) -> float:
        """The difference; or the ratio, 0 where the first is not positive (as of a saddle)."""
        if self.contrast.over is None:
            return one - other
        if one <= 0:
            return 0.0
        return one / other if other > 0 else sys.float_info.max

    def chosen(self) -> list[Mapping[str, int]]:
        """For each side the settings that are best for other replicates, and for how many."""
        columns = self.contrast.best.columns if self.contrast.best else []
        return [
            Counter(", ".join(str(row[column]) for column in columns) for row in rows)
            for rows in self.sides
        ]

    def means(self) -> list[float]:
        """The mean of each side; NaN where there is none."""
        return [mean([measure(self.contrast.measure, row) for row in rows]) for rows in self.sides]

    def effect_of_means(self) -> float:
        """The contrast of the means; NaN where one is."""
        means = self.means()
        return means[0] if len(means) == 1 else self._combine(*means)


def _all(checks: list[bool | None]) -> bool | None:
    """Whether all are true; None where one is not known and none is false."""
    if any(check is False for check in checks):
        return False
    return None if None in checks else True


def pairs(c: Contrast, rows: Rows, vocabulary: Vocabulary, changes: Cells) -> Iterator[Pair]:
    """The cases of a contrast, in the order of its lists and then of the table.

    Args:
        c: which cells are compared.
        rows: of its table.
        vocabulary: of the study that has the table.
        changes: to the contrast's cells.
    """
    cells = c.cells | changes
    first = _known(c, select(rows, cells, vocabulary))
    needed = [_cells_of_need(need, cells, rows, vocabulary) for need in c.needs]
    others = partners(cells, c.other, rows, vocabulary) if c.other is not None else [(None, None)]
    for differs, other in others:
        name = f"the pair with {vocabulary.label(*differs)}" if differs else ""
        partner = dict([differs]) if differs else {}
        sides = [first]
        if other is not None:
            sides.append(_known(c, select(rows, other, vocabulary)))
        for where, parts, tried in _split(c, sides):
            words = [vocabulary.label(column, value) for column, value in where.items()]
            yield Pair(_joined([name, *words]), {**partner, **where}, c, parts, needed, tried)


def _joined(words: list[str]) -> str:
    return ", ".join(word for word in words if word)


def _known(c: Contrast, rows: Rows) -> Rows:
    """The rows that have the measure, or whose model diverged."""
    return [row for row in rows if diverged(row) or not math.isnan(measure(c.measure, row))]


def _split(c: Contrast, sides: Sides) -> Iterator[tuple[dict[str, Any], Sides, int]]:
    """The sides for each value of the columns ``each``: these values, rows, and rows tried."""
    columns = [name for name in c.each if not (c.at and name == c.at.column)]
    groups = [grouped(rows, columns) for rows in sides]
    for key in groups[0]:
        if any(key not in group for group in groups):
            continue
        values = dict(zip(columns, key, strict=True))
        parts = [group[key] for group in groups]
        if c.at:
            values[c.at.column] = common(c.at, parts)
            parts = [_at(rows, c.at.column, values[c.at.column]) for rows in parts]
        for column, given in (c.other or {}).items():
            if given == GREATEST:
                parts[1] = greatest(parts[1], column, parts[0])
        tried = sum(map(len, parts))
        if c.best:
            parts = [best_of(rows, c.best, c.replicates) for rows in parts]
        if all(parts) or not values:
            order = [*c.each, *(name for name in values if name not in c.each)]
            yield {name: values[name] for name in order}, parts, tried


def _at(rows: Rows, column: str, value: Value | None) -> Rows:
    """The rows with a value; none for None."""
    return [row for row in rows if value is not None and row[column] == value]


def _cells_of_need(need: Need, cells: Cells, rows: Rows, vocabulary: Vocabulary) -> dict[str, Rows]:
    """The rows of the other cells that a need is about, each value by itself, by its label."""
    if not isinstance(need.where, dict):
        return {}
    chosen = select(rows, cells | need.where, vocabulary)

    def listed(column: str, given: Value | list[Value]) -> list[Value]:
        if given == EVERY:
            return list(dict.fromkeys(row[column] for row in chosen))
        return given if isinstance(given, list) else [given]

    values = [listed(column, given) for column, given in need.where.items()]
    sides = {}
    for key in itertools.product(*values):
        where = dict(zip(need.where, key, strict=True))
        label = " ".join(vocabulary.label(column, value) for column, value in where.items())
        sides[label] = select(rows, {**cells, **where}, vocabulary)
    return sides
