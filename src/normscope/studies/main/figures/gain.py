"""Figure gain: norm of the residual stream and log-gain of each block, by depth."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import (
    arm_legend,
    arm_look,
    count,
    divergences,
    in_order,
    placement_title,
    sample_sizes,
)

SHIFT = 0.5  # blocks over which arms are dodged


def site_label(site: str) -> str:
    """The tick label of a site of the stream."""
    return {"embedding": "emb", "final_norm": "norm"}.get(site, site.removeprefix("block_"))


def draw_lines(axis: Axes, table: pd.DataFrame, column: str) -> None:
    """A line per arm over depth, with its interval over seeds where there is one."""
    shown = in_order(list(table["arm"]))
    for i, arm in enumerate(shown):
        line = table[table["arm"] == arm].dropna(subset=column).sort_values("depth")
        look = arm_look(arm)
        x = line["depth"] + style.dodge(i, len(shown), SHIFT)
        ends = line[f"{column}_low"], line[f"{column}_high"]
        style.estimates(axis, x, line[column], ends, label=ARMS[arm].label, **look)


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """The residual stream by depth in the models of a protocol, each arm at its best rate."""
    names = ("chosen", "gain", "gain_by_depth")
    runs, gain, table = (select(tables[name], protocol=protocol) for name in names)
    table = table[table["positions"] == "later"]
    norms = {f"norm{s}": np.exp(table[f"log_norm{s}"]) for s in ("", "_low", "_high")}
    table = table.assign(**norms)
    placements = list(dict.fromkeys(runs["placement"]))
    sites = table.drop_duplicates("depth").sort_values("depth")
    labels = [site_label(site) for site in sites["site"]]
    figure, axes = style.canvas(look.width_mm, 115, 2, len(placements))
    for placement, top, bottom in zip(placements, *axes, strict=True):
        panel = table[table["placement"] == placement]
        draw_lines(top, panel, "norm")
        draw_lines(bottom, panel, "log_gain")
        for axis in (top, bottom):
            axis.set_title(placement_title(placement))
        bottom.axhline(0, color="0.6", linewidth=0.6)
        bottom.set_xlabel("site")
        bottom.set_xticks(list(sites["depth"]), labels)
    style.log_y(axes[0, 0])
    axes[0, 0].set_ylabel("norm of the stream\n(geometric mean)")
    axes[1, 0].set_ylabel("log-gain of the site")
    arm_legend(figure, sample_sizes(runs))
    return figure, (
        f"n: {count(runs)}; {gain['windows'].max()} windows of validation text, positions 1 to "
        f"{gain['position'].max()}. Bars: {look.level:.0%} t interval over models, where n > 1. "
        f"{divergences(runs)}"
    )
