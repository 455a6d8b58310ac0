"""Parameters of the main study's jobs that measure and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from pydantic import Field

from normscope.schema import PositiveInt, Strict
from normscope.studies.cells import Cell
from normscope.studies.pilot import Tuned
from normscope.train.recipe import OnDevice


class StreamProbe(OnDevice):
    """On how many windows of validation text the residual stream is measured."""

    windows: PositiveInt


class MainTables(Strict):
    """The cell of every training job, in order, and what is made of their models.

    Args:
        jobs: the cell of every training job.
        pilot: what the pilot models say of the cells, by job.
        probed: those whose residual stream is measured.
        baseline: the cell that is held against published numbers; its arm and placement are what
            the others of a protocol are compared with.
        batch_sizes: by protocol, of protocols that differ in nothing else.
        texts: name of the text, by protocol.
        eval_tokens: of the validation split, from its start, over which losses are, by protocol;
            None is all.
    """

    jobs: dict[str, Cell]
    pilot: dict[str, Tuned] = Field(default={})
    probed: list[str]
    baseline: Cell
    batch_sizes: list[dict[str, int]]
    texts: dict[str, str]
    eval_tokens: dict[str, int | None]
    level: float
