"""Parameters of the jobs that probe norms and make tables. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from typing import NamedTuple

from normscope.nn.recipe import Attention, Feedback, NormBackward, SurrogatesIn
from normscope.schema import PositiveInt, rate_name
from normscope.studies.cells import ModelTables
from normscope.train.recipe import OnDevice


class Cell(NamedTuple):
    """All that varies between models, except the seed."""

    protocol: str
    arm: str
    attention: Attention
    feedback: Feedback
    norm_backward: NormBackward
    surrogates_in: SurrogatesIn
    radial_share: float
    sigma_penalty: float
    learning_rate: float

    def __str__(self) -> str:
        """``published-layernorm-softmax-fa-exact-all-1.0-0.0-0.001``, the start of file names."""
        return "-".join(rate_name(x) if isinstance(x, float) else str(x) for x in self)


# columns within which surrogates are compared; columns of a cell without the learning rate
SETTING = ("protocol", "arm", "attention", "feedback", "sigma_penalty")
VARIED = (*SETTING, "norm_backward", "surrogates_in", "radial_share")


class JacobianProbe(OnDevice):
    """The number of windows of text on which the models of a job are probed."""

    windows: PositiveInt


class JacobianTables(ModelTables):
    """What the tables are made from, and the jobs whose models were probed."""

    jobs: dict[str, Cell]
    probed: list[str]
