"""What the figures of surrogate backward passes share."""

import pandas as pd

from normscope.pages import style
from normscope.studies.arms import count
from normscope.studies.jacobian.recipe import VARIED

CELL = (*VARIED, "learning_rate")
ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_outcomes(runs: pd.DataFrame) -> str:
    """n of a caption in which a run that diverged counts, at the loss of knowing nothing."""
    differing = [name for name in CELL if runs[name].nunique() > 1] or ["protocol"]
    n = count(runs, differing, "cells")
    return f"n: {n}. Diverged or no better than character frequencies: {int(runs['failed'].sum())}."
