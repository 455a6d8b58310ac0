"""Parameters of the main study's jobs that measure and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Run``.
"""

from normscope.schema import PositiveInt, Strict


class StreamProbe(Strict):
    """On how many windows of validation text the residual stream is measured."""

    windows: PositiveInt


class MainTables(Strict):
    """Names of all runs in order, and the arm-placement that the others are compared with."""

    runs: list[str]
    baseline: str
    level: float
