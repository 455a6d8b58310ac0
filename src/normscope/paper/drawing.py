"""The frame of every drawing: from tables, parameters and a look to a figure with its caption."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.schema import Fraction, PositiveFloat, Strict

# draw(tables, look, **params): the figure, and the words of n for its caption
Draw = Callable[..., tuple[Figure, str]]


class Look(Strict):
    """How every figure of a paper looks."""

    width_mm: PositiveFloat = Field(description="width on paper")
    font_pt: PositiveFloat = Field(description="size of text on paper")
    level: Fraction = Field(description="confidence level of the intervals in the tables")


class Flags(Strict):
    """Draw a figure."""

    tables: dict[str, Path] = Field(description="CSV files by name: runs=path/to/runs.csv")
    params: dict[str, Any] = Field(default={}, description="what else the drawing takes, as JSON")
    look: Look
    caption: str = Field(default="", description="what the figure shows; n is added")
    out: Path = Field(description="path without suffix; .pdf, .svg and .txt (caption) are written")


def run(draw: Draw) -> None:
    """Draw what the command line says; the ``main`` of every drawing's script."""
    report(lambda: _run(draw, parse(Flags)))


def _run(draw: Draw, flags: Flags) -> None:
    style.use(flags.look.font_pt)
    tables = {name: pd.read_csv(path) for name, path in flags.tables.items()}
    figure, n = draw(tables, flags.look, **flags.params)
    style.save(figure, flags.out)
    write_text(flags.out.with_suffix(".txt"), " ".join(f"{flags.caption} {n}".split()))
