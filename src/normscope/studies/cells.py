"""Cells of studies with protocols; this reads no registry, so that a new arm reruns no probe."""

from typing import Any, NamedTuple

from pydantic import Field

from normscope.nn.recipe import Placement
from normscope.schema import Strict, rate_name
from normscope.studies.pilot import PilotChoice


class Cell(NamedTuple):
    """A combination of factors, with one model per seed."""

    protocol: str
    arm: str
    placement: Placement
    learning_rate: float

    def __str__(self) -> str:
        """``nanogpt-layernorm-pre-0.001``, the beginning of the names of its files."""
        return "-".join([*self[:-1], rate_name(self.learning_rate)])


class ModelTables(Strict):
    """The trained models that the tables of a study with protocols are made from.

    Args:
        jobs: the cell of every training job, in order.
        pilot: what the pilot models say of the cells, by job.
        texts: names of the texts, by protocol.
        eval_tokens: of the validation split, from its start, over which losses are, by protocol;
            None is all.
        level: confidence level.
    """

    jobs: dict[str, Any]
    pilot: dict[str, PilotChoice] = Field(default={})
    texts: dict[str, list[str]]
    eval_tokens: dict[str, int | None]
    level: float
