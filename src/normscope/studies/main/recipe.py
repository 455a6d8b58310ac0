"""Parameters of the main study's jobs that measure and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from typing import NamedTuple

from normscope.nn.recipe import Placement
from normscope.schema import PositiveInt, Strict
from normscope.train.recipe import OnDevice


class Cell(NamedTuple):
    """What has one model a seed."""

    arm: str
    placement: Placement

    def __str__(self) -> str:
        """``layernorm-pre``, the beginning of the names of its files."""
        return f"{self.arm}-{self.placement}"


class StreamProbe(OnDevice):
    """On how many windows of validation text the residual stream is measured."""

    windows: PositiveInt


class MainTables(Strict):
    """The cell of every training job, in order, and the cell that the others are compared with."""

    jobs: dict[str, Cell]
    baseline: Cell
    level: float
