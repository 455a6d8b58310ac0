"""Main effects and two-way interactions of a crossed design, seed by seed.

A seed is a block: all its cells start from the same weights and see the same data. In each block a
contrast is one number, a mean of differences between cells; over blocks it has an interval
(Box, Hunter & Hunter 2005, chapter 5; here a factor may have more than two levels).
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.statistics.estimate import estimate

Levels = Sequence[str]


@dataclass(frozen=True)
class Contrast:
    """What is compared: for each factor in it, a level against the factor's first one."""

    levels: Mapping[str, tuple[str, str]]  # factor: (level, first level)

    @property
    def kind(self) -> str:
        return "main effect" if len(self.levels) == 1 else "interaction"

    def __str__(self) -> str:
        return " x ".join(f"{f}: {level} − {first}" for f, (level, first) in self.levels.items())

    def values(self, blocks: pd.DataFrame) -> list[float]:
        """The contrast in each block, a mean over the levels of the factors that are not in it.

        Main effect: level minus first. Interaction of two: how much one's difference changes when
        the other goes from its first level to the level, ``(y11 - y01) - (y10 - y00)``.

        Args:
            blocks: responses, one row per block and one column per cell.
        """
        weight = np.ones(blocks.shape[1])
        for factor, (level, first) in self.levels.items():
            at = blocks.columns.get_level_values(factor)
            weight *= np.select([at == level, at == first], [1.0, -1.0], 0.0)
        used = np.count_nonzero(weight) / 2 ** len(self.levels)
        return [float((weight * cells).sum() / used) for cells in blocks.to_numpy()]


def contrasts(factors: Mapping[str, Levels]) -> Iterator[Contrast]:
    """Every main effect, then every two-way interaction."""
    steps = {f: [(level, levels[0]) for level in levels[1:]] for f, levels in factors.items()}
    for f, pairs in steps.items():
        yield from (Contrast({f: pair}) for pair in pairs)
    for f, g in itertools.combinations(steps, 2):
        yield from (Contrast({f: p, g: q}) for p, q in itertools.product(steps[f], steps[g]))


def missing_cells(cells: pd.DataFrame, factors: Mapping[str, Levels]) -> list[tuple[str, ...]]:
    """Combinations of levels that no row has; none where there is nothing to combine."""
    if not factors:
        return []
    present = set(cells[list(factors)].itertuples(index=False, name=None))
    return [cell for cell in itertools.product(*factors.values()) if cell not in present]


def effects(
    runs: pd.DataFrame, factors: Mapping[str, Levels], response: str, level: float
) -> pd.DataFrame:
    """One row per contrast: mean over seeds, confidence interval and joint confidence interval.

    Args:
        runs: one row per trained model, with a column per factor, ``seed`` and the response.
        factors: the levels that are crossed; the others are compared with the first.
        response: column to analyse. Several models of one cell and seed count as their mean; a
            seed with a cell that is missing or not finite is left out.
        level: confidence level of each interval; the joint ones are Bonferroni's.

    Returns:
        Columns contrast, kind, n (seeds), effect, low, high, joint_low, joint_high, alpha (what
        Bonferroni leaves to one contrast); no row without a complete seed.
    """
    columns = "contrast kind n effect low high joint_low joint_high alpha".split()
    compared = list(contrasts(factors))
    if not compared:
        return pd.DataFrame(columns=columns)
    crossed = runs[runs[list(factors)].isin(factors).all(axis=1)]
    if missing_cells(crossed, factors):
        return pd.DataFrame(columns=columns)
    blocks = crossed.pivot_table(response, "seed", list(factors), dropna=False)
    blocks = blocks.replace([math.inf, -math.inf], math.nan).dropna()
    if blocks.empty:
        return pd.DataFrame(columns=columns)
    alpha = (1 - level) / len(compared)
    rows = []
    for contrast in compared:
        values = contrast.values(blocks)
        e, joint = estimate(values, level), estimate(values, 1 - alpha)
        rows.append(
            [str(contrast), contrast.kind, e.n, e.mean, e.low, e.high, joint.low, joint.high, alpha]
        )
    return pd.DataFrame(rows, columns=columns)
