"""Figure slice: the published loss slice and the corrected ones on the same axes."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

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


def draw_kinds(top: Axes, bottom: Axes, slices: pd.DataFrame) -> None:
    """All kinds of slice above; the published one and the same restored, close up, below.

    From all losses that of the trained model, the one at offset 0, is subtracted.
    """
    trained = select(slices, kind="restored", offset=0.0)["loss"].mean()
    slices = slices.assign(loss=slices["loss"] - trained)
    published, restored, filtered = (slices[slices["kind"] == kind] for kind in KINDS)
    near = restored[restored["offset"].abs() <= published["alpha"].abs().max()]
    near = near.sort_values("offset")
    for axis in (top, bottom):
        dots = {"marker": "o", "markersize": 2, "linestyle": "", "color": PUBLISHED}
        axis.plot(published["alpha"], published["loss"], label=KINDS["published"], **dots)
        axis.plot(near["offset"], near["loss"], color=RESTORED, label=KINDS["restored"])
    draw_slices(top, filtered, color=FILTER, linestyle="--", label=KINDS["filter"])
    bottom.set_xlabel("offset")
    bottom.yaxis.set_major_locator(MaxNLocator(4))
    bottom.yaxis.set_major_formatter("{x:.3g}")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, cells: Sequence[Sequence], seed: int
) -> tuple[Figure, str]:
    """Loss slices in nats of one seed of the notebook's cells: task, arm, learning rate."""
    slices, runs = (select_cells(tables[name], cells) for name in ("slices", "runs"))
    slices, runs = slices[slices["seed"] == seed], runs[runs["seed"] == seed]
    arms = in_order(list(runs["arm"]))
    figure, axes = style.canvas(look.width_mm, 105, 2, len(arms), shared=False)
    style.share_y(axes[0])
    for arm, top, bottom in zip(arms, *axes, strict=True):
        top.set_title(f"{ARMS[arm].label}, n = 1")
        bottom.set_title("close up")
        of_arm = slices[slices["arm"] == arm]
        if of_arm.empty:
            style.say(top, "diverged")
        else:
            draw_kinds(top, bottom, of_arm)
    axes[0, 0].set_ylabel("loss above the trained\nmodel's (nats)")
    axes[1, 0].set_ylabel("the same, enlarged\n(nats; scales differ)")
    style.legend_below(figure, style.labelled([axes[0, 0]]), ncols=3)
    directions = slices[slices["kind"] == "filter"]["direction"].nunique()
    return figure, f"{directions} such directions. {describe_sample(runs)}"
