"""The recall test's part of the configuration: which models it trains, and which it shows."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from normscope.io.names import Key
from normscope.nn.arms import ARMS, ArmName
from normscope.schema import Distinct, NonEmpty, PositiveInt, Rate, Seed, Strict, distinct
from normscope.studies.recall import tables
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallStack, RecallTables, Task
from normscope.studies.study import MODEL_FILES, Grid, Settings, Stages, TrainedStudy
from normscope.verdicts.vocabulary import Vocabulary

MOMENTS = "moments.safetensors"  # Adam's
TaskName = Annotated[Key, Field(description="a key of recall.tasks")]


class PublishedArm(Strict):
    """An arm of the notebook, at the rate that it has there."""

    arm: ArmName
    learning_rate: Rate


class Published(Strict):
    """The notebook's runs, which the figures "as published" show."""

    task: TaskName
    arms: Annotated[list[PublishedArm], NonEmpty]
    seeds: Annotated[list[Seed], NonEmpty, Distinct] = Field(
        description="the figures as published draw the first"
    )

    @model_validator(mode="after")
    def arms_are_distinct(self) -> Self:
        distinct([a.arm for a in self.arms])
        return self


class Corrected(Strict):
    """What the corrected figures draw, and where the factors are crossed."""

    task: TaskName
    arms: Annotated[list[ArmName], NonEmpty, Distinct] | None = Field(
        default=None, description="those of published, unless they are given"
    )
    learning_rate: Rate

    def where(self) -> dict[str, Any]:
        """The columns by which its models are found, whatever their arm."""
        return {"task": self.task, "learning_rate": self.learning_rate}


class RecallGrid(Grid):
    """One block of runs: every arm with every learning rate and every seed."""

    CELL: ClassVar = Cell

    task: TaskName
    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct]


class Recall(TrainedStudy):
    """The recall test: what a norm does, factor by factor."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(
        model_files=(*MODEL_FILES, MOMENTS),
        probe_tables=("metrics", "slices", "spectra"),
        probe_reads=("models.safetensors", "config.json", "metrics.csv", MOMENTS),
        tables_read=("curves.csv",),
        reads_corpus=False,  # its data are drawn
    )

    tasks: Annotated[dict[TaskName, Task], NonEmpty]
    published: Published
    corrected: Corrected
    runs: Annotated[list[RecallGrid], NonEmpty]
    directions: PositiveInt = Field(description="filter-normalized slices of each model's loss")

    def models(self) -> list[tuple[Cell, int]]:
        """Those of the notebook and of all blocks; a model that several name counts once."""
        published = [(c, seed) for c in self.published_cells() for seed in self.published.seeds]
        return list(dict.fromkeys([*published, *super().models()]))

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
        trained = {*self.cells().values()}
        for cell in self.corrected_cells():
            if cell not in trained:
                raise ValueError(
                    f"no run of {cell}, which corrected names: add task "
                    f"{cell.task}, arm {cell.arm} and learning rate {cell.learning_rate:g} to runs"
                )
        return self

    def published_cells(self) -> list[Cell]:
        """The notebook's arms at its learning rates."""
        task, arms = self.published.task, self.published.arms
        return [Cell(task, a.arm, a.learning_rate) for a in arms]

    def corrected_cells(self) -> list[Cell]:
        """What is compared with the notebook's runs, at one learning rate."""
        task, rate = self.corrected.task, self.corrected.learning_rate
        arms = self.corrected.arms or [a.arm for a in self.published.arms]
        return [Cell(task, arm, rate) for arm in arms]

    def vocabulary(self) -> Vocabulary:
        """What statements about its models may say.

        ``protocol: published`` are the notebook's runs, ``corrected`` the task and rate of the
        corrected figures, whatever the arm.
        """
        named = {
            "published": [cell._asdict() for cell in self.published_cells()],
            "corrected": [self.corrected.where()],
        }
        values = {"task": self.tasks, "arm": ARMS, **tables.LEVELS}
        return Vocabulary(values, {"protocol": named})

    def stack_of(self, cell: Cell, seeds: list[int]) -> RecallStack:
        return RecallStack(
            task=self.tasks[cell.task],
            norm=ARMS[cell.arm].norm,
            learning_rate=cell.learning_rate,
            seeds=seeds,
        )

    def probes(self) -> dict[str, RecallProbe]:
        """One job per task: its models are so small that a job per model would cost more."""
        jobs: dict[str, dict[str, Cell]] = {}
        for name, cell in self.cells().items():
            jobs.setdefault(cell.task, {})[name] = cell
        return {t: RecallProbe(jobs=some, directions=self.directions) for t, some in jobs.items()}

    def jobs_of_probe(self, name: str) -> list[str]:
        """The training jobs of a task, after which the probing job is called."""
        return list(self.probes()[name].jobs)

    def tabulation(self, settings: Settings) -> RecallTables:
        return RecallTables(
            jobs=self.cells(),
            pilot=self.pilot_choices(settings),
            probes=[*self.probes()],
            level=settings.level,
            **self.corrected.where(),
        )

    def training_flops(self) -> dict[str, float]:
        """Keys and values are computed at all positions; all else too for a norm of batches."""
        work = {}
        for name, stack in self.stacks.items():
            task, matrices = stack.task, 2 if stack.norm.is_token_wise else 12
            tokens = len(stack.seeds) * task.steps * task.batch_size * task.entities
            work[name] = 6.0 * tokens * matrices * task.n_embd**2
        return work
