"""Rule figure_gain: norm of the residual stream and log-gain of each block, by depth."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption, count, divergences


class Flags(FigureFlags):
    """Draw the residual stream by depth."""

    runs: Path
    gain: Path
    by_depth: Path


def site_label(site: str) -> str:
    return {"embedding": "emb", "final_norm": "norm"}.get(site, site.removeprefix("block_"))


def draw(axis, table: pd.DataFrame, column: str, arms: list[str]) -> None:
    """A line per arm over depth, with its interval over seeds where there is one."""
    there = style.in_order(list(table["arm"]))
    for i, arm in enumerate(there):
        line = table[table["arm"] == arm].dropna(subset=column).sort_values("depth")
        looks = style.look(arm, arms)
        x = line["depth"] + 0.06 * (
            i - (len(there) - 1) / 2
        )  # side by side, so that intervals do not hide each other
        axis.plot(x, line[column], label=ARMS[arm].label, markerfacecolor="none", **looks)
        axis.vlines(
            x, line[f"{column}_low"], line[f"{column}_high"], color=looks["color"], linewidth=0.8
        )


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = pd.read_csv(flags.by_depth)
    table = table[table["positions"] == "later"]
    for suffix in ("", "_low", "_high"):
        table["norm" + suffix] = np.exp(table["log_norm" + suffix])
    runs = pd.read_csv(flags.runs)
    placements, arms = list(dict.fromkeys(runs["placement"])), list(runs["arm"])
    sites = table.drop_duplicates("depth").sort_values("depth")
    labels = [site_label(s) for s in sites["site"]]
    figure, axes = style.canvas(flags.width_mm, 115, 2, len(placements))
    for column, placement in enumerate(placements):
        panel = table[table["placement"] == placement]
        top, bottom = axes[0, column], axes[1, column]
        draw(top, panel, "norm", arms)
        draw(bottom, panel, "log_gain", arms)
        top.set_yscale("log")
        top.set_title(f"placement {placement}" if placement != "none" else "no placement")
        bottom.axhline(0, color="0.6", linewidth=0.6)
        bottom.set_xlabel("site")
        bottom.set_xticks(list(sites["depth"]), labels)
    axes[0, 0].set_ylabel("norm of the stream")
    axes[1, 0].set_ylabel("log-gain of the site")
    style.legend(figure)
    style.save(figure, flags.out)
    gain = pd.read_csv(flags.gain)
    n = (
        f"n: {count(runs)}; {gain['windows'].max()} windows of validation text, positions 1 to "
        f"{gain['position'].max()}. Bars: {flags.level:.0%} t interval over models, where n > 1. "
        f"{divergences(runs)}"
    )
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
