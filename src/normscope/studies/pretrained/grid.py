"""Which pretrained models are measured: ``pretrained`` in the configuration. No torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from normscope.errors import Explained
from normscope.hub.prompts import SET, PromptsError, read_prompts
from normscope.hub.recipe import STEP, DirectorySource, Measured, ModelName, Sourced
from normscope.io.corpus import Line
from normscope.io.names import survives_tables
from normscope.schema import LATER, Distinct, Extended, PositiveInt, Some, Strict, distinct
from normscope.studies.pretrained import tables
from normscope.studies.pretrained.measures import PROBED
from normscope.studies.study import Job, Settings, Study


class Listed(Strict):
    """Where a model stands among the others."""

    name: Annotated[ModelName, AfterValidator(survives_tables)]
    family: Annotated[Line, Field(max_length=100)] = Field(
        description="models of a family are no replicates"
    )
    tuned: bool = Field(default=False, description="fine-tuned: left out where norms are compared")
    base: ModelName | None = Field(
        default=None, description="name of the model that this one was fine-tuned from"
    )


Step = Annotated[int, Field(ge=0, lt=2**63)]


class Checkpoint(Listed):
    """A model of a series, which is measured like any other under its name."""

    model: ModelName = Field(description="name of the series")
    step: Step


class PretrainedModel(Sourced, Listed, Extended):
    """One model or a series of checkpoints, and where it stands among the others."""

    steps: Annotated[Annotated[list[Step], Some, Distinct] | None, LATER] = Field(
        default=None,
        description="training steps of a series of checkpoints; the revision, path or member of "
        f"its source has {STEP} in place of each",
    )

    @model_validator(mode="after")
    def source_has_the_step_of_a_series(self) -> Self:
        has_step = STEP in self.source.model_dump_json()
        if has_step and self.steps is None:
            raise ValueError(f"{self.name}: {self.source} has {STEP}: give steps")
        if self.steps and not has_step:
            raise ValueError(
                f"{self.name}: {self.source} is the same at all steps: write {STEP} in its "
                "revision, path or member"
            )
        return self

    def checkpoints(self) -> dict[int, "PretrainedModel"]:
        """The model of each step of a series, in order; none for a single model."""
        source, of_step = self.source.model_dump_json(), {}
        for step in sorted(self.steps or []):
            changes = {"name": f"{self.name}-step{step}", "steps": None}
            changes["source"] = type(self.source).model_validate_json(
                source.replace(STEP, str(step))
            )
            of_step[step] = self.model_copy(update=changes)
        return of_step

    @property
    def decides(self) -> Measured:
        """What is measured: not its name and family, nor how long a download may take."""
        parts = {name: getattr(self, name) for name in Sourced.model_fields}
        if (limit := type(self.source).model_fields.get("timeout_s")) is not None:
            parts["source"] = self.source.model_copy(update={"timeout_s": limit.default})
        return Measured(**parts)


class PretrainedTables(Extended):
    """The settings of the tables."""

    models: list[Listed]
    resamples: PositiveInt
    level: float
    series: Annotated[list[Checkpoint], LATER] = Field(
        default=[], description="checkpoints, which are in the table of series alone"
    )


class Pretrained(Study):
    """Residual gain of pretrained models, compared with published values."""

    TABLES: ClassVar = tables.TABLES
    TRAINS: ClassVar = False  # workflow/rules/pretrained.smk measures its models
    READS_CORPUS: ClassVar = False
    FILES: ClassVar = ("prompts.yaml", "reference_gains.csv", "reference_prompts.csv")

    models: list[PretrainedModel] = Field(description="may be empty: the published table is left")
    memory_gb: float = Field(
        ge=0.01,
        le=1_000_000,
        allow_inf_nan=False,
        description="for weights; a model whose fp32 weights exceed it stays partly on disk",
    )
    threads: PositiveInt = Field(description="CPU threads of a measurement")
    resamples: PositiveInt = Field(description="of prompts, for bootstrap intervals")

    @model_validator(mode="after")
    def models_are_distinct(self) -> Self:
        names = [model.name for model in self.models]
        distinct(names + [model.name for _, _, model in self.series()])
        single = {model.name for model in self.models if model.steps is None}
        for model in self.models:
            if model.base is not None and model.base not in single - {model.name}:
                raise ValueError(f"{model.name}: its base {model.base} is not among the models")
        return self

    def series(self) -> list[tuple[PretrainedModel, int, PretrainedModel]]:
        """Entry, step and model of each checkpoint of all series."""
        return [(m, step, one) for m in self.models for step, one in m.checkpoints().items()]

    def by_name(self) -> dict[str, PretrainedModel]:
        """Every model that is measured by its name: single ones, then checkpoints."""
        measured = [model for model in self.models if model.steps is None]
        measured += [model for _, _, model in self.series()]
        return {model.name: model for model in measured}

    def probes(self) -> dict[str, Measured]:
        return {name: model.decides for name, model in self.by_name().items()}

    def records(self) -> list[str]:
        return [f"probes/{name}/model.json" for name in self.by_name()]

    def tabulated(self, settings: Settings) -> list[str]:
        files = (*(f"{name}.csv" for name in PROBED), "model.json")
        return [f"pretrained/probes/{name}/{file}" for name in self.probes() for file in files]

    def tabulation(self, settings: Settings) -> PretrainedTables:
        def listed(model: PretrainedModel) -> dict[str, Any]:
            return {name: getattr(model, name) for name in Listed.model_fields}

        return PretrainedTables(
            models=[Listed(**listed(model)) for model in self.models if model.steps is None],
            resamples=self.resamples,
            level=settings.level,
            series=[
                Checkpoint(**listed(model), model=entry.name, step=step)
                for entry, step, model in self.series()
            ],
        )

    def jobs(self) -> Iterator[Job]:
        for name in self.by_name():
            yield Job("pretrained_probe", name, "", 1)


def check_prompts(path: Path) -> None:
    """Whether models can be measured on the prompts of a file, and its names stand in tables.

    Raises:
        PromptsError: they cannot; with the file, the name and the reason.
    """
    prompts = read_prompts(path)
    if SET not in {prompt.set for prompt in prompts}:
        raise PromptsError(f"{path} has no set {SET}: statistics over prompts are of it")
    for prompt in prompts:
        for name in (prompt.set, prompt.category, prompt.name):
            try:
                survives_tables(name)
            except ValueError as e:
                raise PromptsError(f"{path}: sets.{prompt.set}.{prompt.category}: {e}") from None


def check_steps(study: Pretrained) -> None:
    """Check that the local checkpoints of all series exist; a hub is asked when one is measured.

    Raises:
        Explained: names every directory without a model.
    """
    missing = [
        f"{entry.name}: step {step}: {model.source} has no config.json"
        for entry, step, model in study.series()
        if isinstance(model.source, DirectorySource)
        and not Path(model.source.path, "config.json").is_file()
    ]
    if missing:
        raise Explained("\n  ".join(["pretrained.models: checkpoints are missing:", *missing]))
