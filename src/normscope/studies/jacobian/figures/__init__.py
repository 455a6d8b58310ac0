"""What the figures of the norms' backward pass share."""

from collections.abc import Iterable

import pandas as pd

from normscope.pages import style
from normscope.studies.arms import count, divergences
from normscope.studies.jacobian.recipe import VARIED

CELL = (*VARIED, "learning_rate")
ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_sample(drawn: pd.DataFrame, runs: pd.DataFrame) -> str:
    """n of a caption, of the runs that are drawn; and which of all diverged."""
    n = count(drawn, _differing(drawn, VARIED), "cells") or "none"
    return f"n: {n}. {divergences(runs, _differing(runs, CELL))}"


def describe_outcomes(runs: pd.DataFrame) -> str:
    """n of a caption in which a run that diverged counts, at the loss of knowing nothing."""
    n = count(runs, _differing(runs, CELL), "cells")
    return f"n: {n}. Diverged or no better than character frequencies: {int(runs['failed'].sum())}."


def _differing(runs: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """The columns in which the cells of a figure differ."""
    return [name for name in columns if runs[name].nunique() > 1] or ["protocol"]
