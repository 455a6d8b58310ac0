"""Parameters of the jobs of a card. No torch."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from normscope.io.texts import TextName
from normscope.nn.recipe import Init, Model, Norm
from normscope.schema import Distinct, NonEmpty, PositiveFloat, PositiveInt, Seed, Strict
from normscope.train.recipe import OnDevice

REFERENCE = "layernorm"  # the arm that the others are compared with
SWEPT = "short"  # the regime of the learning-rate sweep, of the trained models that are measured
# of the validation split, a seventh: with all of it, evaluation would take a third of a training.
# Twice as many tokens lowered the standard deviation of differences over seeds by 1 to 7%
EVAL_TOKENS = 16_384


class Cell(NamedTuple):
    """A norm under a regime, whose models a job trains."""

    arm: str
    regime: str


class NormProbe(OnDevice):
    """What is measured of a norm: by itself, in untrained networks, and in its trained models.

    Args:
        windows: Windows of validation text.
        texts: What the models learned: each hundred of seeds has the next text.
        depths: Blocks of the untrained networks.
        inits: Their initializations.
        seeds: Their seeds.
    """

    norm: Norm
    windows: PositiveInt
    texts: Sequence[TextName]
    depths: list[PositiveInt]
    inits: list[Init]
    seeds: Annotated[list[Seed], NonEmpty, Distinct]


class Costs(OnDevice):
    """The norms whose speed is measured in turn, and the widths.

    Args:
        norms: By the name of the arm.
        model: The Transformer of which the norms' share of a training step is measured.
        batch_size: Windows of its batches.
        learning_rate: Of its training.
        widths: Numbers of channels.
        rounds: How often each norm has its turn.
        compiles: Whether compiled norms are measured too, where a compiler is installed.
    """

    norms: dict[str, Norm]
    model: Model
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    widths: list[PositiveInt]
    rounds: PositiveInt
    compiles: bool


class CardTables(Strict):
    """What the tables of a card are made from; the texts are by regime."""

    jobs: dict[str, Cell]
    texts: dict[str, Sequence[TextName]]
    level: float
