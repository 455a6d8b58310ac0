"""What the figure scripts share: their flags, and captions that say n."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.recipe import PositiveFloat, Strict
from normscope.tables import records


class FigureFlags(Strict):
    """Flags of every figure script."""

    caption: Path = Field(description="what the figure shows, as reStructuredText")
    out: Path = Field(description="path without suffix; .pdf, .svg and .txt (caption) are written")
    width_mm: PositiveFloat
    font_pt: PositiveFloat
    level: float = Field(description="confidence level of the intervals in the tables")


def caption(shows: Path, n: str) -> str:
    """The caption: what is shown, then n."""
    return " ".join(f"{shows.read_text()} {n}".split())


def count(table: pd.DataFrame) -> str:
    """How many trained models stand behind each arm and placement, as words."""
    seeds = table.groupby(["arm", "placement"], sort=False)["seed"].nunique()
    parts = []
    for n, group in seeds.groupby(seeds, sort=False):
        names = ", ".join(a if a == p else f"{a} {p}" for a, p in group.index)
        each = " each" if len(group) > 1 else ""
        parts.append(f"{n} trained model{'s' if n != 1 else ''}{each} of {names}")
    return "; ".join(parts)


def divergences(runs: pd.DataFrame) -> str:
    """Which runs diverged, and at which step."""
    lost = runs[runs["diverged_at"].notna()]
    if lost.empty:
        return "No run diverged."
    names = [
        f"{r.arm} {r.placement} seed {r.seed} at step {r.diverged_at:.0f}" for r in records(lost)
    ]
    return f"Diverged, and in no mean: {', '.join(names)}."
