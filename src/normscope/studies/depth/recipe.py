"""What one job of the depth grid trains: models of one shape, at several rates, warm-ups, seeds."""

from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from normscope.nn.recipe import Model, Norm, Placement
from normscope.schema import Distinct, Rate, Seed, Some, Strict
from normscope.train.recipe import Run, Training
from normscope.train.schedule import at_peak

WarmUp = Annotated[int, Field(ge=0, description="steps of linear warm-up")]


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
