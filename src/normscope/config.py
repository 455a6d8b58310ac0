"""The configuration, ``config.yaml``: these models are its one definition.

``make schema`` writes them as a JSON schema for editors. What is wrong in a configuration is
reported before any job starts, all keys at once: the key, the reason, the allowed values. No torch
in here: the workflow reads this module for every job.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache, cached_property, reduce
from itertools import islice
from operator import getitem
from reprlib import Repr
from textwrap import shorten
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from normscope.errors import Explained, suggest
from normscope.io.corpus import SHA256, Line, Origin, Source
from normscope.schema import PositiveFloat, Strict
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.main.grid import Main
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.recall.grid import Recall
from normscope.studies.study import Settings, Study
from normscope.studies.textbook.grid import Textbook

LARGEST = 2**63  # seeds are below it, and all else is far below
LONGEST_NAME = 200  # of a job; file systems allow 255 with the endings
LONGEST = 100  # characters of a key or a value that a message repeats
# aliases of YAML can make a value of a few lines that is too large to be written out
SHOWN = Repr()
SHOWN.maxlevel, SHOWN.maxstring, SHOWN.maxlong, SHOWN.maxother = 2, LONGEST, LONGEST, LONGEST


class ConfigError(Explained):
    """The configuration is wrong; the message names every key, reason and way out."""


class Dataset(Strict):
    """The corpus: raw text from the first source that has it, or a nanoGPT-format directory."""

    sha256: SHA256 | None = Field(default=None, description="of the raw text")
    sources: list[Source] = Field(default=[], description="tried in turn")
    directory: Line | None = Field(
        default=None, description="with train.bin, val.bin and meta.pkl; used instead of sources"
    )

    @model_validator(mode="after")
    def has_an_origin(self) -> Self:
        if self.directory is None and (self.sha256 is None or not self.sources):
            raise ValueError("give sha256 and at least one source, or a directory")
        return self

    @property
    def decides(self) -> Origin:
        """What decides the tokens; which source had the text does not."""
        if self.directory is not None:
            return Origin(directory=self.directory)
        return Origin(sha256=self.sha256)


class Figures(Strict):
    """How figures look; changing it draws and nothing else."""

    width_mm: Annotated[PositiveFloat, Field(ge=50, le=1000)] = Field(description="width on paper")
    font_pt: Annotated[PositiveFloat, Field(ge=4, le=40)] = Field(
        description="size of text on paper"
    )


class Studies(Main):
    """All that is measured: every study's part, and what all of them share.

    The main study's keys stand at the top, as they are what most people change; every other study
    has a part of its own.
    """

    level: Annotated[float, Field(gt=0, le=0.9999)] = Field(
        default=0.95, description="confidence level of every interval"
    )
    recall: Recall
    jacobian: Jacobian
    depth: Depth
    textbook: Textbook
    pretrained: Pretrained

    @cached_property
    def main(self) -> Main:
        """The main study's part alone."""
        return Main(**{key: getattr(self, key) for key in Main.model_fields})

    @cached_property
    def studies(self) -> dict[str, Study]:
        """Every study by its name, in the order of the page."""
        parts = {name: part for name, part in self if isinstance(part, Study)}
        return {"main": self.main, **parts}

    @property
    def longest_context(self) -> int:
        """Tokens of the longest window of text that any job reads."""
        return max(study.context() for study in self.studies.values())

    @property
    def settings(self) -> Settings:
        """What all studies share."""
        return Settings(level=self.level, baseline=self.main.reference_jobs)


class Config(Studies):
    """All choices of the workflow."""

    dataset: Dataset
    figures: Figures
    demonstration: bool = Field(
        default=False,
        description="whether the models are too small or too few to test a statement: the page"
        " opens with a notice in place of the verdicts",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="what trains and probes; auto: a GPU where torch can use one"
    )

    @model_validator(mode="before")
    @classmethod
    def numbers_can_be_counted(cls, raw: Any) -> Any:
        """The work of jobs is a product of such numbers, and must be a finite one."""
        if huge := list(islice(_huge(raw, (), set()), 5)):
            raise ValueError(f"{', '.join(huge)}: a whole number is below {LARGEST:,}")
        return raw

    @model_validator(mode="after")
    def jobs_can_be_named(self) -> Self:
        """Files are named after jobs, with an ending."""
        for study, part in self.studies.items():
            for name in (*part.trainings(), *part.probes()):
                if len(name) > LONGEST_NAME:
                    where = "runs" if study == "main" else study
                    raise ValueError(
                        f"{where}: the name of a job has {len(name)} characters, more than the "
                        f"{LONGEST_NAME} of which files can be named ({name[:LONGEST]}...): give "
                        "learning_rates with fewer digits, or the protocol a shorter name"
                    )
        return self


