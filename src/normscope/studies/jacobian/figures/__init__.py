"""What the figures of the norms' backward pass share."""

from collections.abc import Collection, Iterable

import pandas as pd

from normscope.pages import style
from normscope.studies.arms import count, divergences
from normscope.studies.jacobian.recipe import VARIED

ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_sample(drawn: pd.DataFrame, runs: pd.DataFrame) -> str:
    """n of a caption, of the runs that are drawn; and which of all diverged."""
    n = count(drawn, _telling(drawn, VARIED), "cells") or "none"
    return f"n: {n}. {divergences(runs, _telling(runs, [*VARIED, 'learning_rate']))}"


def describe_outcomes(runs: pd.DataFrame) -> str:
    """n of a caption in which a run that diverged counts, at the loss of knowing nothing."""
    n = f"n: {count(runs, _telling(runs, [*VARIED, 'learning_rate']), 'cells')}."
    return f"{n} Diverged or no better than character frequencies: {int(runs['failed'].sum())}."


def _telling(runs: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Which of these columns tell the cells of a figure apart."""
    return [name for name in columns if runs[name].nunique() > 1] or ["protocol"]


def in_order(values: Collection[str], order: Iterable[str]) -> list[str]:
    """Distinct values in a given order."""
    return [value for value in order if value in set(values)]
