"""Figure slice: the published loss slice and the corrected ones on the same axes."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import in_order
from normscope.studies.recall.figures import describe_sample, draw_slices, select_cells

KINDS = {
    "published": "published: offsets accumulate",
    "restored": "same direction, restored",
    "filter": "filter-normalized, restored",
}
PUBLISHED, RESTORED, FILTER = style.COLORS[2], style.COLORS[0], style.COLORS[1]


def draw_kinds(axis: Axes, slices: pd.DataFrame) -> None:
    """All kinds of slice, as losses above that of the trained model, the one at offset 0."""
    trained = select(slices, kind="restored", offset=0.0)["loss"].mean()
    slices = slices.assign(loss=slices["loss"] - trained)
    published, restored, filtered = (slices[slices["kind"] == kind] for kind in KINDS)
    near = restored[restored["offset"].abs() <= published["alpha"].abs().max()]
    near = near.sort_values("offset")
    dots = {"marker": "o", "markersize": 2, "linestyle": "", "color": PUBLISHED}
    axis.plot(published["alpha"], published["loss"], label=KINDS["published"], **dots)
    axis.plot(near["offset"], near["loss"], color=RESTORED, label=KINDS["restored"])
    draw_slices(axis, filtered, color=FILTER, linestyle="--", label=KINDS["filter"])


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, cells: Sequence[Sequence], seed: int
) -> tuple[Figure, str]:
    """Loss slices in nats of one seed of the notebook's cells: task, arm, learning rate."""
    slices, runs = (select_cells(tables[name], cells) for name in ("slices", "runs"))
    slices, runs = slices[slices["seed"] == seed], runs[runs["seed"] == seed]
    arms = in_order(list(runs["arm"]))
    figure, axes = style.canvas(look.width_mm, 65, 1, len(arms))
    for arm, axis in zip(arms, axes[0], strict=True):
        axis.set_title(f"{ARMS[arm].label}, n = 1")
        axis.set_xlabel("offset")
        of_arm = slices[slices["arm"] == arm]
        if of_arm.empty:
            style.say(axis, "diverged")
        else:
            draw_kinds(axis, of_arm)
    axes[0, 0].set_ylabel("loss above the trained\nmodel's (nats)")
    style.legend_below(figure, style.legend_handles([axes[0, 0]]), ncols=3)
    directions = slices[slices["kind"] == "filter"]["direction"].nunique()
    return figure, f"{directions} such directions. {describe_sample(runs)}"