def load(raw: dict[str, Any]) -> Config:
    """Validate a parsed ``config.yaml``.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    try:
        return Config.model_validate(raw, strict=True)
    except ValidationError as e:
        places: dict[str, list[str]] = {}  # what is wrong in many is said once
        for error in e.errors(include_url=False):
            place, problem = _explain(error)
            problem = shorten(problem, 800, placeholder=" ...")
            places.setdefault(problem, []).append(place)
        lines = "".join(f"\n  {', '.join(keys)}: {problem}" for problem, keys in places.items())
        raise ConfigError(f"the configuration has {len(places)} problem(s):{lines}") from None


def laid_over(base: Any, choices: Any) -> Any:
    """A configuration with choices laid over it, key by key; a list is replaced as a whole."""
    if not (isinstance(base, Mapping) and isinstance(choices, Mapping)):
        return choices
    return {**base, **{key: laid_over(base.get(key), choices[key]) for key in choices}}


def typed(raw: Any) -> Any:
    """A configuration with numbers and truth values also where they are given as text.

    Snakemake hands what stands in braces or brackets of ``--config`` on as text, to a module too.
    It is read as YAML where a key wants no text, and only there.
    """
    raw = copy.deepcopy(raw)
    try:
        Config.model_validate(raw, strict=True)
    except ValidationError as e:
        for error in e.errors(include_url=False):
            text = error["input"]
            if error["type"] in ("int_type", "float_type", "bool_type") and isinstance(text, str):
                *way, last = [part for part, _ in _walk(error["loc"]) if part is not None]
                with suppress(yaml.YAMLError):  # text that is none is left, and is refused as such
                    reduce(getitem, way, raw)[last] = yaml.safe_load(text)
    return raw


def _huge(node: Any, at: tuple[str, ...], seen: set[int]) -> Iterator[str]:
    """The keys of numbers that are too large; a part that aliases repeat is looked at once."""
    if isinstance(node, int) and abs(node) >= LARGEST:
        yield ".".join(at)
    elif isinstance(node, Mapping | list) and id(node) not in seen:
        seen.add(id(node))
        for key, part in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from _huge(part, (*at, _named(key)), seen)


def _explain(error: Any) -> tuple[str, str]:
    """The key as it is written in YAML; what is wrong with it, and what is allowed."""
    key = ".".join(map(_named, error["loc"])) or "configuration"
    if error["type"] == "extra_forbidden":
        allowed = _allowed_keys(error["loc"][:-1])
        return key, f"unknown key; {_nested(error['loc'][-1], allowed)}"
    message = _one_line(error["msg"].removeprefix("Value error, "))
    if error["type"] == "model_type":
        message = "Input should be keys with values"
    if error["type"] in ("missing", "value_error"):
        return key, message
    got = error["input"]
    hint = ""
    if isinstance(got, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", got):
        hint = f"; YAML reads it as text: write {Decimal(got):f}"
    return key, f"{message}, got {SHOWN.repr(got)} ({type(got).__name__}){hint}"


def _named(part: int | str) -> str:
    """A part of a place on one line, however hostile a key is."""
    text = str(part)
    return text if text.isprintable() and text and len(text) <= LONGEST else SHOWN.repr(text)


def _one_line(text: str) -> str:
    """The text without line ends and control characters, which a value may bring along."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _nested(key: str, allowed: list[str]) -> str:
    """The way out for an unknown key: with dots as nested keys, else as the nearest key."""
    first, *rest = key.split(".")
    if first not in allowed or not rest:
        return suggest(_named(key), allowed)
    inner = "".join(f"{{{part}: " for part in rest) + "..." + "}" * len(rest)
    return f"nest what is written with dots: {first}: {inner}"


@cache
def _schema() -> dict[str, Any]:
    return Config.model_json_schema()


def _walk(loc: tuple[int | str, ...]) -> Iterator[tuple[int | str | None, dict[str, Any]]]:
    """The parts of a place with their nodes in the generated schema.

    A part that no key or index stands for, but one of several forms, is None.
    """
    node = schema = _schema()
    for part in loc:
        has_forms = "discriminator" in node
        if isinstance(part, int):
            node = node["items"]
        elif has_forms:
            node = {"$ref": node["discriminator"]["mapping"][part]}
        elif part in node.get("properties", {}):
            node = node["properties"][part]
        else:  # a name that the configuration gives
            (node,) = node["patternProperties"].values()
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        yield (None if has_forms else part), node


def _allowed_keys(loc: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at a place of the configuration."""
    nodes = [_schema(), *(node for _, node in _walk(loc))]
    return list(nodes[-1]["properties"])


if __name__ == "__main__":
    print(json.dumps(Config.model_json_schema(), indent=2, sort_keys=True))
