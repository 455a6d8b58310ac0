"""Studies of Transformers that learn a text, by protocol, arm, learning rate and more. No torch."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from normscope.io.corpus import Line
from normscope.io.names import Key
from normscope.io.texts import DATASET, TextName, text_of
from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Model, Placement
from normscope.schema import ADDED, Distinct, GrowingModel, NonEmpty, Rate, Strict
from normscope.studies.cells import Cell
from normscope.studies.study import Grid, Settings, TransformerStudy, build_part
from normscope.train.recipe import Stack, Training
from normscope.train.schedule import at_schedule

ProtocolName = Annotated[Key, Field(description="a key of protocols")]


class Protocol(GrowingModel):
    """Sizes and training that cells are compared under; the runs vary the rest."""

    model: Model
    training: Training
    texts: Annotated[list[TextName], NonEmpty, Distinct] = Field(
        default=[DATASET],
        description="what its models learn: each hundred of seeds has the next text, so that 301 "
        "and 302 have the same. Of several, each is one unit of a test",
    )
    title: Annotated[Line, ADDED] = Field(
        default="", description="its name in tables and figures, if not its key"
    )


class ProtocolGrid(Grid, GrowingModel):
    """One block of runs: the Cartesian product of its lists."""

    CELL: ClassVar = Cell

    protocol: ProtocolName
    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    placements: Annotated[list[Placement], NonEmpty, Distinct]
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct] = Field(
        description="a list, or pilot for the rate that the pilot seeds chose. Of several rates, "
        "an arm is reported at the best one, chosen on its other seeds"
    )


class Baseline(Strict):
    """The arm that the other arms of a protocol are compared with, paired by seed."""

    arm: ArmName
    placement: Placement


class ProtocolStudy(TransformerStudy):
    """A study with one Transformer per cell and seed; a cell has a protocol and an arm.

    A factor of a cell that is a key of a model replaces that of the protocol's model.
    """

    protocols: Annotated[Mapping[ProtocolName, Protocol], NonEmpty]

    @model_validator(mode="after")
    def protocols_are_known(self) -> Self:
        known = ", ".join(self.protocols)
        for key in self.grids():
            for i, grid in enumerate(getattr(self, key)):
                if (name := grid.protocol) not in self.protocols:
                    raise ValueError(
                        f"{key}.{i}.protocol: unknown protocol {name!r}; known: {known}"
                    )
        for cell in dict.fromkeys(self.cells().values()):
            where = f"arm {cell.arm}, protocol {cell.protocol}"
            build_part(where, lambda c=cell: self.stack_of(c, [0]))
        return self

    @property
    def titles(self) -> dict[str, str]:
        """What tables and figures call the protocols, by key."""
        return {key: one.title or key.replace("_", " ") for key, one in self.protocols.items()}

    def stack_of(self, cell: Any, seeds: list[int]) -> Stack:
        protocol = self.protocols[cell.protocol]
        training, factors = protocol.training, cell._asdict()
        varied = {key: factors[key] for key in factors.keys() & Model.model_fields.keys()}
        return Stack(
            norm=ARMS[cell.arm].norm,
            placement=factors.get("placement", "pre"),
            seeds=seeds,
            model=protocol.model.model_copy(update=varied),
            training=at_schedule(training, cell.learning_rate, training.warmup_steps),
        )

    def text_of(self, cell: Any, seed: int) -> str:
        return text_of(self.protocols[cell.protocol].texts, seed)

    def model_tables(self, settings: Settings) -> dict[str, Any]:
        """The fields of ``ModelTables``."""
        used = dict.fromkeys(cell.protocol for cell in self.cells().values())
        protocols = {name: self.protocols[name] for name in used}
        return {
            "jobs": self.cells(),
            "pilot": self.pilot_choices(settings),
            "texts": {name: protocol.texts for name, protocol in protocols.items()},
            "eval_tokens": {name: p.training.eval_tokens for name, p in protocols.items()},
            "level": settings.level,
        }
