"""What the figures of the norms' backward pass share."""

from collections.abc import Collection, Iterable

import pandas as pd

from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.studies.jacobian.tables import VARIED

ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_sample(runs: pd.DataFrame) -> str:
    """n of a caption, and what diverged."""
    by = [*VARIED, "learning_rate"]
    return f"n: {count(runs, by, 'cells')}. {divergences(runs, by)}"


def in_order(values: Collection[str], order: Iterable[str]) -> list[str]:
    """Distinct values in a given order."""
    return [value for value in order if value in set(values)]
