"""The main study's part of the configuration: one Transformer per cell and seed."""

from typing import Annotated, ClassVar, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model, Placement
from normscope.schema import Distinct, PositiveInt, Some, Strict
from normscope.studies.cells import Cell
from normscope.studies.main import tables
from normscope.studies.main.recipe import MainTables, StreamProbe
from normscope.studies.protocols import Baseline, Protocol, ProtocolName, ProtocolStudy
from normscope.studies.study import Settings
from normscope.train.recipe import Training
from normscope.verdicts.vocabulary import Vocabulary

NANOGPT = "nanogpt"  # the protocol of the keys model and training


def _has_exact_gradients(model: Model) -> Model:
    for key in ("feedback", "norm_backward", "surrogates_in", "radial_share", "sigma_penalty"):
        if getattr(model, key) != Model.model_fields[key].default:
            raise ValueError(f"model.{key}: the main runs have exact gradients; see jacobian")
    return model


ExactModel = Annotated[Model, AfterValidator(_has_exact_gradients)]


class MainProtocol(Protocol):
    """Sizes and training that cells are compared under; the runs vary the rest."""

    model: ExactModel


class Gain(Strict):
    """Residual gain of the trained models."""

    windows: PositiveInt = Field(description="windows of validation text, spread evenly")
    protocols: Annotated[list[ProtocolName], Some, Distinct] = Field(
        description="whose models are measured"
    )


class Main(ProtocolStudy):
    """One Transformer per protocol, arm, placement, learning rate and seed."""

    TABLES: ClassVar = tables.TABLES
    PROBED: ClassVar = ("stream", "laws")
    FILES: ClassVar = ("published.csv", "nanogpt_cpu.json", "nanogpt_gpu.json")

    model: ExactModel
    training: Training
    protocols: dict[ProtocolName, MainProtocol] = Field(
        default={}, description=f"others than {NANOGPT}, which is that of model and training"
    )
    baseline: Baseline
    gain: Gain

    @property
    def every_protocol(self) -> dict[str, MainProtocol]:
        """Protocols by name, that of the keys ``model`` and ``training`` first."""
        return {NANOGPT: MainProtocol(model=self.model, training=self.training), **self.protocols}

    @model_validator(mode="after")
    def runs_fit(self) -> Self:
        if NANOGPT in self.protocols:
            raise ValueError(f"protocols.{NANOGPT}: its keys are model and training, at the top")
        known = self.every_protocol
        for i, name in enumerate(self.gain.protocols):
            if name not in known:
                raise ValueError(
                    f"gain.protocols.{i}: unknown protocol {name!r}; known: {', '.join(known)}"
                )
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
        for name, protocol in self.every_protocol.items():
            rest = protocol.model_dump_json(exclude={"training": {"batch_size"}})
            alike.setdefault(rest, {})[name] = protocol.training.batch_size
        return [sizes for sizes in alike.values() if len(sizes) > 1]

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            {
                "protocol": self.every_protocol,
                "arm": ARMS,
                "placement": get_args(Placement),
                "text": dict.fromkeys(p.text for p in self.every_protocol.values()),
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
        protocols = {grid.protocol: self.every_protocol[grid.protocol] for grid in self.runs}
        return MainTables(
            jobs=self.cells(),
            pilot=self.tuned(settings),
            probed=list(self.probes()),
            baseline=self.reference,
            batch_sizes=self.batch_sizes,
            texts={name: protocol.text for name, protocol in protocols.items()},
            eval_tokens={name: p.training.eval_tokens for name, p in protocols.items()},
            level=settings.level,
        )
