"""Learning rates chosen on pilot seeds, and on pilot texts, which no test uses. No pandas.

A choice on the tested seeds shares data with the test, which then exceeds its level. The losses of
the pilot models are in ``data/pilot.csv``, which is versioned and read when a configuration is
loaded, so that the workflow knows every job beforehand.
"""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from normscope.io.files import write_text
from normscope.io.texts import DATASET, TextName
from normscope.schema import Distinct, NonEmpty, Rate, Seed, Strict
from normscope.train.schedule import least

LADDER = [float(f"{m}e{e}") for e in range(-6, 1) for m in (1, 2, 5)]  # of rates to try
KNOWN = [float(f"{m}e{e}") for e in range(-6, 1) for m in range(1, 10)]  # rates that may be on file
Losses = dict[str, dict[str, float | None]]  # by study and name of the cell


class Trial(NamedTuple):
    """The pilot models of a cell at one learning rate: a row of ``data/pilot.csv``.

    Args:
        study, cell: The cell, whose name contains its learning rate.
        seeds, texts: Those of the models, separated by spaces.
        loss: The mean of their validation losses, in nats; empty if a model diverged.
    """

    study: str
    cell: str
    seeds: str
    texts: str
    loss: str


class PilotChoice(Strict):
    """What the pilot models say of a cell at its learning rate.

    Args:
        loss: Their mean validation loss in nats; None if one diverged.
        at_edge: Whether the rate is the best of the cell, and the smallest or the largest tried.
    """

    loss: float | None = None
    at_edge: bool = False


class Pilot(Strict):
    """How the learning rates of blocks with ``learning_rates: pilot`` are chosen."""

    seeds: Annotated[list[Seed], NonEmpty, Distinct] = Field(
        default=[1, 2], description="seeds of the pilot models, on which no test may rest"
    )
    texts: Annotated[list[TextName], NonEmpty, Distinct] = Field(
        default=[DATASET],
        description="what the pilot models learn, as in protocols. No protocol with several texts "
        "may have one of them",
    )
    learning_rates: Annotated[list[Rate], NonEmpty, Distinct] = Field(
        default=[0.001, 0.002, 0.005],
        description="tried first. While the best rate is the smallest or the largest that was "
        "tried, the next one of 0.0001, 0.0002, 0.0005, 0.001, ... is tried as well",
    )
    limits: Annotated[list[Rate], Field(min_length=2, max_length=2)] = Field(
        default=[0.0001, 0.1], description="the smallest and the largest rate to try"
    )
    losses: Losses = Field(
        default={}, description="the content of data/pilot.csv, which is filled in when it is read"
    )

    @model_validator(mode="after")
    def _limits_hold(self) -> Self:
        low, high = self.limits
        if not low <= min(self.learning_rates) <= max(self.learning_rates) <= high:
            raise ValueError(f"learning_rates must lie between the limits, {low:g} and {high:g}")
        return self

    def losses_by_rate(self, study: str, cell: Any) -> dict[float, float]:
        """The loss at each rate at which a cell was tried, infinite where a model diverged.

        Args:
            cell: The cell, at any rate.
        """
        known, losses = self.losses.get(study, {}), {}
        for rate in sorted({*KNOWN, *self.learning_rates}):
            name = str(cell._replace(learning_rate=rate))
            if name in known:
                loss = known[name]
                losses[rate] = math.inf if loss is None else loss
        return losses

    def choice(self, study: str, cell: Any) -> PilotChoice | None:
        """What is known of a cell at its rate; None without pilot models."""
        losses = self.losses_by_rate(study, cell)
        if cell.learning_rate not in losses:
            return None
        loss = losses[cell.learning_rate]
        return PilotChoice(
            loss=loss if math.isfinite(loss) else None,
            at_edge=cell.learning_rate == least(losses) in (min(losses), max(losses)),
        )

    def next_rates(self, study: str, cell: Any) -> list[float]:
        """The rates to try next for a cell; none if its best rate lies inside, or at a limit."""
        losses = self.losses_by_rate(study, cell)
        if losses.keys() < {*self.learning_rates}:  # not started, or interrupted
            return [rate for rate in self.learning_rates if rate not in losses]
        best, (low, high) = least(losses), self.limits
        below = [rate for rate in LADDER if low <= rate < best == min(losses)]
        above = [rate for rate in LADDER if high >= rate > best == max(losses)]
        return below[-1:] + above[:1]


def read_trials(paths: Iterable[Path]) -> list[Trial]:
    """The rows of pilot files; a missing file has none."""
    rows = []
    for path in paths:
        if path.is_file():
            with path.open(newline="") as file:
                rows += [Trial(**row) for row in csv.DictReader(file)]
    return rows


def write_trials(path: Path, rows: Iterable[Trial]) -> None:
    """Write a pilot file, in the order of studies and cells."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([Trial._fields, *sorted(rows)])
    write_text(path, text.getvalue())


def losses_of(rows: Iterable[Trial]) -> Losses:
    """The losses by study and cell; a later row wins."""
    losses: Losses = {}
    for row in rows:
        losses.setdefault(row.study, {})[row.cell] = float(row.loss) if row.loss else None
    return losses
