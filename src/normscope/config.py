"""The configuration, ``config.yaml``: these models are its one definition.

``workflow/schemas/config.schema.json`` is generated from them. What is wrong in a configuration is
reported before any job starts, all keys at once: the key, the reason, the allowed values. No torch
in here: the workflow reads this module for every job.
"""

import difflib
import json
import re
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from normscope.errors import Explained
from normscope.io.corpus import SHA256, Line, Source
from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Model, Placement
from normscope.schema import Distinct, PositiveFloat, PositiveInt, Seed, Some, Strict, distinct
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.recall.grid import Recall
from normscope.train.recipe import Run, Training


class ConfigError(Explained):
    """The configuration is wrong; the message names every key, reason and way out."""


def _name(arm: str, placement: str, seed: int) -> str:
    return f"{arm}-{placement}-{seed}"


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
    def decides(self) -> dict[str, str]:
        """What decides the tokens; which source had the text does not."""
        if self.directory is not None:
            # after ./ a name is neither read as a flag nor as None
            is_absolute = self.directory.startswith("/")
            return {"directory": self.directory if is_absolute else f"./{self.directory}"}
        assert self.sha256 is not None
        return {"sha256": self.sha256}


class Grid(Strict):
    """One block of runs: every arm with every placement and every seed."""

    arms: Annotated[list[ArmName], Some, Distinct]
    placements: Annotated[list[Placement], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def identity_has_no_place(self) -> Self:
        for arm in self.arms:
            for placement in self.placements:
                if ARMS[arm].norm.is_identity != (placement == "none"):
                    raise ValueError(
                        f"arm {arm} with placement {placement}: an arm that normalizes goes with "
                        "pre, post or peri; an identity such as none with placement none"
                    )
        return self


class Baseline(Strict):
    """What the other arms are compared with, seed by seed."""

    arm: ArmName
    placement: Placement


class Gain(Strict):
    """Residual gain of the trained models."""

    windows: PositiveInt = Field(description="windows of validation text, spread evenly")


class Figures(Strict):
    """How figures look; changing it draws and nothing else."""

    width_mm: PositiveFloat = Field(description="width on paper")
    font_pt: PositiveFloat = Field(description="size of text on paper")


class Config(Strict):
    """All choices of the workflow."""

    dataset: Dataset
    model: Model
    training: Training
    runs: Annotated[list[Grid], Some]
    baseline: Baseline
    level: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.95, description="confidence level of every interval"
    )
    margin_sds: PositiveFloat = Field(
        default=2.0,
        description="what counts as no difference: so many standard deviations of the baseline's "
        "seeds",
    )
    gain: Gain
    recall: Recall
    jacobian: Jacobian
    depth: Depth
    pretrained: Pretrained
    figures: Figures

    def _cells(self) -> list[tuple[str, Placement, int]]:
        """Arm, placement and seed of every run, in the order of the configuration."""
        return [
            (arm, placement, seed)
            for grid in self.runs
            for arm in grid.arms
            for placement in grid.placements
            for seed in grid.seeds
        ]

    @model_validator(mode="after")
    def main_runs_have_exact_gradients(self) -> Self:
        for key in ("feedback", "norm_backward", "surrogates_in"):
            if getattr(self.model, key) != Model.model_fields[key].default:
                raise ValueError(f"model.{key}: the main runs have exact gradients; see jacobian")
        return self

    @model_validator(mode="after")
    def runs_are_distinct(self) -> Self:
        cells = self._cells()
        distinct([_name(*cell) for cell in cells])
        baseline = (self.baseline.arm, self.baseline.placement)
        if baseline not in {cell[:2] for cell in cells}:
            raise ValueError(f"baseline: no run of {'-'.join(baseline)} among runs")
        return self

    def trained(self) -> dict[str, Run]:
        """Every run to train, by the name of its directory."""
        return {
            _name(arm, placement, seed): Run(
                norm=ARMS[arm].norm,
                placement=placement,
                seed=seed,
                model=self.model,
                training=self.training,
            )
            for arm, placement, seed in self._cells()
        }


def load(raw: dict[str, Any]) -> Config:
    """Validate a parsed ``config.yaml``.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    try:
        return Config.model_validate(raw, strict=True)
    except ValidationError as e:
        problems = "\n".join(f"  {_explain(error)}" for error in e.errors(include_url=False))
        raise ConfigError(
            f"the configuration has {e.error_count()} problem(s):\n{problems}"
        ) from None


def _explain(error: Any) -> str:
    """One line: the key as it is written in YAML, what is wrong, what is allowed."""
    key = ".".join(str(part) for part in error["loc"]) or "configuration"
    if error["type"] == "extra_forbidden":
        allowed = _allowed_keys(error["loc"][:-1])
        near = difflib.get_close_matches(str(error["loc"][-1]), allowed, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"{key}: unknown key; {hint}allowed here: {', '.join(allowed)}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("missing", "value_error"):
        return f"{key}: {message}"
    got = error["input"]
    hint = ""
    if isinstance(got, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", got):
        hint = f"; YAML reads it as text: write {Decimal(got):f}"
    return f"{key}: {message}, got {got!r} ({type(got).__name__}){hint}"


def _allowed_keys(loc: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at a place of the configuration, read from the generated schema."""
    schema = Config.model_json_schema()
    node = schema
    for part in loc:
        if isinstance(part, int):
            node = node["items"]
        elif "discriminator" in node:
            node = {"$ref": node["discriminator"]["mapping"][part]}
        else:
            node = node["properties"][part]
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return list(node["properties"])


if __name__ == "__main__":
    print(json.dumps(Config.model_json_schema(), indent=2, sort_keys=True))
