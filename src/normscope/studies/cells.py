"""The cell of a study with protocols; it reads no registry, so that a new arm reruns no probe."""

from typing import NamedTuple

from normscope.nn.recipe import Placement
from normscope.schema import rate_name


class Cell(NamedTuple):
    """A combination of factors, with one model per seed."""

    protocol: str
    arm: str
    placement: Placement
    learning_rate: float

    def __str__(self) -> str:
        """``nanogpt-layernorm-pre-0.001``, the beginning of the names of its files."""
        return "-".join([*self[:-1], rate_name(self.learning_rate)])
