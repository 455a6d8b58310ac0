"""The depth part of the configuration: what is probed at the start, and what is trained."""

import itertools
from collections.abc import Iterator
from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.ledger.vocabulary import Vocabulary, planned
from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Model, Placement
from normscope.schema import Distinct, PositiveInt, Rate, Seed, Some, distinct
from normscope.studies.depth import tables
from normscope.studies.depth.measures import LAYERS, STATES
from normscope.studies.depth.recipe import (
    Cell,
    DepthTables,
    Kept,
    Place,
    Probe,
    Shape,
    Sizes,
    Start,
    WarmUp,
)
from normscope.studies.study import Grid, Job, Settings, Stacked, Study, blocks, checked, vocabulary
from normscope.train.recipe import Device, Stack, Training, flops
from normscope.train.schedule import at_schedule
from normscope.train.stacking import stack_mb


class StartGrid(Grid):
    """One block of models: every combination, probed at the start."""

    FACTORS: ClassVar = {
        "arms": "arm",
        "placements": "placement",
        "residual": "residual",
        "init": "init",
        "depths": "depth",
    }

    arms: Annotated[list[ArmName], Some, Distinct]
    placements: Annotated[list[Placement], Some, Distinct]
    residual: Annotated[list[bool], Some, Distinct]
    init: Annotated[list[Start], Some, Distinct]
    depths: Annotated[list[PositiveInt], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for shape in self.shapes():
            check_placement(shape.arm, shape.placement)
        return self

    def shapes(self) -> Iterator[Shape]:
        for values in self.product():
            yield Shape(**values)


class TrainedGrid(StartGrid):
    """One block of models that are trained: every combination, at every rate and warm-up."""

    learning_rates: Annotated[list[Rate], Some, Distinct]
    warmup_steps: Annotated[list[WarmUp], Some, Distinct]
    steps: PositiveInt = Field(description="after the warm-up, whose steps are added to them")

    @model_validator(mode="after")
    def can_be_built(self) -> Self:
        if "gpt2_flat" in self.init:
            raise ValueError("init gpt2_flat is probed at the start alone: give gpt2 or xavier")
        return self

    def cells(self) -> Iterator[Cell]:
        schedules = list(itertools.product(self.learning_rates, self.warmup_steps))
        for shape in self.shapes():
            for rate, warmup in schedules:
                yield Cell(*shape, rate, warmup, self.steps)


class Depth(Study):
    """Signals and gradients by depth, and whether what is deep can be trained."""

    TABLES: ClassVar = tables.TABLES
    PROBED: ClassVar = ("blocks",)
    PROBE_READS: ClassVar = (*Study.PROBE_READS, "metrics.csv")
    TABLES_READ: ClassVar = ("metrics.csv",)

    sizes: Sizes
    training: Training
    stack: Stacked
    start: Annotated[list[StartGrid], Some]
    trained: list[TrainedGrid]
    kept: Kept = Field(description="the schedule of the trained models that are probed")
    windows: PositiveInt = Field(description="windows of validation text in the batch of a probe")
    spectra: PositiveInt = Field(
        description="blocks, spread evenly, whose Jacobian's singular values are measured"
    )

    @model_validator(mode="after")
    def can_be_trained(self) -> Self:
        for shape in (shape for grid in self.start for shape in grid.shapes()):
            checked("sizes", lambda shape=shape: self._model(shape))
        checked("trained", self.trainings)
        kept = (self.kept.learning_rate, self.kept.warmup_steps)
        for grid in self.trained:
            if kept not in itertools.product(grid.learning_rates, grid.warmup_steps):
                raise ValueError(
                    f"trained: no models at learning rate {kept[0]:g} with {kept[1]} steps of "
                    "warm-up, which are to be kept: add both"
                )
        return self

    @model_validator(mode="after")
    def shapes_are_distinct(self) -> Self:
        for name, grids in {"start": self.start, "trained": self.trained}.items():
            try:
                distinct([str(shape) for grid in grids for shape in grid.shapes()])
            except ValueError as e:
                raise ValueError(f"{name}: {e}") from None
        return self

    def _model(self, shape: Shape) -> Model:
        return self.sizes.model(shape.depth, shape.residual, shape.init)

    def _training(self, cell: Cell) -> Training:
        """Its warm-up comes before its steps, and takes none of them."""
        steps = cell.warmup_steps + cell.steps
        whole = self.training.model_copy(update={"steps": steps})
        return at_schedule(whole, cell.learning_rate, cell.warmup_steps)

    def _all(self) -> list[tuple[Cell, int]]:
        """Cell and seed of every trained model."""
        return [(c, seed) for grid in self.trained for c in grid.cells() for seed in grid.seeds]

    def blocks(self) -> dict[str, tuple[Cell, list[int]]]:
        """Cell and seeds of every training job, by its name."""
        return blocks(self._all(), self.stack)

    def _kept(self) -> dict[Shape, list[str]]:
        """Of every trained shape the jobs whose models are probed."""
        names: dict[Shape, list[str]] = {}
        kept = self.kept.learning_rate, self.kept.warmup_steps
        for name, (cell, _) in self.blocks().items():
            if (cell.learning_rate, cell.warmup_steps) == kept:
                names.setdefault(cell.shape, []).append(name)
        return names

    def trainings(self) -> dict[str, Stack]:
        return {
            name: Stack(
                norm=ARMS[cell.arm].norm,
                placement=cell.placement,
                seeds=seeds,
                model=self._model(cell.shape),
                training=self._training(cell),
            )
            for name, (cell, seeds) in self.blocks().items()
        }

    def context(self) -> int:
        return self.sizes.block_size

    def train_mb(self, stack: Stack, device: Device) -> int:
        return stack_mb(stack, device)

    def probes(self) -> dict[str, Place]:
        """Models by placement: what each probing job probes."""
        start, trained = self._probed_at_start(), self._kept()
        shapes: dict[Placement, list[Shape]] = {}
        for shape in dict.fromkeys([*start, *trained]):
            shapes.setdefault(shape.placement, []).append(shape)
        return {
            placement: Place(
                placement=placement,
                sizes=self.sizes,
                probes=[
                    Probe(
                        arm=shape.arm,
                        norm=ARMS[shape.arm].norm,
                        residual=shape.residual,
                        init=shape.init,
                        depth=shape.depth,
                        seeds=start.get(shape, []),
                        trained=trained.get(shape, []),
                    )
                    for shape in shapes[placement]
                ],
                windows=self.windows,
                spectra=self.spectra,
            )
            for placement in shapes
        }

    def vocabulary(self) -> Vocabulary:
        """What statements about its models may say."""
        stated = ("rates", "layers", "losses", "sensitivity", "warm_ups")
        return vocabulary(
            {name: self.TABLES[name] for name in stated},
            values={
                "arm": ARMS,
                "placement": get_args(Placement),
                "init": get_args(Start),
                "state": STATES,
                "layer": tuple(LAYERS),
            },
            grids={"losses": planned(self._all(), Cell._fields)},
        )

    def probed(self, name: str) -> list[str]:
        """The training jobs of a placement, after which the probing job is called."""
        return [n for s, names in self._kept().items() for n in names if s.placement == name]

    def tabulation(self, settings: Settings) -> DepthTables:
        return DepthTables(
            places=[place.placement for place in self.probes().values()],
            jobs={name: cell for name, (cell, _) in self.blocks().items()},
            eval_tokens=self.training.eval_tokens,
            level=settings.level,
        )

    def jobs(self) -> Iterator[Job]:
        trainings = self.trainings()
        for name, stack in trainings.items():
            yield Job("depth_train", name, "", flops(stack))
        for name, place in self.probes().items():
            blocks = sum(
                probe.depth
                * (len(probe.seeds) + sum(len(trainings[n].seeds) for n in probe.trained))
                for probe in place.probes
            )
            yield Job("depth_probe", name, "", blocks * place.windows * place.spectra)

    def _probed_at_start(self) -> dict[Shape, list[int]]:
        """The seeds of every shape."""
        return {shape: grid.seeds for grid in self.start for shape in grid.shapes()}
