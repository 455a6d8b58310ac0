"""Parameters of the depth study's jobs: what is trained, probed and tabulated. No torch."""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from normscope.nn.recipe import Init, Model, Norm, Placement
from normscope.schema import Distinct, PositiveInt, Rate, Seed, Some, Strict
from normscope.train.recipe import Run, Training
from normscope.train.schedule import at_peak

WarmUp = Annotated[int, Field(ge=0, description="steps of linear warm-up")]


RESIDUAL = {True: "residual", False: "plain"}  # words of names: with and without connections


# how weights start: gpt2_flat is gpt2 without the shrinking of the branches' last matrices with
# depth, which is meant for residual connections; it is probed at the start alone
Start = Literal["gpt2", "gpt2_flat", "xavier"]


class Shape(NamedTuple):
    """What models of several seeds share."""

    arm: str
    placement: Placement
    residual: bool
    init: Start
    depth: int

    def __str__(self) -> str:
        """``layernorm-pre-residual-gpt2-24``, the name of its files and macros."""
        kind = RESIDUAL[self.residual]
        return f"{self.arm}-{self.placement}-{kind}-{self.init}-{self.depth}"


class Sizes(Strict):
    """The Transformer but for its depth; all else is nanoGPT's."""

    n_head: PositiveInt
    n_embd: PositiveInt
    block_size: PositiveInt

    def model(self, depth: int, residual: bool, start: Start) -> Model:
        """The Transformer of a depth; its weights start as gpt2 for ``gpt2_flat`` too."""
        init: Init = "xavier" if start == "xavier" else "gpt2"
        return Model(n_layer=depth, residual=residual, init=init, **self.model_dump())


class Schedule(NamedTuple):
    """What the models of a job differ in, beside their seeds."""

    learning_rate: float
    warmup_steps: int


class Kept(Strict):
    """The schedule whose models are kept, to be probed block by block."""

    learning_rate: Rate
    warmup_steps: WarmUp


class EnsembleRecipe(Strict):
    """Models of one shape, trained at once: every schedule with every seed."""

    norm: Norm
    placement: Placement
    model: Model
    training: Training = Field(description="its learning rate and warm-up are those of schedules")
    learning_rates: Annotated[list[Rate], Some, Distinct]
    warmup_steps: Annotated[list[WarmUp], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]
    kept: Kept

    @model_validator(mode="after")
    def keeps_some(self) -> Self:
        if Schedule(self.kept.learning_rate, self.kept.warmup_steps) not in self.schedules():
            raise ValueError(
                f"no models at learning rate {self.kept.learning_rate:g} with "
                f"{self.kept.warmup_steps} steps of warm-up, which are to be kept: add both"
            )
        if self.model.dropout or self.training.precision != "fp32":
            raise ValueError("models of the depth grid are trained in fp32, without dropout")
        self.runs()
        return self

    def schedules(self) -> list[Schedule]:
        return [Schedule(r, w) for r in self.learning_rates for w in self.warmup_steps]

    def runs(self) -> dict[tuple[Schedule, int], Run]:
        """Every model, by its schedule and seed."""
        fixed = {"norm": self.norm, "placement": self.placement, "model": self.model}
        runs = {}
        for schedule in self.schedules():
            at = at_peak(self.training, schedule.learning_rate).model_dump()
            at["warmup_steps"] = schedule.warmup_steps
            for seed in self.seeds:
                runs[schedule, seed] = Run(**fixed, seed=seed, training=Training(**at))
        return runs


class Probe(Strict):
    """Models of one shape to be probed: at the start, and after training where they are trained."""

    arm: str
    norm: Norm
    residual: bool
    init: Start
    depth: PositiveInt
    seeds: list[Seed]
    trained: list[Seed]


class Place(Strict):
    """All models of one placement, which one job probes."""

    placement: Placement
    sizes: Sizes
    probes: list[Probe]
    windows: PositiveInt
    spectra: PositiveInt


class DepthTables(Strict):
    """The placements that were probed, the shapes that were trained, and on what losses were taken.

    ``eval_tokens``: of the validation split, from its begin; None is all of it.
    """

    places: list[Placement]
    shapes: list[Shape]
    eval_tokens: PositiveInt | None
    level: float
