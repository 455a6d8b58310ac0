"""Figure trainability: loss after a short training over rates, and the models that failed."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.depth.figures import COLORS, legend_below
from normscope.studies.depth.tables import INITS

USUAL, PLAIN = "", "without residuals"  # the others have another start than GPT-2's
MARKERS = {USUAL: "o", PLAIN: "D"}
OTHER_MARKER = "s"
ROOM = 1.5  # factor around the lowest and the highest rate
ABOVE = 0.1  # nats, above and below all models
SHIFT = 0.06  # of a placement's points, in octaves of the rate, so that models can be told apart
CELL = ["placement", "kind", "warmup_steps"]


def dots(kind: str) -> dict:
    """The look of models that learned."""
    marker = MARKERS.get(kind, OTHER_MARKER)
    return {"marker": marker, "linestyle": "", "mfc": "none", "markersize": 3}


def crosses(kind: str) -> dict:
    """The look of models that failed."""
    marker = "+" if kind == PLAIN else "x"
    return {"marker": marker, "linestyle": "", "markersize": 4, "markeredgewidth": 0.7}


def draw_panel(axis: Axes, models: pd.DataFrame, warm_ups: list[int]) -> None:
    """Every model an open marker, a cross if it failed; lines join medians over models.

    Args:
        axis: the panel.
        models: of losses.csv, with their kinds.
        warm_ups: all that there are.
    """
    axis.axhline(models["unigram"].iloc[0], color="0.6", linestyle=":", linewidth=1)
    for key, group in split(models, CELL):
        placement, kind, warm_up = key.values()
        i, color = warm_ups.index(warm_up), COLORS[placement]
        step = 1.6 * (list(PLACEMENTS).index(placement) - 1) + 0.8 * i + 4 * (kind not in MARKERS)
        cell = group.assign(x=group["learning_rate"] * 2 ** (SHIFT * step))
        medians = cell.groupby("x")["capped_loss"].median()
        axis.plot(medians, color=color, linestyle=style.LINES[i % 5])
        for failed, look in enumerate((dots(kind), crosses(kind))):
            shown = select(cell, failed=failed)
            axis.plot(shown["x"], shown["capped_loss"], color=color, **look)
    rates = sorted(set(models["learning_rate"]))
    style.log_x(axis, rates)
    axis.set_xlim(rates[0] / ROOM, rates[-1] * ROOM)
    axis.set_xlabel("learning rate")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Losses by learning rate."""
    models = tables["losses"]
    starts = models["init"].map(INITS).where(models["init"] != "gpt2", USUAL)
    models = models.assign(kind=starts.where(models["residual"].astype(bool), PLAIN))
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
        n = style.sample_size(shown.groupby([*CELL, "learning_rate"])["seed"].nunique())
        axis.set_title(f"{depth} blocks, {n} at each setting")
    looks: dict[str, dict] = {
        f"warm-up: {w} steps, median": {"linestyle": style.LINES[i % 5]}
        for i, w in enumerate(warm_ups)
    }
    kinds = [USUAL, *sorted(set(models["kind"]) - {USUAL})]
    looks |= {", ".join(filter(None, ["one model", kind])): dots(kind) for kind in kinds}
    looks |= {f"failed, {kind}": crosses(kind) for kind in kinds if kind == PLAIN}
    looks |= {"a model that failed": crosses(USUAL), "character frequencies": {"linestyle": ":"}}
    legend_below(figure, models["placement"], looks, ncols=3)
    failed, lost = int(models["failed"].sum()), models["diverged_at"].count()
    count = f"{failed} of {len(models)} failed, of which {lost} diverged."
    return figure, f"n: models (seeds), at each setting as stated. {count}"
