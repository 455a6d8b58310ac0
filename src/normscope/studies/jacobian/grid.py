"""The Jacobian's part of the configuration: which models it trains, and which it takes apart."""

import itertools
from collections.abc import Iterator
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from normscope.nn.arms import ARMS, ArmName
from normscope.nn.recipe import Attention, Feedback, Model, NormBackward, Placement, SurrogatesIn
from normscope.schema import Distinct, PositiveInt, Rate, Seed, Some, Strict, distinct, rate_name
from normscope.train.recipe import Run, Training
from normscope.train.schedule import at_peak

ProtocolName = Annotated[
    str, Field(pattern=r"^[a-z0-9_]+$", max_length=100, description="a key of jacobian.protocols")
]
# of a model, set by the runs
OF_A_CELL = ("attention", "feedback", "norm_backward", "surrogates_in")


def _leaves_to_the_runs(model: Model) -> Model:
    default = {key: Model.model_fields[key].default for key in OF_A_CELL}
    if given := [key for key in OF_A_CELL if getattr(model, key) != default[key]]:
        raise ValueError(f"{', '.join(given)}: set by jacobian.runs, not by a protocol")
    return model


class Protocol(Strict):
    """Sizes and training that cells are compared under; the runs vary the rest."""

    placement: Placement
    model: Annotated[Model, AfterValidator(_leaves_to_the_runs)]
    training: Training


class Cell(NamedTuple):
    """What has one model a seed."""

    protocol: str
    arm: str
    attention: Attention
    feedback: Feedback
    norm_backward: NormBackward
    surrogates_in: SurrogatesIn
    learning_rate: float

    def __str__(self) -> str:
        """``published-layernorm-softmax-fa-exact-all-0.001``, the name of its files."""
        return "-".join([*self[:-1], rate_name(self.learning_rate)])


class JacobianGrid(Strict):
    """One block of runs: every combination of what is listed."""

    protocol: ProtocolName
    arms: Annotated[list[ArmName], Some, Distinct]
    attention: Annotated[list[Attention], Some, Distinct]
    feedback: Annotated[list[Feedback], Some, Distinct]
    norm_backward: Annotated[list[NormBackward], Some, Distinct]
    surrogates_in: Annotated[list[SurrogatesIn], Some, Distinct] = Field(
        default=["all"], description="all with norm_backward exact, which replaces none"
    )
    learning_rates: Annotated[list[Rate], Some, Distinct]
    seeds: Annotated[list[Seed], Some, Distinct]

    @model_validator(mode="after")
    def has_cells(self) -> Self:
        if not list(self.cells()):
            raise ValueError("norm_backward exact replaces nothing: give surrogates_in all")
        return self

    def cells(self) -> Iterator[Cell]:
        factors = (self.attention, self.feedback, self.norm_backward, self.surrogates_in)
        for values in itertools.product(self.arms, *factors, self.learning_rates):
            cell = Cell(self.protocol, *values)
            if cell.norm_backward != "exact" or cell.surrogates_in == "all":
                yield cell


def _fits(cell: Cell, protocol: Protocol) -> None:
    """Whether such a model can be trained.

    Raises:
        ValueError: it cannot; with the reason.
    """
    norm, placement = ARMS[cell.arm].norm, protocol.placement
    if norm.is_identity != (placement == "none"):
        raise ValueError(
            f"arm {cell.arm} does not go with protocol {cell.protocol}, whose placement is "
            f"{placement}: an identity goes with none, all others with another"
        )
    if cell.surrogates_in != "all" and placement not in ("pre", "peri"):
        raise ValueError(
            f"surrogates_in {cell.surrogates_in}: protocol {cell.protocol} has no norm outside the "
            f"blocks, as its placement is {placement}; give all"
        )
    if cell.feedback != "backprop" and protocol.model.tied_head:
        where = f"protocols.{cell.protocol}.model.tied_head"
        raise ValueError(f"{where}: feedback {cell.feedback} needs false")
    if cell.norm_backward != "exact" and not norm.has_surrogates:
        raise ValueError(
            f"arm {cell.arm}: norm_backward {cell.norm_backward} is defined for LayerNorm and "
            "RMSNorm"
        )


class Jacobian(Strict):
    """The backward pass of norms under backpropagation and feedback alignment."""

    protocols: Annotated[dict[ProtocolName, Protocol], Some]
    published: ProtocolName = Field(description="the protocol that is the published script's")
    corrected: ProtocolName = Field(description="the protocol that verdicts are about")
    runs: Annotated[list[JacobianGrid], Some]
    windows: PositiveInt = Field(description="windows of the batch that a model is taken apart on")

    def _all(self) -> list[tuple[Cell, int]]:
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
        distinct([f"{cell}-{seed}" for cell, seed in self._all()])
        there = dict.fromkeys(self._all())
        for cell, seed in there:
            _fits(cell, self.protocols[cell.protocol])
            is_exact = cell.norm_backward == "exact"
            twin = cell._replace(norm_backward="exact", surrogates_in="all")
            if not is_exact and (twin, seed) not in there:
                raise ValueError(
                    f"no run to compare {cell}-{seed} with: add norm_backward exact, seed {seed}"
                )
        return self

    @model_validator(mode="after")
    def rates_fit(self) -> Self:
        """A rate is chosen by the mean over seeds, so that every rate needs the same."""
        own = self.protocols[self.published].training.learning_rate
        seeds: dict[Cell, set[int]] = {}
        for cell, seed in self._all():
            seeds.setdefault(cell, set()).add(seed)
            if cell.protocol == self.published and cell.learning_rate != own:
                raise ValueError(
                    f"published: protocol {self.published!r} is trained at its own learning rate, "
                    f"{own:g}; give other rates to another protocol"
                )
        for cell, of_cell in seeds.items():
            first = next(c for c in seeds if c[:-1] == cell[:-1])
            if of_cell != seeds[first]:
                raise ValueError(
                    f"{first} and {cell} have other seeds: give every learning rate the same"
                )
        return self

    def trained(self) -> dict[str, Run]:
        """Every run to train, by the name of its directory."""
        runs = {}
        for cell, seed in self._all():
            protocol = self.protocols[cell.protocol]
            of_cell = {key: getattr(cell, key) for key in OF_A_CELL}
            training = at_peak(protocol.training, cell.learning_rate)
            runs[f"{cell}-{seed}"] = Run(
                norm=ARMS[cell.arm].norm,
                placement=protocol.placement,
                seed=seed,
                model=protocol.model.model_copy(update=of_cell),
                training=training,
            )
        return runs

    def cells(self, *, exact: bool = False) -> dict[str, list[int]]:
        """The seeds of every cell, by its name; ``exact``: of those trained with the exact norm."""
        seeds: dict[str, list[int]] = {}
        for cell, seed in self._all():
            if not exact or cell.norm_backward == "exact":
                seeds.setdefault(str(cell), []).append(seed)
        return seeds


def cell_key(name: str) -> dict[str, str | float]:
    """The parts of a cell from its name."""
    *words, rate = name.split("-")
    return dict(zip(Cell._fields, [*words, float(rate)], strict=True))
