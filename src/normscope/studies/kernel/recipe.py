"""Parameters of the kernel study's one job. No torch."""

from normscope.nn.recipe import Norm
from normscope.schema import PositiveInt, Strict


class KernelTables(Strict):
    """Norms by the name of their arm, at which widths, and at how many random tokens."""

    norms: dict[str, Norm]
    widths: list[PositiveInt]
    tokens: PositiveInt
