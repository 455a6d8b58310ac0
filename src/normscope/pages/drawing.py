"""Types of the functions that draw figures."""

from collections.abc import Callable

from matplotlib.figure import Figure
from pydantic import Field

from normscope.schema import Fraction, PositiveFloat, Strict

# draw(tables, look, **params) returns the figure, and the sample sizes that end its caption
Draw = Callable[..., tuple[Figure, str]]


class Look(Strict):
    """How every figure of a paper looks."""

    width_mm: PositiveFloat = Field(description="width on paper")
    font_pt: PositiveFloat = Field(description="size of text on paper")
    level: Fraction = Field(description="confidence level of the intervals in the tables")
