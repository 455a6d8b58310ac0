"""Figure trainability: loss after a short training over rates, and the models that failed."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.depth.figures import COLORS, legend_below
from normscope.studies.depth.measures import INITS

RESIDUAL = {True: {"marker": "o"}, False: {"marker": "D"}}
OTHER_START: dict = {"marker": "s"}  # than GPT-2's, with residual connections
CROSS: dict = {"linestyle": "", "markersize": 4, "markeredgewidth": 0.7}
FAILED: dict = {True: {"marker": "x", **CROSS}, False: {"marker": "+", **CROSS}}
ROOM = 1.5  # factor around the lowest and the highest rate
ABOVE = 0.1  # nats, above and below all models
SHIFT = 0.06  # of a placement's points, in octaves of the rate, so that models can be told apart
KEYS = ["placement", "residual", "init", "warmup_steps"]


def draw_panel(axis: Axes, models: pd.DataFrame, warm_ups: list[int]) -> None:
    """Every model an open marker, a cross if it failed; lines join medians over models.

    Args:
        axis: the panel.
        models: of losses.csv.
        warm_ups: all that there are.
    """
    axis.axhline(models["unigram"].iloc[0], color="0.6", linestyle=":", linewidth=1)
    for key, group in models.groupby(KEYS, sort=False):
        placement, residual, init, warm_up = key[0], bool(key[1]), str(key[2]), key[3]
        i = warm_ups.index(int(str(warm_up)))
        is_other = residual and init != "gpt2"
        step = 1.6 * (list(PLACEMENTS).index(str(placement)) - 1) + 0.8 * i + 4 * is_other
        cell = group.assign(x=group["learning_rate"] * 2 ** (SHIFT * step))
        color = COLORS[str(placement)]
        medians = cell.groupby("x")["capped_loss"].median()
        axis.plot(medians, color=color, linestyle=style.LINES[i % 5])
        marker = OTHER_START if is_other else RESIDUAL[residual]
        mark: dict = {"linestyle": "", "mfc": "none", "markersize": 3, **marker}
        learned, failed = cell[cell["failed"] == 0], cell[cell["failed"] == 1]
        axis.plot(learned["x"], learned["capped_loss"], color=color, **mark)
        axis.plot(failed["x"], failed["capped_loss"], color=color, **FAILED[residual])
    rates = sorted(set(models["learning_rate"]))
    style.log_x(axis, rates)
    axis.set_xlim(rates[0] / ROOM, rates[-1] * ROOM)
    axis.set_xlabel("learning rate")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Losses by learning rate."""
    models = tables["losses"]
    depths, warm_ups = (sorted(set(models[k])) for k in ("depth", "warmup_steps"))
    figure, axes = style.canvas(look.width_mm, 85, 1, max(1, len(depths)), shared=True)
    axes[0, 0].set_ylabel("validation loss (nats per character)")
    if not depths:
        style.say(axes[0, 0], "no model was trained")
    else:
        known = models[["capped_loss", "unigram"]]
        axes[0, 0].set_ylim(known.min().min() - ABOVE, known.max().max() + ABOVE)
    for depth, axis in zip(depths, axes[0], strict=False):
        shown = select(models, depth=depth)
        draw_panel(axis, shown, warm_ups)
        n = style.sample_size(shown.groupby([*KEYS, "learning_rate"])["seed"].nunique())
        axis.set_title(f"{depth} blocks, {n} at each setting")
    looks: dict[str, dict] = {
        f"warm-up: {w} steps, median": {"linestyle": style.LINES[i % 5]}
        for i, w in enumerate(warm_ups)
    }
    looks["one model"] = {"linestyle": "", "mfc": "none", **RESIDUAL[True]}
    others = models.loc[models["residual"] & (models["init"] != "gpt2"), "init"].unique()
    looks |= {
        f"one model, {INITS[i]}": {"linestyle": "", "mfc": "none", **OTHER_START} for i in others
    }
    if not models["residual"].all():
        looks["one model, without residuals"] = {"linestyle": "", "mfc": "none", **RESIDUAL[False]}
        looks["failed, without residuals"] = FAILED[False]
    looks["a model that failed"] = FAILED[True]
    looks["character frequencies"] = {"linestyle": ":"}
    legend_below(figure, models["placement"], looks, ncols=3)
    failed = models[models["failed"] == 1]
    count = (
        f"{len(failed)} of {len(models)} failed, of which {models['diverged_at'].count()} diverged."
    )
    return figure, f"n: models (seeds), at each setting as stated. {count}"
