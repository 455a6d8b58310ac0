"""Figure loss: validation loss above the baseline's by arm and placement, every seed a point."""

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import Placement
from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.main.figures import AS_NOTHING_KNOWN, arm_label

MM_PER_ROW, PAGE_MM, ROOM = 5.5, 230, 1.3
LINEAR = 0.1  # nats up to which the axis is linear: seeds differ by hundredths, arms by up to 1
TICKS = (-0.1, 0, 0.1, 0.3, 1)
LEAST = (-0.05, 0.05)  # what a panel shows in any case


def above_baseline(chosen: pd.DataFrame, baseline: Mapping[str, str]) -> pd.DataFrame:
    """The models of a protocol with ``above``: their loss less that of the baseline's same seed."""
    reference = select(chosen, **baseline).set_index("seed")["capped_loss"]
    return chosen.assign(above=chosen["capped_loss"] - chosen["seed"].map(reference))


def draw_rows(
    axis: Axes, rows: list[tuple[str, str]], chosen: pd.DataFrame, arms: pd.DataFrame
) -> None:
    """A line of markers for each arm and placement, with the mean and its joint interval."""
    names, ends = [arm for arm, _ in rows], list(LEAST)
    for y, (arm, placement) in enumerate(rows):
        look: dict = style.arm_look(arm, names) | {"linestyle": ""}
        cell = select(arms, arm=arm, placement=placement)
        if cell.empty:
            continue
        above = select(chosen, arm=arm, placement=placement)["above"].dropna()
        ends += list(above)
        axis.plot(above, np.full(len(above), y), markerfacecolor="none", **look)
        mean, low, high = cell.iloc[0][["difference", "difference_low", "difference_high"]]
        axis.plot([low, high], [y, y], color=look["color"], linewidth=1)
        axis.plot([mean] * 2, [y - 0.35, y + 0.35], color=look["color"], linewidth=1.6)
    axis.axvline(0, color="0.6", linewidth=0.6, zorder=0)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xscale("symlog", linthresh=LINEAR)
    low, high = ROOM * min(ends), ROOM * max(ends)
    axis.set_xlim(low, high)  # intervals of a few seeds end beyond
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(axis="x", linewidth=0.3, color="0.85")
    axis.set_axisbelow(True)


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    protocols: Sequence[str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """A panel a protocol: losses above the baseline's, each arm at its best rate."""
    chosen, arms = (t[t["protocol"].isin(protocols)] for t in (tables["chosen"], tables["arms"]))
    cells = dict.fromkeys(zip(chosen["arm"], chosen["placement"], strict=True))
    placements = get_args(Placement)
    grid = [(a, p) for a in style.in_order(list(chosen["arm"])) for p in placements]
    rows = [cell for cell in grid if cell in cells]
    shown = list(dict.fromkeys(chosen["protocol"]))
    height = min(20 + MM_PER_ROW * len(rows), PAGE_MM)
    figure, axes = style.canvas(look.width_mm, height, 1, len(shown), shared=False)
    words = []
    for axis, protocol in zip(axes[0], shown, strict=True):
        own = above_baseline(select(chosen, protocol=protocol), baseline)
        draw_rows(axis, rows, own, select(arms, protocol=protocol))
        axis.set_title(protocol)
        axis.set_yticks(range(len(rows)), [arm_label(*cell) for cell in rows])
        words.append(f"{protocol}: {count(own)}.")
    for axis in axes[0, 1:]:
        axis.set_yticklabels([])
    label = f"validation loss above that of {arm_label(**baseline)} (nats per character)"
    figure.supxlabel(label, fontsize=look.font_pt)
    bars = f"Bars: mean and {look.level:.0%} t intervals that hold together in a protocol."
    lost = divergences(chosen, ("protocol", "arm", "placement"), AS_NOTHING_KNOWN)
    return figure, f"n: {' '.join(words)} {bars} {lost}"


if __name__ == "__main__":
    run(draw)
