"""The main study's part of the configuration: one Transformer per cell and seed."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Placement
from normscope.schema import Distinct, NonEmpty, PositiveInt, Strict
from normscope.studies.cells import Cell
from normscope.studies.main import tables
from normscope.studies.main.recipe import STARTS, MainTables, Probe, Starts, Untrained
from normscope.studies.protocols import Baseline, ProtocolGrid, ProtocolName, ProtocolStudy
from normscope.studies.study import Settings, Stages, build_part
from normscope.verdicts.vocabulary import Vocabulary

OF_STARTS = ("/networks.csv", "/towers.csv")  # the tables of untrained networks
NANOGPT = "nanogpt"  # the protocol that is compared with published numbers


class Gain(Strict):
    """Residual gain of the trained models."""

    windows: PositiveInt = Field(description="windows of validation text, spread evenly")
    protocols: Annotated[list[ProtocolName], NonEmpty, Distinct] = Field(
        description="whose models are measured"
    )


class Measures(Strict):
    """What statements of papers need: measures of blocks, of attention and of norms."""

    windows: PositiveInt = Field(description="windows of validation text")
    protocols: Annotated[list[ProtocolName], Distinct] = Field(
        description="whose models are measured"
    )


class UntrainedGrid(Untrained):
    """Networks of several depths at the start: every combination of arm, placement and depth."""

    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    placements: Annotated[list[Placement], NonEmpty, Distinct]
    towers: Annotated[list[ArmName], NonEmpty, Distinct] = Field(
        description="arms of the towers of attention"
    )

    @model_validator(mode="after")
    def depths_have_a_slope(self) -> Self:
        if len(self.depths) < 2:
            raise ValueError("depths: slopes over the depth need at least two")
        return self

    @model_validator(mode="after")
    def placements_fit(self) -> Self:
        for arm in self.arms:
            for placement in self.placements:
                check_placement(arm, placement)
        return self

    def starts(self) -> Starts:
        """What is measured of them."""
        return Starts(
            **self.model_dump(include={*Untrained.model_fields}),
            norms={arm: ARMS[arm].norm for arm in self.arms},
            placements=self.placements,
            towers={arm: ARMS[arm].norm for arm in self.towers},
        )


class Refined(Strict):
    """Models that are trained further with the sigma of each norm frozen, and of all norms."""

    protocols: Annotated[list[ProtocolName], Distinct] = Field(
        description="whose models with LayerNorm or RMSNorm in pre-norm these are"
    )
    steps: PositiveInt


class Main(ProtocolStudy):
    """One Transformer per protocol, arm, placement, learning rate and seed; untrained networks."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(
        probe_tables=("stream", "laws", "models", "blocks", "norms", "networks", "towers"),
        files=("published.csv", "nanogpt_cpu.json", "nanogpt_gpu.json"),
    )

    runs: Annotated[list[ProtocolGrid], NonEmpty]
    baseline: Baseline
    gain: Gain
    measures: Measures
    refined: Refined
    differences: Baseline = Field(
        description="the arm and the placement that the table of this name compares others with"
    )
    untrained: UntrainedGrid

    @model_validator(mode="after")
    def runs_fit(self) -> Self:
        parts = {
            "gain": (self.gain, self.protocols),
            "measures": (self.measures, self.protocols),
            "refined": (self.refined, self.measures.protocols),
        }
        for key, (part, known) in parts.items():
            for i, name in enumerate(part.protocols):
                if name not in known:
                    raise ValueError(
                        f"{key}.protocols.{i}: unknown protocol {name!r}; known: {', '.join(known)}"
                    )
        _ = self.reference
        return self

    @model_validator(mode="after")
    def untrained_fit(self) -> Self:
        grid = self.untrained
        build_part("untrained", lambda: [grid.model(depth) for depth in [*grid.depths, grid.tower]])
        return self

    @property
    def reference(self) -> Cell:
        """The baseline under nanoGPT's protocol, at the first rate that runs have of it."""
        arm, placement = self.baseline.arm, self.baseline.placement
        for cell in self.cells().values():
            if cell[:-1] == (NANOGPT, arm, placement):
                return cell
        raise ValueError(f"baseline: no run of {NANOGPT}-{arm}-{placement} among runs")

    @property
    def reference_jobs(self) -> list[str]:
        """Names of the jobs that train the baseline's reference."""
        reference = self.reference
        return [name for name, cell in self.cells().items() if cell == reference]

    def _alike(self, key: str) -> list[dict[str, Any]]:
        """Values of a key of the training by protocol, of protocols that differ in nothing else."""
        alike: dict[str, dict[str, Any]] = {}
        for name, protocol in self.protocols.items():
            rest = protocol.model_dump_json(exclude={"title": True, "training": {key}})
            alike.setdefault(rest, {})[name] = getattr(protocol.training, key)
        return [values for values in alike.values() if len({*values.values()}) > 1]

    @property
    def batch_sizes(self) -> list[dict[str, int]]:
        """Batch sizes by protocol, of protocols that differ in nothing else."""
        return self._alike("batch_size")

    def _titles_of(self, is_shown: Callable[[str, set[tuple[str, str]]], bool]) -> dict[str, str]:
        """Titles of the protocols of which a figure shows the trained norms and placements."""
        cells: dict[str, set[tuple[str, str]]] = {}
        for cell in self.cells().values():
            cells.setdefault(cell.protocol, set()).add((cell.arm, cell.placement))
        return {k: t for k, t in self.titles.items() if k in cells and is_shown(k, cells[k])}

    @property
    def optimizers(self) -> dict[str, str]:
        """Titles of the trained protocols that differ in the optimizer alone from others."""
        families = [values.keys() for values in self._alike("optimizer")]
        known = self._titles_of(lambda key, cells: any(key in family for family in families))
        shown = {key for family in families if len(of := family & known.keys()) > 1 for key in of}
        return {key: title for key, title in known.items() if key in shown}

    @property
    def placement_protocols(self) -> dict[str, str]:
        """Titles of the protocols with a norm at more than three placements."""
        return self._titles_of(
            lambda key, cells: Counter(arm for arm, _ in cells).most_common(1)[0][1] > 3
        )

    @property
    def normless(self) -> dict[str, str]:
        """Titles of the measured protocols with two norms or more, and models without a norm."""
        return self._titles_of(
            lambda key, cells: (
                key in self.measures.protocols
                and ("none", "none") in cells
                and len({arm for arm, _ in cells}) > 2
            )
        )

    def context(self) -> int:
        return max(super().context(), self.untrained.block_size)

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            {
                "protocol": self.protocols,
                "arm": ARMS,
                "placement": get_args(Placement),
                "text": {text: None for p in self.protocols.values() for text in p.texts},
            }
        )

    def probes(self) -> dict[str, Probe]:
        probes = {name: self._probe(cell) for name, cell in self.cells().items()}
        measured = {name: probe for name, probe in probes.items() if probe.stream or probe.inside}
        return {**measured, STARTS: Probe(starts=self.untrained.starts())}

    def _probe(self, cell: Cell) -> Probe:
        """What is measured of the models of a cell."""
        norm, is_pre = ARMS[cell.arm].norm, cell.placement == "pre"
        is_refined = cell.protocol in self.refined.protocols and is_pre and norm.has_surrogates
        return Probe(
            stream=self.gain.windows if cell.protocol in self.gain.protocols else 0,
            inside=self.measures.windows if cell.protocol in self.measures.protocols else 0,
            refined=self.refined.steps if is_refined else 0,
        )

    def jobs_of_probe(self, name: str) -> list[str]:
        return [] if name == STARTS else [name]

    def table_inputs(self, settings: Settings) -> list[str]:
        def is_read(path: str) -> bool:
            probe = path.removeprefix("main/probes/")
            return probe == path or probe.startswith(f"{STARTS}/") == probe.endswith(OF_STARTS)

        # its settings are compared with those of the published numbers
        reference = f"main/models/{self.reference_jobs[0]}/config.json"
        return [*filter(is_read, super().table_inputs(settings)), reference]

    def tabulation(self, settings: Settings) -> MainTables:
        return MainTables(
            **self.model_tables(settings),
            probed=[name for name in self.probes() if name != STARTS],
            baseline=self.reference,
            other_arm=self.differences.arm,
            other_placement=self.differences.placement,
            batch_sizes=self.batch_sizes,
        )
