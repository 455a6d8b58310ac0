"""Studies of Transformers that learn a text, by protocol, arm, placement and rate. No torch."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from normscope.io.names import Key
from normscope.io.texts import DATASET, TextName
from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Model, Placement
from normscope.schema import LATER, Distinct, Extended, Rate, Seed, Some, Strict
from normscope.studies.cells import Cell
from normscope.studies.study import Grid, TransformerStudy, checked
from normscope.train.recipe import Stack, Training
from normscope.train.schedule import at_schedule
from normscope.verdicts.vocabulary import Cell as Row
from normscope.verdicts.vocabulary import Extent

ProtocolName = Annotated[Key, Field(description="a key of protocols")]


class Protocol(Strict):
    """Sizes and training that cells are compared under; the runs vary the rest."""

    model: Model
    training: Training
    text: TextName = DATASET


class ProtocolGrid(Grid, Extended):
    """One block of runs: the Cartesian product of its lists."""

    FACTORS: ClassVar = {
        "arms": "arm",
        "placements": "placement",
        "learning_rates": "learning_rate",
    }

    protocol: ProtocolName
    arms: Annotated[list[ArmName], Some, Distinct]
    placements: Annotated[list[Placement], Some, Distinct]
    learning_rates: Annotated[list[Rate], Some, Distinct] = Field(
        description="a list, or pilot for the rate that the pilot seeds chose. Of several rates, "
        "an arm is reported at the best one, chosen on its other seeds"
    )
    seeds: Annotated[list[Seed], Some, Distinct]
    one_arm: Annotated[bool, LATER] = Field(
        default=False,
        description="whether only that of the arms is trained whose pilot models have the lowest "
        "loss, such as one of several values of alpha; with learning_rates: pilot",
    )

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for cell in self.cells():
            check_placement(cell.arm, cell.placement)
        return self

    def cells(self) -> Iterator[Cell]:
        for values in self.product():
            yield Cell(self.protocol, **values)


class Baseline(Strict):
    """The arm that the other arms of a protocol are compared with, paired by seed."""

    arm: ArmName
    placement: Placement


class ProtocolStudy(TransformerStudy):
    """A study with one Transformer per protocol, arm, placement, learning rate and seed."""

    GRIDS: ClassVar = {"runs": ProtocolGrid}

    protocols: Mapping[ProtocolName, Protocol]
    runs: Annotated[list[ProtocolGrid], Some]
    baseline: Baseline

    def models(self) -> list[tuple[Cell, int]]:
        """Those of all blocks; a model that several blocks name counts once."""
        runs = [(c, seed) for grid in self.runs for c in grid.cells() for seed in grid.seeds]
        return list(dict.fromkeys(runs))

    @model_validator(mode="after")
    def protocols_are_known(self) -> Self:
        known = self.protocols
        for i, grid in enumerate(self.runs):
            if grid.protocol not in known:
                raise ValueError(
                    f"runs.{i}.protocol: unknown protocol {grid.protocol!r}; "
                    f"known: {', '.join(known)}"
                )
        for cell in dict.fromkeys(cell for cell, _ in self.models()):
            where = f"arm {cell.arm}, protocol {cell.protocol}"
            checked(where, lambda c=cell: self.stack_of(c, [0]))
        return self

    def stack_of(self, cell: Cell, seeds: list[int]) -> Stack:
        protocol = self.protocols[cell.protocol]
        training = protocol.training
        return Stack(
            norm=ARMS[cell.arm].norm,
            placement=cell.placement,
            seeds=seeds,
            model=protocol.model,
            training=at_schedule(training, cell.learning_rate, training.warmup_steps),
        )

    def text_of(self, cell: Cell) -> str:
        return self.protocols[cell.protocol].text

    def extents(self) -> list[tuple[Row, Extent]]:
        """The sizes, steps and text of every protocol, with what a row says of it."""
        return [
            ({"protocol": name}, Extent(p.model.n_layer, p.model.n_embd, p.training.steps, p.text))
            for name, p in self.protocols.items()
        ]
