"""The main study's part of the configuration: one Transformer per cell and seed."""

from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.nn.arms import ARMS
from normscope.nn.recipe import Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Strict
from normscope.studies.cells import Cell
from normscope.studies.main import tables
from normscope.studies.main.recipe import MainTables, StreamProbe
from normscope.studies.protocols import Baseline, ProtocolGrid, ProtocolName, ProtocolStudy
from normscope.studies.study import Settings, Stages
from normscope.verdicts.vocabulary import Vocabulary

NANOGPT = "nanogpt"  # the protocol that is compared with published numbers


class Gain(Strict):
    """Residual gain of the trained models."""

    windows: PositiveInt = Field(description="windows of validation text, spread evenly")
    protocols: Annotated[list[ProtocolName], NonEmpty, Distinct] = Field(
        description="whose models are measured"
    )


class Main(ProtocolStudy):
    """One Transformer per protocol, arm, placement, learning rate and seed."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(
        probed=("stream", "laws"),
        files=("published.csv", "nanogpt_cpu.json", "nanogpt_gpu.json"),
    )

    runs: Annotated[list[ProtocolGrid], NonEmpty]
    baseline: Baseline
    gain: Gain

    @model_validator(mode="after")
    def runs_fit(self) -> Self:
        for i, name in enumerate(self.gain.protocols):
            if name not in self.protocols:
                known = ", ".join(self.protocols)
                raise ValueError(f"gain.protocols.{i}: unknown protocol {name!r}; known: {known}")
        _ = self.reference
        return self

    @property
    def reference(self) -> Cell:
        """The baseline under nanoGPT's protocol, at the first rate that runs have of it.

        Raises:
            ValueError: no run has it.
        """
        arm, placement = self.baseline.arm, self.baseline.placement
        for cell, _ in self.models():
            if cell[:-1] == (NANOGPT, arm, placement):
                return cell
        raise ValueError(f"baseline: no run of {NANOGPT}-{arm}-{placement} among runs")

    @property
    def reference_jobs(self) -> list[str]:
        """Names of the jobs that train the baseline's reference."""
        reference = self.reference
        return [name for name, cell in self.cells().items() if cell == reference]

    @property
    def batch_sizes(self) -> list[dict[str, int]]:
        """Batch sizes by protocol, of protocols that differ in nothing else."""
        alike: dict[str, dict[str, int]] = {}
        for name, protocol in self.protocols.items():
            rest = protocol.model_dump_json(exclude={"training": {"batch_size"}})
            alike.setdefault(rest, {})[name] = protocol.training.batch_size
        return [sizes for sizes in alike.values() if len(sizes) > 1]

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            {
                "protocol": self.protocols,
                "arm": ARMS,
                "placement": get_args(Placement),
                "text": dict.fromkeys(p.text for p in self.protocols.values()),
            }
        )

    def probes(self) -> dict[str, StreamProbe]:
        measured = [n for n, cell in self.cells().items() if cell.protocol in self.gain.protocols]
        return dict.fromkeys(measured, StreamProbe(windows=self.gain.windows))

    def tabulated(self, settings: Settings) -> list[str]:
        # its settings are compared with those of the published numbers
        reference = f"main/models/{self.reference_jobs[0]}/config.json"
        return [*super().tabulated(settings), reference]

    def tabulation(self, settings: Settings) -> MainTables:
        return MainTables(
            **self.model_tables(settings),
            probed=list(self.probes()),
            baseline=self.reference,
            batch_sizes=self.batch_sizes,
        )
