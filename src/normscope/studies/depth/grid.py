"""The depth part of the configuration: what is probed at the start, and what is trained."""

from typing import Annotated, ClassVar, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Init, Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Rate, distinct
from normscope.studies.depth import tables
from normscope.studies.depth.recipe import (
    Cell,
    DepthTables,
    Place,
    Probe,
    Schedule,
    Shape,
    Sizes,
    WarmUp,
)
from normscope.studies.study import Grid, Settings, Stages, TransformerStudy, build_part
from normscope.train.recipe import Stack, Training
from normscope.train.schedule import at_schedule
from normscope.verdicts.vocabulary import Vocabulary


class StartGrid(Grid):
    """One block of models: every combination, probed at the start."""

    CELL: ClassVar[type] = Shape

    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    placements: Annotated[list[Placement], NonEmpty, Distinct]
    residual: Annotated[list[bool], NonEmpty, Distinct]
    init: Annotated[list[Init], NonEmpty, Distinct]
    depths: Annotated[list[PositiveInt], NonEmpty, Distinct]


class TrainedGrid(StartGrid):
    """One block of models that are trained: every combination, at every rate and warm-up."""

    CELL: ClassVar[type] = Cell

    learning_rates: Annotated[list[Rate], NonEmpty, Distinct]
    warmup_steps: Annotated[list[WarmUp], NonEmpty, Distinct]
    steps: PositiveInt = Field(description="after the warm-up, whose steps are added to them")


def _distinct_shapes(grids: list[StartGrid]) -> list[StartGrid]:
    distinct([str(shape) for grid in grids for shape in grid.cells()])
    return grids


def _one_length(grids: list[TrainedGrid]) -> list[TrainedGrid]:
    """Tables compare the schedules of a shape, which therefore have the same steps."""
    steps: dict[Shape, int] = {}
    for cell in (cell for grid in grids for cell in grid.cells()):
        if steps.setdefault(cell.shape, cell.steps) != cell.steps:
            raise ValueError(
                f"{cell.shape} has {steps[cell.shape]} steps and {cell.steps}: give one number"
            )
    return grids


class Depth(TransformerStudy):
    """Signals and gradients by depth, and whether what is deep can be trained."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(probe_tables=("blocks",), tables_read=("metrics.csv",))

    sizes: Sizes
    training: Training
    start: Annotated[list[StartGrid], NonEmpty, AfterValidator(_distinct_shapes)]
    trained: Annotated[list[TrainedGrid], AfterValidator(_one_length)]
    kept: Annotated[list[Schedule], NonEmpty, Distinct] = Field(
        description="the schedules of the trained models that are probed; a shape has one of them"
    )
    windows: PositiveInt = Field(description="windows of validation text in the batch of a probe")
    spectra: int = Field(
        ge=2,
        description="blocks whose Jacobian's singular values are measured, spread evenly from the "
        "second to the last",
    )

    @model_validator(mode="after")
    def can_be_trained(self) -> Self:
        build_part(
            "sizes", lambda: [self.sizes.model(s) for grid in self.start for s in grid.cells()]
        )
        build_part("trained", self.trainings)
        kept: dict[Shape, Schedule] = {}
        for cell in self.jobs_to_probe().values():
            if kept.setdefault(cell.shape, cell.schedule) != cell.schedule:
                raise ValueError(
                    f"kept: {cell.shape} is trained at {kept[cell.shape]} and at {cell.schedule}: "
                    "give one of them"
                )
        for lost in [one for one in self.kept if one not in kept.values() and self.trained]:
            raise ValueError(
                f"trained: no models at {lost}, which are to be probed: add both to a block"
            )
        return self

    def stack_of(self, cell: Cell, seeds: list[int]) -> Stack:
        steps = cell.warmup_steps + cell.steps  # the warm-up takes none of the steps
        whole = self.training.model_copy(update={"steps": steps})
        return Stack(
            norm=ARMS[cell.arm].norm,
            placement=cell.placement,
            seeds=seeds,
            model=self.sizes.model(cell.shape),
            training=at_schedule(whole, cell.learning_rate, cell.warmup_steps),
        )

    def context(self) -> int:
        return self.sizes.block_size

    def jobs_to_probe(self) -> dict[str, Cell]:
        """The training jobs whose models are probed, with their cells."""
        return {name: cell for name, cell in self.cells().items() if cell.schedule in self.kept}

    def probes(self) -> dict[str, Place]:
        """Models by placement: what each probing job probes."""
        start = {shape: grid.seeds for grid in self.start for shape in grid.cells()}
        trained: dict[Shape, list[str]] = {}
        for name, cell in self.jobs_to_probe().items():
            trained.setdefault(cell.shape, []).append(name)
        probes: dict[str, list[Probe]] = {}
        for shape in dict.fromkeys([*start, *trained]):
            models = {"seeds": start.get(shape, []), "trained": trained.get(shape, [])}
            probe = Probe(shape=shape, norm=ARMS[shape.arm].norm, **models)
            probes.setdefault(shape.placement, []).append(probe)
        shared = {"sizes": self.sizes, "windows": self.windows, "spectra": self.spectra}
        return {place: Place(probes=listed, **shared) for place, listed in probes.items()}

    def jobs_of_probe(self, name: str) -> list[str]:
        """The training jobs of a placement, after which the probing job is called."""
        return [job for job, cell in self.jobs_to_probe().items() if cell.placement == name]

    def vocabulary(self) -> Vocabulary:
        values = {"arm": ARMS, "placement": get_args(Placement), "init": get_args(Init)}
        return Vocabulary({**values, "state": tables.STATES, "layer": tuple(tables.LAYERS)})

    def tabulation(self, settings: Settings) -> DepthTables:
        return DepthTables(
            places=list(self.probes()),
            jobs=self.cells(),
            pilot=self.pilot_choices(settings),
            eval_tokens=self.training.eval_tokens,
            level=settings.level,
        )
