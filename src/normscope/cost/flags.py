"""Flags of the scripts that price jobs, and what they say of this machine."""

from pathlib import Path

from pydantic import Field

from normscope.config import Config
from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.projection import Costs
from normscope.cost.reference import read_reference
from normscope.schema import Strict


class CostFlags(Strict):
    """A configuration, and where the times of jobs are."""

    config: str = Field(description="the validated configuration as JSON")
    reference: Path = Field(description="what jobs cost on another machine")
    manifest: Path = Field(description="of the run that the benchmark files are of")
    benchmarks: Path = Field(description="directory of benchmark files")

    def priced(self) -> tuple[Config, Costs]:
        """The configuration, and what jobs cost here, by a probe of this machine's speed."""
        config = Config.model_validate_json(self.config)
        reference = read_reference(self.reference)
        known = measured(self.benchmarks, self.manifest, config)
        return config, Costs(reference, known, probe().round_s / reference.round_s)
