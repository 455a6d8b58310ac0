"""The definition of ``config.yaml``: the parts of all studies, and what they share.

``make schema`` writes these models as a JSON schema for editors. Errors are reported before any job
starts, in one message that gives for each problem the key, the reason and the allowed values. This
module does not import torch, because the workflow imports it for every job.
"""

import json
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from normscope.custom_arms import CustomArms
from normscope.errors import LONGEST, Explained, explain, suggest
from normscope.io.corpus import SHA256, LocalPath, Origin, Source
from normscope.io.texts import DATASET, TextName
from normscope.schema import PositiveFloat, Strict
from normscope.studies.card.grid import Card
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.main.grid import Main
from normscope.studies.norms.grid import Norms
from normscope.studies.pilot import Pilot
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.recall.grid import Recall
from normscope.studies.study import Settings, Study, TrainedStudy
from normscope.studies.textbook.grid import Textbook

LONGEST_NAME = 200  # characters of a job's name; file systems allow 255 with the suffix


class ConfigError(Explained):
    """An invalid configuration. The message lists all keys, with reasons and remedies."""


class Dataset(Strict):
    """The corpus: raw text from the first source that has it, or a nanoGPT-format directory."""

    sha256: SHA256 | None = Field(default=None, description="of the raw text")
    sources: list[Source] = Field(default=[], description="tried in turn")
    directory: LocalPath | None = Field(
        default=None, description="with train.bin, val.bin and meta.pkl; used instead of sources"
    )

    @model_validator(mode="after")
    def has_an_origin(self) -> Self:
        if self.directory is None and (self.sha256 is None or not self.sources):
            raise ValueError("give sha256 and at least one source, or a directory")
        return self

    @property
    def decides(self) -> Origin:
        """What determines the tokens: the hash of the text, whatever its source, or a directory."""
        if self.directory is not None:
            return Origin(directory=self.directory)
        return Origin(sha256=self.sha256)


class Figures(Strict):
    """The style of figures. A change redraws them and reruns nothing else."""

    width_mm: Annotated[PositiveFloat, Field(ge=50, le=1000)] = Field(description="width on paper")
    font_pt: Annotated[PositiveFloat, Field(ge=4, le=40)] = Field(
        description="size of text on paper"
    )


def _whole_percent(level: float) -> float:
    """Captions name the level in whole percents."""
    if abs(100 * level - round(100 * level)) > 1e-9:
        raise ValueError("give a whole percent, such as 0.9, 0.95 or 0.99")
    return level


class Studies(Strict):
    """The configurations of all studies, by name, and what they share."""

    level: Annotated[float, Field(gt=0, lt=1), AfterValidator(_whole_percent)] = Field(
        default=0.95, description="confidence level of every interval, a whole percent"
    )
    pilot: Pilot = Pilot()
    arms: CustomArms = Field(
        default={}, description="arms whose norms have code of their own, by name"
    )
    card: Card | None = Field(default=None, description="norms whose card is made")
    norms: Norms
    main: Main
    recall: Recall
    jacobian: Jacobian
    depth: Depth
    textbook: Textbook
    pretrained: Pretrained

    @model_serializer(mode="wrap")
    def _without_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Settings without custom arms and cards keep the digest that they had before these."""
        unused = {key for key in ("arms", "card") if not getattr(self, key)}
        return {key: value for key, value in serialize(self).items() if key not in unused}

    @cached_property
    def every_study(self) -> dict[str, Study]:
        """The configuration of each study by name, and that of the card if one is made."""
        return {name: part for name, part in self if isinstance(part, Study)}

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The configuration of each study of the paper by name, in the order of the page."""
        return {name: part for name, part in self.every_study.items() if part.IN_PAPER}

    @property
    def trained_studies(self) -> dict[str, TrainedStudy]:
        """The configuration of each study that trains models, by name."""
        return {k: part for k, part in self.studies.items() if isinstance(part, TrainedStudy)}

    @property
    def titles(self) -> dict[str, Any]:
        """The titles of protocols, which decide no result: for ``exclude`` of ``model_dump``."""
        studies = [name for name, part in self.studies.items() if hasattr(part, "protocols")]
        return {name: {"protocols": {"__all__": {"title"}}} for name in studies}

    @cached_property  # each rule that makes a text asks for it
    def longest_context(self) -> int:
        """Length in tokens of the longest window of text that any job reads."""
        return max(study.context() for study in self.every_study.values())

    @cached_property
    def texts_read(self) -> list[str]:
        """Names of the texts that jobs read; the default text comes first."""
        names = (name for study in self.every_study.values() for name in study.texts_read)
        return [*dict.fromkeys([DATASET, *names])]

    @cached_property
    def settings(self) -> Settings:
        """The settings that all studies share."""
        return Settings(level=self.level, baseline=self.main.reference_jobs, pilot=self.pilot)


