"""The main study's part of the configuration: one Transformer an arm, placement and seed."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.ledger.vocabulary import Vocabulary
from normscope.nn.arms import ARMS, LABELS, ArmName, check_placement
from normscope.nn.recipe import Model, Placement
from normscope.schema import Distinct, PositiveInt, Seed, Some, Strict, distinct
from normscope.studies.main.recipe import Cell, MainTables, StreamProbe
from normscope.studies.study import Grid, Job, Settings, Stacked, Study, blocks, checked
from normscope.train.recipe import Stack, Training, flops

GAINS = ("log_gain_first", "log_gain_later", "log_gain_last")  # means of a run, in runs.csv
LOSSES = (
    *("diverged_at", "parameters", "train_loss"),
    *("val_loss", "best_val_loss", "val_loss_window_sd"),
)


class MainGrid(Grid):
    """One block of runs: every arm with every placement and every seed."""

    FACTORS: ClassVar = {"arms": "arm", "placements": "placement", "seeds": "seed"}

    arms: Annotated[list[ArmName], Some, Distinct]
    placements: Annotated[list[Placement], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for cell in self.product():
            check_placement(cell["arm"], cell["placement"])
        return self


class Baseline(Strict):
    """What the other arms are compared with, seed by seed."""

    arm: ArmName
    placement: Placement


class Gain(Strict):
    """Residual gain of the trained models."""

    windows: PositiveInt = Field(description="windows of validation text, spread evenly")


class Main(Study):
    """One Transformer an arm, placement and seed: validation loss, residual gain."""

    TABLES: ClassVar = (
        *("runs", "arms", "curves", "gain", "gain_by_depth", "gain_by_arm"),
        *("published", "corpus"),
    )

    model: Model
    training: Training
    stack: Stacked
    runs: Annotated[list[MainGrid], Some]
    baseline: Baseline
    gain: Gain

    def _all(self) -> Iterator[tuple[Cell, int]]:
        """Cell and seed of every run, in the order of the configuration."""
        for grid in self.runs:
            for run in grid.product():
                yield Cell(run["arm"], run["placement"]), run["seed"]

    @model_validator(mode="after")
    def gradients_are_exact(self) -> Self:
        for key in ("feedback", "norm_backward", "surrogates_in", "radial_share", "sigma_penalty"):
            if getattr(self.model, key) != Model.model_fields[key].default:
                raise ValueError(f"model.{key}: the main runs have exact gradients; see jacobian")
        return self

    @model_validator(mode="after")
    def runs_are_distinct(self) -> Self:
        distinct([f"{cell}-{seed}" for cell, seed in self._all()])
        if self.reference not in {cell for cell, _ in self._all()}:
            raise ValueError(f"baseline: no run of {self.reference} among runs")
        checked("runs", self.trainings)
        return self

    @property
    def reference(self) -> Cell:
        """The baseline's cell."""
        return Cell(self.baseline.arm, self.baseline.placement)

    def blocks(self) -> dict[str, tuple[Cell, list[int]]]:
        """Cell and seeds of every training job, by its name."""
        return blocks(self._all(), self.stack)

    @property
    def reference_jobs(self) -> list[str]:
        """Names of the jobs that train the baseline."""
        return [name for name, (cell, _) in self.blocks().items() if cell == self.reference]

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            columns={"runs": (*Cell._fields, "seed", *LOSSES, *GAINS)},
            values={"arm": ARMS, "placement": get_args(Placement)},
            labels={"arm": LABELS},
        )

    def trainings(self) -> dict[str, Stack]:
        return {
            name: Stack(
                norm=ARMS[cell.arm].norm,
                placement=cell.placement,
                seeds=seeds,
                model=self.model,
                training=self.training,
            )
            for name, (cell, seeds) in self.blocks().items()
        }

    def probes(self) -> dict[str, StreamProbe]:
        return dict.fromkeys(self.trainings(), StreamProbe(windows=self.gain.windows))

    def tabulation(self, settings: Settings) -> MainTables:
        jobs = {name: cell for name, (cell, _) in self.blocks().items()}
        return MainTables(jobs=jobs, baseline=self.reference, level=settings.level)

    def jobs(self) -> Iterator[Job]:
        for name, stack in self.trainings().items():
            yield Job("main_train", name, stack.training.precision, flops(stack))
            yield Job("main_probe", name, "", len(stack.seeds))
