"""Figure trainability: loss after a short training, by learning rate and warm-up."""

from collections.abc import Iterator, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.depth.figures import COLORS, legend_below
from normscope.studies.depth.tables import INITS

DOTS: dict = {"marker": "o", "linestyle": "", "mfc": "none", "markersize": 3}
CROSSES: dict = {"marker": "x", "linestyle": "", "markersize": 4, "markeredgewidth": 0.7}
ROOM = 1.5  # factor around the lowest and the highest rate
SHIFT = 0.1  # octaves of the rate over which points are dodged
CELL = ["placement", "warmup_steps"]
NETWORK = ["depth", "residual", "init", "placement", "learning_rate"]


def draw_panel(axis: Axes, models: pd.DataFrame, warm_ups: list[int]) -> None:
    """Every model an open marker, a cross if it failed; lines join medians over models."""
    axis.axhline(models["unigram"].iloc[0], color="0.6", linestyle=":", linewidth=1)
    for key, group in split(models, CELL):
        placement, warm_up = key.values()
        i, color = warm_ups.index(warm_up), COLORS[placement]
        shift = style.dodge_log(2 * list(PLACEMENTS).index(placement) + i, 4, 4 * SHIFT)
        cell = group.assign(x=group["learning_rate"] * shift)
        medians = cell.groupby("x")["capped_loss"].median()
        axis.plot(medians, color=color, linestyle=style.LINES[i % 5])
        for failed, look in enumerate((DOTS, CROSSES)):
            shown = select(cell, failed=failed)
            axis.plot(shown["x"], shown["capped_loss"], color=color, **look)
    rates = models["learning_rate"]
    style.log_x(axis, rates)
    axis.set_xlim(rates.min() / ROOM, rates.max() * ROOM)


def describe_others(models: pd.DataFrame) -> Iterator[str]:
    """A sentence for each network that the panel leaves out."""
    for key, group in split(models, NETWORK):
        depth, residual, init, placement, rate = key.values()
        network = f"{depth} blocks, {PLACEMENTS[placement]}, {INITS[init]}"
        network += "" if residual else ", no residual connections"
        median, failed = group["capped_loss"].median(), int(group["failed"].sum())
        yield f"{network}, rate {rate:g}: median {median:.2f}, {failed} of {len(group)} failed."


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Losses by learning rate of the networks that were trained at most rates; others in words."""
    models = tables["losses"]
    figure, axes = style.canvas(look.width_mm, 85, 1, 1)
    axis = axes[0, 0]
    axis.set(xlabel="learning rate", ylabel="validation loss (nats per character)")
    if models.empty:
        axis.set_title("losses")
        return figure, style.say(axis, "no model was trained")
    usual = models[(models["init"] == "gpt2") & models["residual"].astype(bool)]
    rates = usual.groupby("depth")["learning_rate"].nunique()
    shown = select(usual, depth=rates.idxmax())
    warm_ups = sorted(set(shown["warmup_steps"]))
    draw_panel(axis, shown, warm_ups)
    n = style.sample_size(shown.groupby([*CELL, "learning_rate"]).size())
    axis.set_title(f"{rates.idxmax()} blocks, {n} at each setting")
    looks: dict[str, dict] = {
        f"warm-up of {steps} steps": {"linestyle": style.LINES[i % 5]}
        for i, steps in enumerate(warm_ups)
    }
    looks |= {"one model": DOTS, "failed": CROSSES, "character frequencies": {"linestyle": ":"}}
    legend_below(figure, shown["placement"], looks, ncols=4)
    failed = f"{n} at each setting; {int(shown['failed'].sum())} of {len(shown)} failed."
    return figure, " ".join([failed, *describe_others(models.drop(shown.index))])
