"""Parameters of the jobs of a card. No torch."""

from typing import Annotated, NamedTuple

from normscope.nn.recipe import Init, Model, Norm, Placement
from normscope.schema import Distinct, NonEmpty, PositiveFloat, PositiveInt, Seed, Strict
from normscope.train.recipe import OnDevice


class Cell(NamedTuple):
    """A norm under a regime, whose models a job trains."""

    arm: str
    regime: str


class NormProbe(OnDevice):
    """What is measured of a norm: by itself, in untrained networks, and in its trained models.

    Args:
        windows: Windows of validation text.
        depths: Blocks of the untrained networks.
        inits: Their initializations.
        seeds: Their seeds.
    """

    norm: Norm
    placement: Placement
    windows: PositiveInt
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
    """What the tables of a card are made from.

    Args:
        jobs: The cell of every training job.
        probes: The arm of every probing job.
        reference: The arm that the others are compared with.
        sweep: The regime whose pilot models show how sensitive a norm is to the learning rate.
        eval_tokens: Tokens of the validation split on which losses are evaluated.
        level: Confidence level of the intervals.
    """

    jobs: dict[str, Cell]
    probes: dict[str, str]
    reference: str
    sweep: str
    eval_tokens: PositiveInt
    level: float
