"""Parameters of the jobs that probe norms and make tables. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

from typing import NamedTuple

from pydantic import Field

from normscope.nn.recipe import Attention, Feedback, NormBackward, SurrogatesIn
from normscope.schema import PositiveInt, Strict, rate_name
from normscope.studies.pilot import Tuned
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


class JacobianTables(Strict):
    """The cell of every training job, which of them were probed, and by protocol the text.

    ``eval_tokens`` is the number of its first validation tokens over which losses are; None is all.
    """

    jobs: dict[str, Cell]
    pilot: dict[str, Tuned] = Field(default={})
    probed: list[str]
    texts: dict[str, str]
    eval_tokens: dict[str, int | None]
    level: float
