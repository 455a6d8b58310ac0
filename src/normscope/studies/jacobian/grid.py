"""The Jacobian's part of the configuration: which models it trains, and which it probes."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from normscope.io.names import Key
from normscope.io.texts import DATASET, TextName
from normscope.nn.arms import ARMS, ArmName, check_placement
from normscope.nn.recipe import Attention, Feedback, Model, NormBackward, Placement, SurrogatesIn
from normscope.schema import (
    Distinct,
    NonNegativeFloat,
    PositiveInt,
    Rate,
    Seed,
    Share,
    Some,
    Strict,
    distinct,
)
from normscope.studies.jacobian import tables
from normscope.studies.jacobian.recipe import (
    Cell,
    JacobianProbe,
    JacobianTables,
)
from normscope.studies.study import Grid, Settings, TransformerStudy, checked
from normscope.train.recipe import Stack, Training
from normscope.train.schedule import at_schedule
from normscope.verdicts.vocabulary import Vocabulary

ProtocolName = Annotated[Key, Field(description="a key of jacobian.protocols")]
# keys of a model that the runs set
SET_BY_RUNS = (
    *("attention", "feedback", "norm_backward", "surrogates_in"),
    *("radial_share", "sigma_penalty"),
)


def _leaves_to_the_runs(model: Model) -> Model:
    default = {key: Model.model_fields[key].default for key in SET_BY_RUNS}
    if given := [key for key in SET_BY_RUNS if getattr(model, key) != default[key]]:
        raise ValueError(f"{', '.join(given)}: set by jacobian.runs, not by a protocol")
    return model


class Protocol(Strict):
    """Sizes and training that cells are compared under; the runs vary the rest."""

    placement: Placement
    model: Annotated[Model, AfterValidator(_leaves_to_the_runs)]
    training: Training
    text: TextName = DATASET


class JacobianGrid(Grid):
    """One block of runs: the Cartesian product of its lists."""

    FACTORS: ClassVar = {
        "arms": "arm",
        "attention": "attention",
        "feedback": "feedback",
        "norm_backward": "norm_backward",
        "surrogates_in": "surrogates_in",
        "radial_shares": "radial_share",
        "sigma_penalties": "sigma_penalty",
        "learning_rates": "learning_rate",
    }

    protocol: ProtocolName
    arms: Annotated[list[ArmName], Some, Distinct]
    attention: Annotated[list[Attention], Some, Distinct]
    feedback: Annotated[list[Feedback], Some, Distinct]
    norm_backward: Annotated[list[NormBackward], Some, Distinct]
    surrogates_in: Annotated[list[SurrogatesIn], Some, Distinct] = Field(
        default=["all"], description="all with norm_backward exact, which replaces none"
    )
    radial_shares: Annotated[list[Annotated[Share, Field(gt=0)]], Some, Distinct] = Field(
        default=[1.0], description="left in by center_scale; the exact pass leaves none in"
    )
    sigma_penalties: Annotated[list[NonNegativeFloat], Some, Distinct] = Field(
        default=[0.0], description="weights of the penalty on sigma before the final norm"
    )
    learning_rates: Annotated[list[Rate], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def has_cells(self) -> Self:
        if not list(self.cells()):
            raise ValueError(
                "norm_backward exact replaces nothing: give surrogates_in all; a share below 1 "
                "needs center_scale"
            )
        return self

    def cells(self) -> Iterator[Cell]:
        for values in self.product():
            cell = Cell(self.protocol, **values)
            is_twin = cell.norm_backward != "exact" or cell.surrogates_in == "all"
            if is_twin and (cell.norm_backward == "center_scale" or cell.radial_share == 1):
                yield cell


class Jacobian(TransformerStudy):
    """The backward pass of norms under backpropagation and feedback alignment."""

    TABLES: ClassVar = tables.TABLES
    GRIDS: ClassVar = {"runs": JacobianGrid}
    PROBED: ClassVar = ("layers", "gradients")

    protocols: Annotated[dict[ProtocolName, Protocol], Some]
    published: ProtocolName = Field(description="the protocol that is the published script's")
    corrected: ProtocolName = Field(description="the protocol that verdicts are about")
    runs: Annotated[list[JacobianGrid], Some]
    windows: PositiveInt = Field(description="windows of the batch on which a model is probed")

    def models(self) -> list[tuple[Cell, int]]:
        """Cell and seed of every run."""
        return [(c, seed) for grid in self.runs for c in grid.cells() for seed in grid.seeds]

    @model_validator(mode="after")
    def protocols_are_there(self) -> Self:
        known = ", ".join(self.protocols)
        named = {"published": self.published, "corrected": self.corrected}
        named |= {f"runs.{i}.protocol": grid.protocol for i, grid in enumerate(self.runs)}
        for where, protocol in named.items():
            if protocol not in self.protocols:
                raise ValueError(f"{where}: unknown protocol {protocol!r}; known: {known}")
        return self

    @model_validator(mode="after")
    def runs_fit(self) -> Self:
        distinct([f"{cell}-{seed}" for cell, seed in self.models()])
        exact = {(cell[:-1], seed) for cell, seed in self.models() if cell.norm_backward == "exact"}
        for cell, seed in dict.fromkeys(self.models()):
            self._check(cell)
            twin = cell._replace(norm_backward="exact", surrogates_in="all", radial_share=1.0)
            if (twin[:-1], seed) not in exact:  # at any rate: each has a best rate
                raise ValueError(
                    f"no run to compare {cell}-{seed} with: add norm_backward exact, seed {seed}"
                )
        return self

    @model_validator(mode="after")
    def rates_fit(self) -> Self:
        """A rate is chosen by the mean over seeds, so every rate needs the same seeds."""
        rate = self.protocols[self.published].training.learning_rate
        seeds: dict[Cell, set[int]] = {}
        for cell, seed in self.models():
            seeds.setdefault(cell, set()).add(seed)
            if cell.protocol == self.published and cell.learning_rate != rate:
                raise ValueError(
                    f"published: protocol {self.published!r} is trained at its learning rate, "
                    f"{rate:g}; give other rates to another protocol"
                )
        for cell, of_cell in seeds.items():
            first = next(c for c in seeds if c[:-1] == cell[:-1])
            if of_cell != seeds[first]:
                raise ValueError(
                    f"{first} and {cell} have different seeds: give every learning rate the same"
                )
        return self

    def _check(self, cell: Cell) -> None:
        """Whether models of a cell can be trained."""
        protocol = self.protocols[cell.protocol]
        if cell.feedback != "backprop" and protocol.model.tied_head:
            where = f"protocols.{cell.protocol}.model.tied_head"
            raise ValueError(f"{where}: feedback {cell.feedback} needs false")
        try:
            check_placement(cell.arm, protocol.placement)
        except ValueError as e:
            raise ValueError(f"protocol {cell.protocol}: {e}") from None
        checked(f"arm {cell.arm}, protocol {cell.protocol}", lambda: self.stack_of(cell, [0]))

    def stack_of(self, cell: Cell, seeds: list[int]) -> Stack:
        protocol = self.protocols[cell.protocol]
        varied = {key: getattr(cell, key) for key in SET_BY_RUNS}
        return Stack(
            norm=ARMS[cell.arm].norm,
            placement=protocol.placement,
            seeds=seeds,
            model=protocol.model.model_copy(update=varied),
            training=at_schedule(
                protocol.training, cell.learning_rate, protocol.training.warmup_steps
            ),
        )

    def text_of(self, cell: Cell) -> str:
        return self.protocols[cell.protocol].text

    def probes(self) -> dict[str, JacobianProbe]:
        """Only models with the exact backward pass and without a penalty are probed."""
        exact = [
            name
            for name, (cell, _) in self.blocks().items()
            if cell.norm_backward == "exact" and not cell.sigma_penalty
        ]
        return dict.fromkeys(exact, JacobianProbe(windows=self.windows))

    def tabulation(self, settings: Settings) -> JacobianTables:
        return JacobianTables(
            jobs=self.cells(),
            pilot=self.tuned(settings),
            probed=list(self.probes()),
            texts={name: protocol.text for name, protocol in self.protocols.items()},
            eval_tokens={name: p.training.eval_tokens for name, p in self.protocols.items()},
            level=settings.level,
        )

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
