"""Parameters of the jobs that take norms apart and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from typing import NamedTuple

from normscope.nn.recipe import Attention, Feedback, NormBackward, SurrogatesIn
from normscope.schema import PositiveInt, Strict, rate_name
from normscope.train.recipe import OnDevice


class Cell(NamedTuple):
    """What has one model a seed."""

    protocol: str
    arm: str
    attention: Attention
    feedback: Feedback
    norm_backward: NormBackward
    surrogates_in: SurrogatesIn
    learning_rate: float

    def __str__(self) -> str:
        """``published-layernorm-softmax-fa-exact-all-0.001``, the beginning of its files' names."""
        return "-".join([*self[:-1], rate_name(self.learning_rate)])


class JacobianProbe(OnDevice):
    """On how many windows of text the models of a job are taken apart."""

    windows: PositiveInt


class JacobianTables(Strict):
    """The cell of every training job, in order.

    ``margin_sds`` standard deviations of the exact models' losses count as no cost.
    """

    jobs: dict[str, Cell]
    level: float
    margin_sds: float
