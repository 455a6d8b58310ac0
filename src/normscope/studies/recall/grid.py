"""The decisive test's part of the configuration: which models it trains, and which it shows."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from normscope.io.names import CellName
from normscope.ledger.vocabulary import Extent, Vocabulary, planned
from normscope.nn.arms import ARMS, ArmName
from normscope.schema import Distinct, PositiveInt, Rate, Seed, Some, Strict, distinct
from normscope.studies.recall import tables
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallStack, RecallTables, Task
from normscope.studies.study import Grid, Job, Settings, Stacked, Study, blocks, vocabulary

TaskName = Annotated[CellName, Field(description="a key of recall.tasks")]


class PublishedArm(Strict):
    """An arm of the notebook, at the rate that it has there."""

    arm: ArmName
    learning_rate: Rate


class Published(Strict):
    """The notebook's runs, which the figures "as published" show."""

    task: TaskName
    arms: Annotated[list[PublishedArm], Some]
    seeds: Annotated[list[Seed], Some, Distinct] = Field(
        description="the figures as published draw the first"
    )

    @model_validator(mode="after")
    def arms_are_distinct(self) -> Self:
        distinct([a.arm for a in self.arms])
        return self


class Corrected(Strict):
    """What the corrected figures draw, and where the factors are crossed."""

    task: TaskName
    learning_rate: Rate


class RecallGrid(Grid):
    """One block of runs: every arm with every learning rate and every seed."""

    FACTORS: ClassVar = {"arms": "arm", "learning_rates": "learning_rate", "seeds": "seed"}

    task: TaskName
    arms: Annotated[list[ArmName], Some, Distinct]
    learning_rates: Annotated[list[Rate], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]


class Recall(Study):
    """The decisive test: what a norm does, factor by factor."""

    TABLES: ClassVar = tables.TABLES
    TRAINED: ClassVar = (*Study.TRAINED, "moments.safetensors")
    PROBED: ClassVar = ("metrics", "slices", "spectra")
    PROBE_READS: ClassVar = (*Study.PROBE_READS, "metrics.csv", "moments.safetensors")
    TABLES_READ: ClassVar = ("curves.csv",)
    READS_CORPUS: ClassVar = False  # its data are drawn

    tasks: Annotated[dict[TaskName, Task], Some]
    stack: Stacked
    published: Published
    corrected: Corrected
    runs: Annotated[list[RecallGrid], Some]
    directions: PositiveInt = Field(description="filter-normalized slices of each model's loss")

    def _grid(self) -> Iterator[tuple[Cell, int]]:
        """Cell and seed of every run in ``runs``."""
        for grid in self.runs:
            for run in grid.product():
                yield Cell(grid.task, run["arm"], run["learning_rate"]), run["seed"]

    def _all(self) -> list[tuple[Cell, int]]:
        """With the published ones, which may also be in ``runs``."""
        published = [(c, seed) for c in self.published_cells() for seed in self.published.seeds]
        return list(dict.fromkeys([*published, *self._grid()]))

    @model_validator(mode="after")
    def parts_fit(self) -> Self:
        parts = {"published": self.published, "corrected": self.corrected}
        parts |= {f"runs.{i}": grid for i, grid in enumerate(self.runs)}
        for where, part in parts.items():
            if part.task not in self.tasks:
                known = ", ".join(self.tasks)
                raise ValueError(f"{where}.task: unknown task {part.task!r}; known: {known}")
        for where, kind in (("published", "copy"), ("corrected", "recall")):
            if self.tasks[name := parts[where].task].kind != kind:
                raise ValueError(f"{where}.task: {name} is not of kind {kind}")
        distinct([f"{cell}-{seed}" for cell, seed in self._grid()])
        trained = {cell for cell, _ in self._all()}
        for cell in self.corrected_cells():
            if cell not in trained:
                raise ValueError(
                    f"no run of {cell} to compare with the published arm {cell.arm}: add task "
                    f"{cell.task}, arm {cell.arm} and learning rate {cell.learning_rate:g} to runs"
                )
        return self

    def published_cells(self) -> list[Cell]:
        """The notebook's arms at its learning rates."""
        task, arms = self.published.task, self.published.arms
        return [Cell(task, a.arm, a.learning_rate) for a in arms]

    def corrected_cells(self) -> list[Cell]:
        """The same arms on the corrected task, at one learning rate."""
        task, rate = self.corrected.task, self.corrected.learning_rate
        return [Cell(task, a.arm, rate) for a in self.published.arms]

    def vocabulary(self) -> Vocabulary:
        """What statements about its models may say.

        ``protocol: published`` are the notebook's runs, ``corrected`` the task and rate of the
        corrected figures, whatever the arm; ``arms: published`` are the notebook's arms.
        """
        corrected = {"task": self.corrected.task, "learning_rate": self.corrected.learning_rate}
        sizes = [
            ({"task": name}, Extent(1, task.n_embd, task.steps, f"synthetic {task.kind}"))
            for name, task in self.tasks.items()
        ]
        return vocabulary(
            {"runs": self.TABLES["runs"]},
            values={"task": self.tasks, "arm": ARMS, **tables.LEVELS},
            names={
                "protocol": {
                    "published": [cell._asdict() for cell in self.published_cells()],
                    "corrected": [corrected],
                },
                "arms": {"published": [{"arm": a.arm} for a in self.published.arms]},
            },
            extents={"runs": sizes},
            sized=("task",),
            grids={"runs": planned(self._all(), Cell._fields)},
        )

    def blocks(self) -> dict[str, tuple[Cell, list[int]]]:
        """Cell and seeds of every training job, by its name."""
        return blocks(self._all(), self.stack)

    def trainings(self) -> dict[str, RecallStack]:
        return {
            name: RecallStack(
                task=self.tasks[cell.task],
                norm=ARMS[cell.arm].norm,
                learning_rate=cell.learning_rate,
                seeds=seeds,
            )
            for name, (cell, seeds) in self.blocks().items()
        }

    def probes(self) -> dict[str, RecallProbe]:
        """One job per task: its models are so small that a job per model would cost more."""
        cells = {name: cell for name, (cell, _) in self.blocks().items()}
        jobs = {
            task: {name: cell for name, cell in cells.items() if cell.task == task}
            for task in dict.fromkeys(cell.task for cell in cells.values())
        }
        return {t: RecallProbe(jobs=some, directions=self.directions) for t, some in jobs.items()}

    def probed(self, name: str) -> list[str]:
        """The training jobs of a task, after which the probing job is called."""
        return list(self.probes()[name].jobs)

    def tabulation(self, settings: Settings) -> RecallTables:
        jobs = {name: cell for name, (cell, _) in self.blocks().items()}
        shown = self.corrected.model_dump()
        return RecallTables(jobs=jobs, probes=[*self.probes()], level=settings.level, **shown)

    def jobs(self) -> Iterator[Job]:
        trainings = self.trainings()
        for name, stack in trainings.items():
            task = stack.task
            work = float(len(stack.seeds) * task.steps * task.batch_size * task.n_embd**2)
            # BatchNorm needs all positions, other norms only that of the query
            scope = "all positions" if stack.norm.statistic == "batch" else "the query"
            yield Job("recall_train", name, f"{task.kind}, {scope}", work)
        for name, probe in self.probes().items():
            models = sum(len(trainings[job].seeds) for job in probe.jobs)
            yield Job("recall_probe", name, "", models * self.tasks[name].n_embd)
