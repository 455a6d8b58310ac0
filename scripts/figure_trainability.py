"""Rule figure_trainability: loss after a short training by rate, warm-up, depth and placement."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.depth.figure import COLORS, drawn, n_of, placement_handles
from normscope.studies.depth.measures import PLACEMENTS

RESIDUAL = {True: {"marker": "o"}, False: {"marker": "X"}}
FILLED: dict = {False: {"mfc": "white"}, True: {}}  # the first warm-up is open, the others filled
ROOM = 1.5  # beside the least and the greatest rate
SHIFT = 0.06  # of a placement's points, in octaves of the rate, so that bars do not overlap


class Flags(FigureFlags):
    """Draw losses by learning rate."""

    trainability: Path


def draw(axis: Axes, panel: pd.DataFrame, warm_ups: list[int]) -> None:
    """A line per placement, warm-up and kind of connection; bars are intervals over models."""
    axis.axhline(panel["unigram"].iloc[0], color="0.6", linestyle=":", linewidth=1)
    keys = ["placement", "residual", "warmup_steps"]
    for (placement, residual, warm_up), line in panel.groupby(keys, sort=False):
        i = warm_ups.index(int(str(warm_up)))
        step = list(PLACEMENTS).index(str(placement)) - 1 + 0.4 * i
        by_rate = line.sort_values("learning_rate")
        rate = by_rate["learning_rate"] * 2 ** (SHIFT * step)
        color = COLORS[str(placement)]
        look: dict = {"color": color, "linestyle": style.LINES[i % 5]}
        look |= RESIDUAL[bool(residual)] | FILLED[i > 0]
        axis.plot(rate, by_rate["mean"], **look, markersize=3)
        axis.vlines(rate, by_rate["low"], by_rate["high"], color=color, linewidth=0.7)
    axis.set_xscale("log")
    rates = sorted(set(panel["learning_rate"]))
    axis.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axis.set_xlim(rates[0] / ROOM, rates[-1] * ROOM)
    axis.minorticks_off()
    axis.set_xlabel("learning rate")


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = drawn(pd.read_csv(flags.trainability))
    depths, warm_ups = (sorted(set(table[k])) for k in ("depth", "warmup_steps"))
    figure, axes = style.canvas(flags.width_mm, 85, 1, max(1, len(depths)), shared=True)
    axes[0, 0].set_ylabel("validation loss, nats")
    if not depths:
        axes[0, 0].text(
            0.5, 0.5, "no model was trained", ha="center", transform=axes[0, 0].transAxes
        )
    for depth, axis in zip(depths, axes[0], strict=False):
        draw(axis, table[table["depth"] == depth], warm_ups)
        axis.set_title(f"{depth} blocks")
    handles, labels = placement_handles(table["placement"])
    looks: dict[str, dict] = {
        f"warm-up: {w} steps": {"linestyle": style.LINES[i % 5], "marker": "o"} | FILLED[i > 0]
        for i, w in enumerate(warm_ups)
    }
    if not table["residual"].all():
        looks["without residuals"] = {"linestyle": ""} | RESIDUAL[False]
    looks["character frequencies"] = {"linestyle": ":"}
    grey = [Line2D([], [], color="0.4", **look) for look in looks.values()]
    figure.legend([*handles, *grey], [*labels, *looks], loc="outside lower center", ncols=4)
    style.save(figure, flags.out)
    lost = int(table["diverged"].sum())
    said = f"{n_of(table)}; bars: {flags.level:.0%} t intervals over them. {lost} diverged."
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, said))


if __name__ == "__main__":
    report(main)
