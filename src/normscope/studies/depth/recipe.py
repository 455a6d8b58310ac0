"""Parameters of the depth study's jobs: what is trained, probed and tabulated. No torch."""

from typing import Annotated, NamedTuple

from pydantic import Field

from normscope.nn.recipe import Init, Model, Norm, Placement
from normscope.schema import PositiveInt, Rate, Seed, Strict, rate_name
from normscope.studies.pilot import PilotChoice
from normscope.train.recipe import OnDevice

TOKENS = 8  # of the first window, over which the Jacobian of a block is taken
WarmUp = Annotated[int, Field(ge=0, lt=2**63, description="steps of linear warm-up")]


class Shape(NamedTuple):
    """What models of several seeds share."""

    arm: str
    placement: Placement
    residual: bool
    init: Init
    depth: int

    def __str__(self) -> str:
        """``layernorm-pre-residual-gpt2-24``, the name of its files."""
        kind = "residual" if self.residual else "plain"
        return f"{self.arm}-{self.placement}-{kind}-{self.init}-{self.depth}"


class Sizes(Strict):
    """The Transformer but for its depth; all else is nanoGPT's."""

    n_head: PositiveInt
    n_embd: PositiveInt
    block_size: PositiveInt

    def model(self, shape: Shape) -> Model:
        """The Transformer of a shape."""
        return Model(
            n_layer=shape.depth, residual=shape.residual, init=shape.init, **self.model_dump()
        )


class Schedule(Strict):
    """A learning rate and a warm-up."""

    learning_rate: Rate
    warmup_steps: WarmUp

    def __str__(self) -> str:
        return f"learning rate {self.learning_rate:g} with {self.warmup_steps} steps of warm-up"


class Cell(NamedTuple):
    """A shape and a learning-rate schedule, with one trained model per seed."""

    arm: str
    placement: Placement
    residual: bool
    init: Init
    depth: int
    learning_rate: float
    warmup_steps: int
    steps: int  # after the warm-up; in a run always the same for a shape

    @property
    def shape(self) -> Shape:
        return Shape(*self[:-3])

    @property
    def schedule(self) -> Schedule:
        return Schedule(learning_rate=self.learning_rate, warmup_steps=self.warmup_steps)

    def __str__(self) -> str:
        """``layernorm-pre-residual-gpt2-24-0.001-40-600``, the beginning of its files' names."""
        return f"{self.shape}-{rate_name(self.learning_rate)}-{self.warmup_steps}-{self.steps}"


class Probe(Strict):
    """Models of one shape to be probed: at the start, and after training where they are trained."""

    shape: Shape
    norm: Norm
    seeds: list[Seed]
    trained: list[str] = Field(description="names of the jobs that trained them")


class Place(OnDevice):
    """All models of one placement, which one job probes."""

    sizes: Sizes
    probes: list[Probe]
    windows: PositiveInt
    spectra: PositiveInt


class DepthTables(Strict):
    """What the tables are made from.

    Args:
        places: the placements that were probed.
        jobs: the cell of every training job.
        pilot: what the pilot models say of the cells, by job.
        eval_tokens: of the validation split, from its start, over which losses are; None is all.
        level: confidence level.
    """

    places: list[str]
    jobs: dict[str, Cell]
    pilot: dict[str, PilotChoice] = Field(default={})
    eval_tokens: PositiveInt | None
    level: float
