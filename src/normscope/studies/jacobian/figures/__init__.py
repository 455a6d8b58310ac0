"""What the figures of surrogate backward passes share."""

import pandas as pd

from normscope.pages import style

ATTENTION = {"softmax": style.COLORS[1], "sigmoid": style.COLORS[2]}
FEEDBACK = {"fa": "feedback alignment", "dfa": "direct FA", "backprop": "backpropagation"}


def describe_outcomes(costs: pd.DataFrame) -> str:
    """How many models or their exact twins failed, for a caption."""
    return f"Diverged or no better than character frequencies: {int(costs['failed'].sum())}."
