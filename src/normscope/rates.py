"""Learning rates as parts of names: exact in file names, and found again in tables. No torch."""

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field

from normscope.recipe import PositiveFloat

FLOATS = ".9g"  # how tables write numbers (normscope.tables), by which cells are found in them


def rate_name(learning_rate: float) -> str:
    """``0.0001``: exact, without an exponent, for names of files and macros."""
    return f"{Decimal(repr(learning_rate)):f}"


def _survives_tables(rate: float) -> float:
    if float(f"{rate:{FLOATS}}") != rate:
        raise ValueError(f"tables keep 9 digits, in which {rate!r} is {rate:{FLOATS}}: give that")
    return rate


Rate = Annotated[PositiveFloat, AfterValidator(_survives_tables), Field(description="of Adam")]
