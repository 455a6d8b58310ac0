"""What the figures of the norms' backward pass share."""

from collections.abc import Collection, Iterable

import pandas as pd

from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.studies.jacobian.recipe import VARIED

ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_sample(runs: pd.DataFrame) -> str:
    """n of a caption, and what diverged."""
    by = [*VARIED, "learning_rate"]
    return f"n: {count(runs, by, 'cells')}. {divergences(runs, by)}"


def describe_outcomes(runs: pd.DataFrame) -> str:
    """n of a caption in which a run that diverged counts, at the loss of knowing nothing."""
    n = f"n: {count(runs, [*VARIED, 'learning_rate'], 'cells')}."
    return f"{n} Diverged or no better than character frequencies: {int(runs['failed'].sum())}."


def in_order(values: Collection[str], order: Iterable[str]) -> list[str]:
    """Distinct values in a given order."""
    return [value for value in order if value in set(values)]
