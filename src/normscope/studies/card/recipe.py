"""Parameters of the jobs of a card. No torch."""

from typing import Annotated, NamedTuple

from normscope.nn.recipe import Init, Model, Norm, Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Rate, Seed, Strict
from normscope.train.recipe import OnDevice, Seeds, Stack, Training
from normscope.train.schedule import at_schedule

PILOT = "pilot.csv"  # of a training job: the losses of its pilot models
FILES = ("models.safetensors", "config.json", "curves.csv", "metrics.csv", PILOT)  # of a job


class Cell(NamedTuple):
    """A norm under a regime, whose models a job trains."""

    arm: str
    regime: str


class Sweep(Seeds):
    """The models of a norm under a regime: pilot models at every rate, then seeds at the best one.

    Args:
        learning_rates: In ascending order.
        pilot_seeds: Seeds that choose the learning rate, and are in no comparison.
    """

    norm: Norm
    placement: Placement
    model: Model
    training: Training
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct]
    pilot_seeds: Annotated[list[Seed], NonEmpty, Distinct]

    def at(self, learning_rate: float, seeds: list[int]) -> Stack:
        """The models with these seeds at a learning rate."""
        return Stack(
            device=self.device,
            seeds=seeds,
            norm=self.norm,
            placement=self.placement,
            model=self.model,
            training=at_schedule(self.training, learning_rate, self.training.warmup_steps),
        )


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


class Costs(Strict):
    """The norms whose speed is measured in turn, and the widths.

    Args:
        norms: By the name of the arm.
        widths: Numbers of channels.
        rounds: How often each norm has its turn.
        compiles: Whether compiled norms are measured too, where a compiler is installed.
    """

    norms: dict[str, Norm]
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
