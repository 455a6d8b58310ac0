"""Figure trainability: loss after a short training over rates, and the models that failed."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.depth.figures import COLORS, describe_sample, legend_below
from normscope.studies.depth.measures import PLACEMENTS

RESIDUAL = {True: {"marker": "o"}, False: {"marker": "D"}}
FAILED: dict = {"marker": "x", "linestyle": "", "markersize": 4, "markeredgewidth": 0.6}
FILLED: dict = {False: {"mfc": "white"}, True: {}}  # the first warm-up is open, the others filled
ROOM = 1.5  # factor around the lowest and the highest rate
ABOVE = 0.25  # nats, above and below all means
SHIFT = 0.06  # of a placement's points, in octaves of the rate, so that bars do not overlap


def draw_panel(axis: Axes, panel: pd.DataFrame, failed: pd.DataFrame, warm_ups: list[int]) -> None:
    """A line per placement, warm-up, start and kind of connection, with intervals over models.

    Args:
        panel: of trainability.csv.
        failed: of losses.csv, the models that failed: a cross each.
        warm_ups: all that there are.
    """
    axis.axhline(panel["unigram"].iloc[0], color="0.6", linestyle=":", linewidth=1)
    keys = ["placement", "residual", "init", "warmup_steps"]
    for key, line in panel.groupby(keys, sort=False):
        placement, residual, _, warm_up = key
        i = warm_ups.index(int(str(warm_up)))
        step = list(PLACEMENTS).index(str(placement)) - 1 + 0.4 * i
        by_rate = line.sort_values("learning_rate")
        shift = 2 ** (SHIFT * step)
        rate = by_rate["learning_rate"] * shift
        color = COLORS[str(placement)]
        look: dict = {"color": color, "linestyle": style.LINES[i % 5]}
        look |= RESIDUAL[bool(residual)] | FILLED[i > 0]
        names = [PLACEMENTS[str(placement)], f"warm-up: {warm_up} steps"]
        names += ["without residuals"] * (not residual)
        ends = by_rate["low"], by_rate["high"]
        look |= {"markersize": 3}
        style.estimates(axis, rate, by_rate["mean"], ends, *names, width=0.7, **look)
        lost = select(failed, **dict(zip(keys, key, strict=True)))
        crosses = lost["learning_rate"] * shift, lost["capped_loss"]
        style.points(axis, *crosses, names[0], "a model that failed", color=color, **FAILED)
    rates = sorted(set(panel["learning_rate"]))
    style.log_x(axis, rates)
    axis.set_xlim(rates[0] / ROOM, rates[-1] * ROOM)
    axis.set_xlabel("learning rate")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Losses by learning rate."""
    table, models = tables["trainability"], tables["losses"]
    failed = models[models["failed"] == 1]
    depths, warm_ups = (sorted(set(table[k])) for k in ("depth", "warmup_steps"))
    figure, axes = style.canvas(look.width_mm, 85, 1, max(1, len(depths)), shared=True)
    axes[0, 0].set_ylabel("validation loss, nats")
    if not depths:
        style.say(axes[0, 0], "no model was trained")
    else:  # intervals of the few of which some failed are wider than any loss
        known = table[["mean", "unigram"]].to_numpy(dtype=float)
        axes[0, 0].set_ylim(np.nanmin(known) - ABOVE, np.nanmax(known) + ABOVE)
    for depth, axis in zip(depths, axes[0], strict=False):
        draw_panel(axis, select(table, depth=depth), select(failed, depth=depth), warm_ups)
        axis.set_title(f"{depth} blocks")
    looks: dict[str, dict] = {
        f"warm-up: {w} steps": {"linestyle": style.LINES[i % 5], "marker": "o"} | FILLED[i > 0]
        for i, w in enumerate(warm_ups)
    }
    if not table["residual"].all():
        looks["without residuals"] = {"linestyle": ""} | RESIDUAL[False]
    looks["a model that failed"] = FAILED
    looks["character frequencies"] = {"linestyle": ":"}
    legend_below(figure, table["placement"], looks, ncols=4)
    bars = f"bars: {look.level:.0%} t intervals over them."
    count = (
        f"{len(failed)} of {len(models)} failed, of which {models['diverged_at'].count()} diverged."
    )
    return figure, f"{describe_sample(table)}; {bars} {count}"
