"""Figure loss: validation loss above the baseline's by arm and placement, every seed a point."""

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import Placement
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import arm_label, arm_look, count, describe_rate, divergences, in_order
from normscope.studies.main.figures import AS_NOTHING_KNOWN

MM_PER_ROW, MM_PER_PANEL, ROOM = 5, 14, 1.3
LINEAR = 0.1  # nats up to which the axis is linear: seeds differ by hundredths, arms by up to 1
LEAST = (-0.05, 0.05)  # what is shown in any case


def above_baseline(chosen: pd.DataFrame, baseline: Mapping[str, str]) -> pd.DataFrame:
    """The models of a protocol with ``above``: their loss less that of the baseline's same seed."""
    reference = select(chosen, **baseline).set_index("seed")["capped_loss"]
    return chosen.assign(above=chosen["capped_loss"] - chosen["seed"].map(reference))


def in_rows(chosen: pd.DataFrame) -> list[tuple[str, str]]:
    """Arm and placement of every row of a panel."""
    cells = set(zip(chosen["arm"], chosen["placement"], strict=True))
    grid = [(a, p) for a in in_order(list(chosen["arm"])) for p in get_args(Placement)]
    return [cell for cell in grid if cell in cells]


def draw_rows(
    axis: Axes, rows: list[tuple[str, str]], chosen: pd.DataFrame, arms: pd.DataFrame
) -> None:
    """One row of markers per arm and placement, with the mean and its joint interval."""
    for y, (arm, placement) in enumerate(rows):
        look: dict = arm_look(arm) | {"linestyle": "", "mfc": "none"}
        cell = select(arms, arm=arm, placement=placement)
        above = select(chosen, arm=arm, placement=placement)["above"].dropna()
        axis.plot(above, np.full(len(above), y), **look)
        mean, low, high = cell.iloc[0][["difference", "difference_low", "difference_high"]]
        style.dash(axis, mean, y, (low, high), color=look["color"])
    style.baseline(axis, 0, vertical=True)
    style.name_rows(axis, [arm_label(*row) for row in rows])
    cells = arms.set_index(["arm", "placement"]).to_dict("index")
    style.annotate_rows(axis, [describe_cell(cells[row]) for row in rows])


def describe_cell(cell: Mapping) -> str:
    """Sample size and learning rate of a row."""
    rate = describe_rate(cell["rate"], cell["rates"], at_edge=cell["at_edge"])
    return f"{style.sample_size([cell['n']])} at {rate}"


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    protocols: Sequence[str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """One panel per protocol: losses above the baseline's, each arm at its chosen rate."""
    chosen, arms = (t[t["protocol"].isin(protocols)] for t in (tables["chosen"], tables["arms"]))
    shown = {
        p: above_baseline(runs, baseline) for p, runs in chosen.groupby("protocol", sort=False)
    }
    rows = [in_rows(models) for models in shown.values()]
    figure, axes = style.stacked(look.width_mm, MM_PER_ROW, MM_PER_PANEL, [len(r) for r in rows])
    ends = [*LEAST, *(above for models in shown.values() for above in models["above"].dropna())]
    words = []
    for axis, cells, (protocol, models) in zip(axes, rows, shown.items(), strict=True):
        draw_rows(axis, cells, models, select(arms, protocol=protocol))
        axis.set_title(protocol)
        # intervals of a few seeds end beyond
        axis.set_xlim(ROOM * min(ends), ROOM * max(ends))
        style.symlog(axis, LINEAR)
        words.append(f"{protocol}: {count(models)}.")
    axes[-1].set_xlabel(f"validation loss above {arm_label(**baseline)} (nats per character)")
    bars = f"Bars: mean and {look.level:.0%} t intervals that hold together in a protocol."
    lost = divergences(chosen, ("protocol", "arm", "placement"), AS_NOTHING_KNOWN)
    return figure, f"n: {' '.join(words)} {bars} {lost}"
