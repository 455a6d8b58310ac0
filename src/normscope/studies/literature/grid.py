"""The literature part of the configuration: the models of which statements of papers are asked."""

from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Strict
from normscope.studies.cells import Cell
from normscope.studies.literature import tables
from normscope.studies.literature.recipe import STARTS, LiteratureTables, Probe, Starts, Untrained
from normscope.studies.protocols import Baseline, ProtocolGrid, ProtocolName, ProtocolStudy
from normscope.studies.study import Settings, Stages, checked
from normscope.verdicts.vocabulary import Vocabulary

OF_MODELS = ("models", "blocks", "norms")  # what a probing job of trained models measures
OF_STARTS = ("networks", "towers")  # and that of untrained networks


class UntrainedGrid(Untrained):
    """Networks of several depths at the start: every combination of arm, placement and depth."""

    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    placements: Annotated[list[Placement], NonEmpty, Distinct]
    towers: Annotated[list[ArmName], NonEmpty, Distinct] = Field(
        description="arms of the towers of attention"
    )

    @model_validator(mode="after")
    def depths_have_a_slope(self) -> Self:
        if len(self.depths) < 2:
            raise ValueError("depths: slopes over the depth need at least two")
        return self

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for arm in self.arms:
            for placement in self.placements:
                check_placement(arm, placement)
        return self

    def starts(self) -> Starts:
        """What is measured of them."""
        return Starts(
            untrained=Untrained(**{key: getattr(self, key) for key in Untrained.model_fields}),
            norms={arm: ARMS[arm].norm for arm in self.arms},
            placements=self.placements,
            towers={arm: ARMS[arm].norm for arm in self.towers},
        )


class Refined(Strict):
    """Models that are trained further with the sigma of each norm frozen, and of all norms."""

    protocols: Annotated[list[ProtocolName], Distinct] = Field(
        description="whose models with LayerNorm or RMSNorm in pre-norm these are"
    )
    steps: PositiveInt


class Literature(ProtocolStudy):
    """Transformers of many protocols, and untrained networks, for statements of papers."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(probed=(*OF_MODELS, *OF_STARTS))

    runs: Annotated[list[ProtocolGrid], NonEmpty]
    baseline: Baseline
    windows: PositiveInt = Field(
        description="windows of validation text in which models are probed"
    )
    refined: Refined
    untrained: UntrainedGrid

    @model_validator(mode="after")
    def refined_are_known(self) -> Self:
        for name in self.refined.protocols:
            if name not in self.protocols:
                raise ValueError(
                    f"refined.protocols: unknown protocol {name!r}; "
                    f"known: {', '.join(self.protocols)}"
                )
        return self

    @model_validator(mode="after")
    def untrained_fit(self) -> Self:
        grid = self.untrained
        checked("untrained", lambda: [grid.model(depth) for depth in [*grid.depths, grid.tower]])
        return self

    def context(self) -> int:
        return max(super().context(), self.untrained.block_size)

    def probes(self) -> dict[str, Probe]:
        trained = {
            name: Probe(windows=self.windows, refined=self._refined(cell))
            for name, cell in self.cells().items()
        }
        starts = Probe(windows=self.untrained.windows, starts=self.untrained.starts())
        return {**trained, STARTS: starts}

    def _refined(self, cell: Cell) -> int:
        """The further steps of the models of a cell."""
        is_refined = cell.protocol in self.refined.protocols and cell.placement == "pre"
        return self.refined.steps if is_refined and ARMS[cell.arm].norm.has_surrogates else 0

    def probed(self, name: str) -> list[str]:
        return [] if name == STARTS else [name]

    def tabulated(self, settings: Settings) -> list[str]:
        models = [f"models/{n}/{f}" for n in self.trainings() for f in self.STAGES.tables_read]
        of_models = [(name, table) for name in self.trainings() for table in OF_MODELS]
        of_others = [(STARTS, table) for table in OF_STARTS]
        files = [f"probes/{name}/{table}.csv" for name, table in (*of_models, *of_others)]
        return [f"literature/{path}" for path in (*files, *models)]

    def vocabulary(self) -> Vocabulary:
        values = {"protocol": self.protocols, "arm": ARMS, "placement": get_args(Placement)}
        return Vocabulary(values)

    def tabulation(self, settings: Settings) -> LiteratureTables:
        return LiteratureTables(
            **self.model_tables(settings),
            baseline_arm=self.baseline.arm,
            baseline_placement=self.baseline.placement,
        )