class Config(Studies):
    """The configuration of the workflow."""

    dataset: Dataset
    texts: dict[TextName, Dataset] = Field(
        default={}, description="further texts by name, which protocols can use"
    )
    figures: Figures
    demonstration: bool = Field(
        default=False,
        description="whether the models are too small or too few to test a statement: the page"
        " opens with a notice in place of the verdicts",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="what trains and probes; auto: a GPU if torch can use one"
    )

    def settings_json(self, *excluded: str, titles: bool = False) -> str:
        """What decides results, as JSON: without where and on what device they are made.

        Args:
            excluded: further fields to leave out; figures decide no number.
            titles: whether the titles of protocols are added, which pages show.
        """
        left_out = dict.fromkeys(("dataset", "texts", "device", "demonstration", *excluded), True)
        return self.model_dump_json(exclude=left_out if titles else left_out | self.titles)

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of what decides the results of each study, by name: its settings and texts."""
        settings = json.loads(self.settings_json())
        digests = {}
        for name, study in self.studies.items():
            hashes = [self.every_text[text].decides.model_dump() for text in study.texts_read]
            decides = json.dumps([self.level, settings[name], hashes], sort_keys=True)
            digests[name] = sha256(decides.encode()).hexdigest()
        return digests

    @property
    def every_text(self) -> dict[str, Dataset]:
        """All texts by name; the default text comes first."""
        return {DATASET: self.dataset, **self.texts}

    @model_validator(mode="after")
    def texts_exist(self) -> Self:
        if DATASET in self.texts:
            raise ValueError(f"texts.{DATASET}: this name is that of the default text")
        places = {"pilot.texts": self.pilot.texts} | {
            f"{study.name}.protocols.{name}.texts": protocol.texts
            for study in self.studies.values()
            for name, protocol in getattr(study, "protocols", {}).items()
        }
        for place, texts in places.items():
            for text in texts:
                if text not in (known := self.every_text):
                    raise ValueError(f"{place}: unknown text {text!r}; {suggest(text, known)}")
                if place != "pilot.texts" and len(texts) > 1 and text in self.pilot.texts:
                    raise ValueError(f"{place}: {text} is one of pilot.texts: give another text")
        return self

    @model_validator(mode="after")
    def jobs_can_be_named(self) -> Self:
        """Check the lengths of job names, which become names of files."""
        for study, part in self.every_study.items():
            for name in (*part.trainings(), *part.probes()):
                if len(name) > LONGEST_NAME:
                    raise ValueError(
                        f"{study}: the name of a job has {len(name)} characters, more than the "
                        f"{LONGEST_NAME} of which files can be named ({name[:LONGEST]}...): give "
                        "learning_rates with fewer digits, or the protocol a shorter name"
                    )
        return self


def load(raw: dict[str, Any]) -> Config:
    """Validate a parsed ``config.yaml``.

    Numbers may be given as text, such as ``1e-3`` in YAML, or values in braces on a command line.
    """
    try:
        return Config.model_validate(raw, strict=True)
    except ValidationError as e:
        errors: list[Any] = e.errors(include_url=False)
    try:  # text may be converted, but true is not a number
        config, unconverted = Config.model_validate(raw), {}
    except ValidationError as e:
        config, unconverted = None, {one["loc"]: one for one in e.errors(include_url=False)}
    others = [error for error in errors if not _is_text(error)]
    if config is not None and not others:
        return config
    errors = [
        unconverted.get(error["loc"], error)
        for error in errors
        if error in others or error["loc"] in unconverted
    ] or [*unconverted.values()]
    lines = explain(errors, Config.model_json_schema, "configuration")
    raise ConfigError("\n  ".join([f"the configuration has {len(lines)} problem(s):", *lines]))


def _is_text(error: Any) -> bool:
    """Whether an error is text where a number or a Boolean is needed, which may be converted."""
    kinds = ("int_type", "float_type", "bool_type")
    return isinstance(error["input"], str) and error["type"] in kinds


if __name__ == "__main__":
    print(json.dumps(Config.model_json_schema(), indent=2, sort_keys=True))
