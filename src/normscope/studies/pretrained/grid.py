"""Which pretrained models are measured: ``pretrained`` in the configuration. No torch."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from normscope.errors import Explained, suggest
from normscope.hub.prompts import PromptsError, read_prompts
from normscope.hub.recipe import DirectorySource, Measurement, ModelName, ModelReference
from normscope.io.corpus import Line
from normscope.io.files import SUMS
from normscope.io.names import survives_tables
from normscope.schema import PositiveInt, Strict, distinct
from normscope.studies.pretrained import tables
from normscope.studies.pretrained.measures import PROBED
from normscope.studies.study import Settings, Stages, Study


class ModelFacts(Strict):
    """Where a model stands among the others."""

    name: Annotated[ModelName, AfterValidator(survives_tables)]
    family: Annotated[Line, Field(max_length=100)] = Field(
        description="models of a family are no replicates"
    )
    tuned: bool = Field(default=False, description="fine-tuned: left out where norms are compared")
    base: ModelName | None = Field(
        default=None, description="name of the model that this one was fine-tuned from"
    )


class PretrainedModel(ModelReference, ModelFacts):
    """A model, and where it stands among the others."""

    @property
    def decides(self) -> Measurement:
        """What is measured: not its name and family, nor how long a download may take."""
        parts = {name: getattr(self, name) for name in ModelReference.model_fields}
        if (limit := type(self.source).model_fields.get("timeout_s")) is not None:
            parts["source"] = self.source.model_copy(update={"timeout_s": limit.default})
        return Measurement(**parts)


class PretrainedTables(Strict):
    """The settings of the tables."""

    models: list[ModelFacts]
    resamples: PositiveInt
    level: float


class Pretrained(Study):
    """Residual gain of pretrained models, compared with published values."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(  # workflow/rules/pretrained.smk measures its models
        model_files=(*(f"{name}.csv" for name in PROBED), "model.json", SUMS),
        reads_corpus=False,
        files=("prompts.yaml", "reference_gains.csv", "reference_prompts.csv"),
    )

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
        distinct(names)
        for model in self.models:
            if model.base is not None and model.base not in {*names} - {model.name}:
                raise ValueError(f"{model.name}: its base {model.base} is not among the models")
        return self

    def by_name(self) -> dict[str, PretrainedModel]:
        """Every model by its name."""
        return {model.name: model for model in self.models}

    def probes(self) -> dict[str, Measurement]:
        return {name: model.decides for name, model in self.by_name().items()}

    def records(self) -> list[str]:
        return [f"probes/{name}/model.json" for name in self.by_name()]

    def table_inputs(self, settings: Settings) -> list[str]:
        files = self.STAGES.model_files[:-1]
        return [f"pretrained/probes/{name}/{file}" for name in self.probes() for file in files]

    def tabulation(self, settings: Settings) -> PretrainedTables:
        def facts(model: PretrainedModel) -> dict[str, Any]:
            return {name: getattr(model, name) for name in ModelFacts.model_fields}

        return PretrainedTables(
            models=[ModelFacts(**facts(model)) for model in self.models],
            resamples=self.resamples,
            level=settings.level,
        )


def check_prompts(path: Path, study: Pretrained) -> None:
    """Whether a file has the prompts of every model, and its names stand in tables."""
    prompts = read_prompts(path)
    sets = {prompt.set for prompt in prompts}
    for name, model in study.by_name().items():
        if model.prompts not in sets:
            raise PromptsError(
                f"{path} has no set {model.prompts}, on which {name} is measured; "
                f"{suggest(model.prompts, sets)}"
            )
    for prompt in prompts:
        for name in (prompt.set, prompt.category, prompt.name):
            try:
                survives_tables(name)
            except ValueError as e:
                raise PromptsError(f"{path}: sets.{prompt.set}.{prompt.category}: {e}") from None


def check_directories(study: Pretrained) -> None:
    """Check that all local models exist; a hub is asked when a model is measured."""
    missing = [
        f"{name}: {model.source} has no config.json: give what save_pretrained wrote"
        for name, model in study.by_name().items()
        if isinstance(model.source, DirectorySource)
        and not Path(model.source.path, "config.json").is_file()
    ]
    if missing:
        raise Explained("\n  ".join(["pretrained.models: models are missing:", *missing]))
