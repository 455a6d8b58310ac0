"""Parameters of the main study's jobs that measure and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from normscope.schema import PositiveInt
from normscope.studies.cells import Cell, ModelTables
from normscope.train.recipe import OnDevice


class StreamProbe(OnDevice):
    """On how many windows of validation text the residual stream is measured."""

    windows: PositiveInt


class MainTables(ModelTables):
    """What the tables are made from.

    Args:
        probed: the jobs whose models' residual stream is measured.
        baseline: the cell that is held against published numbers; its arm and placement are what
            the others of a protocol are compared with.
        batch_sizes: by protocol, of protocols that differ in nothing else.
    """

    jobs: dict[str, Cell]
    probed: list[str]
    baseline: Cell
    batch_sizes: list[dict[str, int]]
