"""Figure batch_size: what a smaller batch costs BatchNorm, and what it costs LayerNorm."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.arms import (
    AS_CHANCE,
    add_sample,
    arm_legend,
    divergences,
    draw_models,
    in_order,
    line_look,
)

COLUMNS = {"capped_loss": "validation loss", "excess": "above the same seed at the largest batch"}
SHIFT = 0.25  # octaves over which arms are dodged


def describe_sizes(batches: pd.DataFrame) -> str:
    """How many models stand behind a point: arms may differ, and sizes do."""
    counts = batches.groupby(["batch_size", "arm", "text"])["seed"].nunique().groupby("batch_size")
    sizes: dict[str, list[str]] = {}
    for size, few, many in zip(*counts.agg(["min", "max"]).reset_index().to_numpy().T, strict=True):
        sizes.setdefault(f"{few}" if few == many else f"{few} to {many}", []).append(str(size))
    return "; ".join(
        f"{n} trained models of each arm with {', '.join(listed)} windows"
        for n, listed in sizes.items()
    )


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Loss against the batch size, and how much it is above that at the greatest one."""
    batches = tables["batches"]
    texts = list(dict.fromkeys(batches["text"]))
    rows = max(1, len(texts))
    figure, axes = style.canvas(look.width_mm, 75 * rows, rows, len(COLUMNS), shared=False)
    if batches.empty:
        return figure, style.say(axes[0, 0], "no arm has two batch sizes")
    for of_text, text in zip(axes, texts, strict=True):
        draw_text(of_text, batches[batches["text"] == text], text if rows > 1 else "")
    arm_legend(figure)
    n = describe_sizes(batches)
    lost = divergences(batches, ("arm", "batch_size"), AS_CHANCE)
    return figure, f"n: {n}. {lost}"


def draw_text(axes: Sequence[Axes], batches: pd.DataFrame, text: str) -> None:
    """One row of panels, of the models of one text."""
    arms = in_order(list(batches["arm"]))
    seeds = batches.groupby(["batch_size", "arm"])["seed"].nunique()
    counts = {int(str(size)): style.sample_size(n) for size, n in seeds.groupby("batch_size")}
    for axis, (column, label) in zip(axes, COLUMNS.items(), strict=True):
        for i, arm in enumerate(arms):
            models = batches[batches["arm"] == arm]
            models = models.assign(x=models["batch_size"] * style.dodge_log(i, len(arms), SHIFT))
            axis.plot(models.groupby("x")[column].mean(), **line_look(arm))
            draw_models(axis, arm, models["x"], models[column])
            add_sample(axis, arm)
        style.log_x(axis, batches["batch_size"], base=2)
        axis.set_xticks(list(counts), [f"{size}\n{n}" for size, n in counts.items()])
        axis.set_xlabel("windows in a batch; models of each arm")
        axis.set_title(": ".join(filter(None, [text, label])))
    axes[0].set_ylabel("nats per character")
    style.baseline(axes[1], 0)
