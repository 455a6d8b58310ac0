"""The Jacobian's part of the configuration: which models it trains, and which it probes."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, model_validator

from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Attention, Feedback, Model, NormBackward, SurrogatesIn
from normscope.schema import Distinct, NonEmpty, NonNegativeFloat, PositiveInt, Rate, Share
from normscope.studies.jacobian import tables
from normscope.studies.jacobian.recipe import Cell, JacobianProbe, JacobianTables
from normscope.studies.protocols import ProtocolName, ProtocolStudy
from normscope.studies.study import Grid, Settings, Stages
from normscope.verdicts.vocabulary import Vocabulary

SET_BY_RUNS = {*Cell._fields} & Model.model_fields.keys()


class JacobianGrid(Grid):
    """One block of runs: the Cartesian product of its lists."""

    CELL: ClassVar = Cell

    protocol: ProtocolName
    arms: Annotated[list[ArmName], NonEmpty, Distinct]
    attention: Annotated[list[Attention], NonEmpty, Distinct]
    feedback: Annotated[list[Feedback], NonEmpty, Distinct]
    norm_backward: Annotated[list[NormBackward], NonEmpty, Distinct]
    surrogates_in: Annotated[list[SurrogatesIn], NonEmpty, Distinct] = Field(
        default=["all"], description="all with norm_backward exact, which replaces none"
    )
    radial_shares: Annotated[list[Annotated[Share, Field(gt=0)]], NonEmpty, Distinct] = Field(
        default=[1.0], description="left in by center_scale; the exact pass leaves none in"
    )
    sigma_penalties: Annotated[list[NonNegativeFloat], NonEmpty, Distinct] = Field(
        default=[0.0], description="weights of the penalty on sigma before the final norm"
    )
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct]

    @model_validator(mode="after")
    def has_cells(self) -> Self:
        if not list(self.cells()):
            raise ValueError(
                "norm_backward exact replaces nothing: give surrogates_in all; a share below 1 "
                "needs center_scale"
            )
        return self

    def cells(self) -> Iterator[Cell]:
        """Those that differ: exact replaces no norm, and leaves nothing in."""
        for cell in super().cells():
            is_twin = cell.norm_backward != "exact" or cell.surrogates_in == "all"
            if is_twin and (cell.norm_backward == "center_scale" or cell.radial_share == 1):
                yield cell


class Jacobian(ProtocolStudy):
    """The backward pass of norms under backpropagation and feedback alignment."""

    TABLES: ClassVar = tables.TABLES
    STAGES: ClassVar = Stages(probe_tables=("layers", "gradients"))

    published: ProtocolName = Field(description="the protocol that is the published script's")
    corrected: ProtocolName = Field(description="the protocol that verdicts are about")
    runs: Annotated[list[JacobianGrid], NonEmpty]
    windows: PositiveInt = Field(description="windows of the batch on which a model is probed")

    @model_validator(mode="after")
    def protocols_fit(self) -> Self:
        known = ", ".join(self.protocols)
        for where, name in (("published", self.published), ("corrected", self.corrected)):
            if name not in self.protocols:
                raise ValueError(f"{where}: unknown protocol {name!r}; known: {known}")
        for name, protocol in self.protocols.items():
            changed = protocol.model.model_dump(include=SET_BY_RUNS, exclude_defaults=True)
            if changed:
                keys = ", ".join(changed)
                raise ValueError(f"protocols.{name}.model: {keys}: set by jacobian.runs")
        return self

    @model_validator(mode="after")
    def runs_fit(self) -> Self:
        exact = {(cell[:-1], seed) for cell, seed in self.models() if cell.norm_backward == "exact"}
        for cell, seed in self.models():
            check_placement(cell.arm, "pre")
            twin = cell._replace(norm_backward="exact", surrogates_in="all", radial_share=1.0)
            if (twin[:-1], seed) not in exact:  # at any rate: each has a best rate
                raise ValueError(
                    f"no run to compare {cell}-{seed} with: add norm_backward exact, seed {seed}"
                )
        return self

    def probes(self) -> dict[str, JacobianProbe]:
        """Only models with the exact backward pass and without a penalty are probed."""
        jobs = self.cells().items()
        exact = [n for n, c in jobs if c.norm_backward == "exact" and not c.sigma_penalty]
        return dict.fromkeys(exact, JacobianProbe(windows=self.windows))

    def tabulation(self, settings: Settings) -> JacobianTables:
        return JacobianTables(**self.model_tables(settings), probed=list(self.probes()))

    def vocabulary(self) -> Vocabulary:
        """What statements about its models may say.

        ``protocol: published`` is the script's protocol, ``corrected`` the one of verdicts,
        whatever the configuration calls them.
        """
        protocols = {"published": self.published, "corrected": self.corrected}
        values = {
            "attention": get_args(Attention),
            "feedback": get_args(Feedback),
            "norm_backward": get_args(NormBackward),
            "surrogates_in": get_args(SurrogatesIn),
            "protocol": self.protocols,
            "arm": ARMS,
            "place": ("block", "final", "all"),
            "variant": ("published", "corrected"),
            "signal": ("own", "backprop"),
        }
        named = {name: [{"protocol": of}] for name, of in protocols.items()}
        return Vocabulary(values, {"protocol": named})
