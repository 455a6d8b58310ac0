"""Parameters of the literature study's jobs that measure and tabulate. No torch."""

from typing import Annotated

from pydantic import Field

from normscope.nn.recipe import Init, Model, Norm, Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Seed, Strict
from normscope.studies.cells import Cell, ModelTables
from normscope.train.recipe import OnDevice

STARTS = "starts"  # the probing job of untrained networks


class Untrained(Strict):
    """Networks of several depths at the start, and towers of attention alone."""

    depths: Annotated[list[PositiveInt], NonEmpty, Distinct] = Field(description="blocks")
    init: Init = Field(description="how the weights of the networks start")
    tower: PositiveInt = Field(description="layers of a tower of attention")
    n_head: PositiveInt
    n_embd: PositiveInt
    block_size: PositiveInt
    windows: PositiveInt = Field(description="windows of validation text")
    seeds: Annotated[list[Seed], NonEmpty, Distinct]

    def model(self, depth: int, *, causal: bool = True) -> Model:
        """The Transformer of a depth."""
        sizes = {key: getattr(self, key) for key in ("n_head", "n_embd", "block_size")}
        return Model(n_layer=depth, init=self.init, causal=causal, **sizes)


class Starts(Strict):
    """The untrained networks that a probing job measures, with their norms."""

    untrained: Untrained
    norms: dict[str, Norm] = Field(description="by arm")
    placements: list[Placement]
    towers: dict[str, Norm] = Field(description="of the towers, by arm")


class Probe(OnDevice):
    """What a probing job measures: the models of a training job, or untrained networks."""

    windows: PositiveInt
    refined: Annotated[int, Field(ge=0)] = 0  # further steps, with frozen norms and without
    starts: Starts | None = None


class LiteratureTables(ModelTables):
    """What the tables are made from; a probing job measures the models of the job of its name.

    Args:
        baseline_arm, baseline_placement: what others of a protocol are compared with.
    """

    jobs: dict[str, Cell]
    baseline_arm: str
    baseline_placement: Placement
