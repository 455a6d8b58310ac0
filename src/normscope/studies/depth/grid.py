"""The depth part of the configuration: what is probed at the start, and what is trained."""

import itertools
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Init, Model, Placement
from normscope.schema import Distinct, PositiveInt, Rate, Seed, Some, Strict, distinct
from normscope.studies.depth.recipe import EnsembleRecipe, Kept, WarmUp
from normscope.train.recipe import Training

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


class StartGrid(Strict):
    """One block of models: every combination, probed at the start."""

    arms: Annotated[list[ArmName], Some, Distinct]
    placements: Annotated[list[Placement], Some, Distinct]
    residual: Annotated[list[bool], Some, Distinct]
    init: Annotated[list[Start], Some, Distinct]
    depths: Annotated[list[PositiveInt], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def identity_has_no_place(self) -> Self:
        for arm, placement in itertools.product(self.arms, self.placements):
            if ARMS[arm].norm.is_identity != (placement == "none"):
                raise ValueError(
                    f"arm {arm} with placement {placement}: an identity goes with none, all others "
                    "with another"
                )
        return self

    def shapes(self) -> Iterator[Shape]:
        factors = (self.arms, self.placements, self.residual, self.init, self.depths)
        return itertools.starmap(Shape, itertools.product(*factors))


class TrainedGrid(StartGrid):
    """One block of models that are trained: every combination, at every rate and warm-up."""

    learning_rates: Annotated[list[Rate], Some, Distinct]
    warmup_steps: Annotated[list[WarmUp], Some, Distinct]

    @model_validator(mode="after")
    def can_be_built(self) -> Self:
        if "gpt2_flat" in self.init:
            raise ValueError("init gpt2_flat is probed at the start alone: give gpt2 or xavier")
        return self


class Probe(Strict):
    """Models of one shape to be probed: at the start, and after training where they are trained."""

    arm: ArmName
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


class Depth(Strict):
    """Signals and gradients by depth, and whether what is deep can be trained."""

    sizes: Sizes
    training: Training
    start: Annotated[list[StartGrid], Some]
    trained: list[TrainedGrid]
    kept: Kept = Field(description="the schedule of the trained models that are probed")
    windows: PositiveInt = Field(description="windows of validation text in the batch of a probe")
    spectra: PositiveInt = Field(
        description="blocks, spread evenly, whose Jacobian's singular values are measured"
    )

    @model_validator(mode="after")
    def can_be_trained(self) -> Self:
        key = "sizes"
        try:
            for shape in (shape for grid in self.start for shape in grid.shapes()):
                self._model(shape)
            key = "trained"
            self.recipes()
        except ValidationError as e:
            reason = e.errors()[0]["msg"].removeprefix("Value error, ")
            raise ValueError(f"{key}: {reason}") from None
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

    def trained_shapes(self) -> list[Shape]:
        return [shape for grid in self.trained for shape in grid.shapes()]

    def recipes(self) -> dict[str, EnsembleRecipe]:
        """What each training job trains, by the name of its directory."""
        # each block has its own warm-ups: another here must train nothing again
        training = self.training.model_copy(update={"warmup_steps": 0})
        return {
            str(shape): EnsembleRecipe(
                norm=ARMS[shape.arm].norm,
                placement=shape.placement,
                model=self._model(shape),
                training=training,
                learning_rates=grid.learning_rates,
                warmup_steps=grid.warmup_steps,
                seeds=grid.seeds,
                kept=self.kept,
            )
            for grid in self.trained
            for shape in grid.shapes()
        }

    def _seeds(self, grids: list[StartGrid] | list[TrainedGrid]) -> dict[Shape, list[int]]:
        return {shape: grid.seeds for grid in grids for shape in grid.shapes()}

    def places(self) -> dict[str, Place]:
        """What each probing job probes, by the name of its directory."""
        start, trained = self._seeds(self.start), self._seeds(self.trained)
        places: dict[Placement, list[Shape]] = {}
        for shape in dict.fromkeys([*start, *trained]):
            places.setdefault(shape.placement, []).append(shape)
        return {
            name: Place(
                placement=name,
                sizes=self.sizes,
                probes=[
                    Probe(
                        arm=shape.arm,
                        residual=shape.residual,
                        init=shape.init,
                        depth=shape.depth,
                        seeds=start.get(shape, []),
                        trained=trained.get(shape, []),
                    )
                    for shape in shapes
                ],
                windows=self.windows,
                spectra=self.spectra,
            )
            for name, shapes in places.items()
        }
