"""Jobs of a machine that is named, for machines without benchmark files of their own."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field

from normscope.io.yamlfile import read_yaml
from normscope.schema import NonNegativeFloat, PositiveFloat, Strict
from normscope.studies.study import Job


class Reference(Strict):
    """CPU seconds of jobs on one machine."""

    machine: str = Field(description="its chip, and how busy it was")
    round_s: PositiveFloat = Field(description="a round of the probe on it, normscope.cost.machine")
    start_s: NonNegativeFloat = Field(description="CPU seconds before a job's work: its imports")
    jobs: list[tuple[str, str, PositiveFloat, PositiveFloat]] = Field(
        description="rule, kind, work in the unit of the rule, CPU seconds with the start"
    )

    @cached_property
    def seconds(self) -> Mapping[Job, float]:
        """CPU seconds by job."""
        return {Job(rule, "", kind, work): s for rule, kind, work, s in self.jobs}


def read_reference(path: Path) -> Reference:
    """The table in a YAML file.

    Raises:
        Explained: it is no YAML.
        ValidationError: it is no such table.
    """
    return Reference.model_validate(read_yaml(path))
