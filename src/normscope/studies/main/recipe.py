"""Parameters of the main study's jobs that measure and tabulate. No torch.

What is trained is a ``normscope.train.recipe.Stack``.
"""

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


class Starts(Untrained):
    """The untrained networks that a probing job measures, with their norms."""

    norms: dict[str, Norm] = Field(description="by arm")
    placements: list[Placement]
    towers: dict[str, Norm] = Field(description="of the towers, by arm")


class Probe(OnDevice):
    """What a probing job measures: the models of a training job, or untrained networks.

    Args:
        stream: windows in which the residual stream is measured; 0 measures none.
        inside: windows in which blocks, attention and norms are measured; 0 measures none.
        refined: further steps with frozen norms and without; 0 freezes none.
        starts: untrained networks, in place of trained models.
    """

    stream: Annotated[int, Field(ge=0)] = 0
    inside: Annotated[int, Field(ge=0)] = 0
    refined: Annotated[int, Field(ge=0)] = 0
    starts: Starts | None = None


class MainTables(ModelTables):
    """What the tables are made from.

    Args:
        probed: the jobs whose models are measured.
        baseline: the cell that is held against published numbers; its arm and placement are what
            the others of a protocol are compared with.
        other_arm, other_placement: what the table ``differences`` compares models with.
        batch_sizes: by protocol, of protocols that differ in nothing else.
    """

    jobs: dict[str, Cell]
    probed: list[str]
    baseline: Cell
    other_arm: str
    other_placement: Placement
    batch_sizes: list[dict[str, int]]
