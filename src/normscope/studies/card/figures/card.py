"""Figure card: the loss of a norm above LayerNorm's, and against the learning rate."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import add_sample, arm_look, draw_models, in_order, line_look
from normscope.studies.card.recipe import SWEPT
from normscope.studies.card.tabulate import RELEVANT

MM_PER_ROW, ROOM_MM, LEAST_MM = 5, 28, 60
LINEAR = 0.1  # nats up to which the axis is linear
LEAST = 0.06  # nats that are shown in any case
ROOM = 0.1  # nats around the losses of models that learned
SHIFT = 0.13  # octaves per arm, by which arms are dodged


def differences(
    axis: Axes, runs: pd.DataFrame, compared: pd.DataFrame, names: Mapping[str, str]
) -> None:
    """A row per norm and regime: every text, and the mean with its interval."""
    reference = select(compared, reads="the reference")["arm"].iloc[0]
    rows = compared[compared["difference"].notna()].to_dict("records")
    ends = [-LEAST, LEAST]
    for y, row in enumerate(rows):
        look = arm_look(row["arm"]) | {"linestyle": "", "mfc": "none", "markersize": 3}
        of_regime = select(runs, regime=row["regime"])
        loss, base = (
            select(of_regime, arm=arm).groupby("text")["capped_loss"].mean()
            for arm in (row["arm"], reference)
        )
        above = (loss - base).dropna()
        axis.plot(above, np.full(len(above), y), **look)
        bounds = row["difference_low"], row["difference_high"]
        style.dash(axis, row["difference"], y, bounds, color=look["color"])
        ends += [*above]
    for end in (-RELEVANT, RELEVANT):
        axis.axvline(end, color="0.6", linestyle=":", linewidth=0.8)
    style.baseline(axis, 0, vertical=True)
    style.name_rows(axis, [f"{ARMS[row['arm']].label}, {names[row['regime']]}" for row in rows])
    axis.set_xlim(1.2 * min(ends), 1.2 * max(ends))
    style.symlog(axis, LINEAR)
    axis.set_xlabel(f"loss above that of {ARMS[reference].label} (nats)")


def rates(axis: Axes, trials: pd.DataFrame) -> None:
    """Every pilot model an open marker, a cross at the top where it failed; medians joined."""
    arms = in_order(list(trials["arm"]))
    for i, arm in enumerate(arms):
        shift = style.dodge_log(i, len(arms), SHIFT * len(arms))
        models = trials[trials["arm"] == arm]
        models = models.assign(x=models["learning_rate"] * shift)
        axis.plot(models.groupby("x")["capped_loss"].median(), **line_look(arm))
        learned, failed = models[models["failed"] == 0], models[models["failed"] == 1]
        draw_models(axis, arm, learned["x"], learned["capped_loss"], markersize=3)
        at_top: dict = {"transform": axis.get_xaxis_transform(), "marker": "x", "mfc": None}
        draw_models(axis, arm, failed["x"], np.full(len(failed), 0.97), markersize=3, **at_top)
        add_sample(axis, arm)
    style.log_x(axis, trials["learning_rate"])
    learned = select(trials, failed=0)["capped_loss"]
    if len(learned):
        axis.set_ylim(learned.min() - ROOM, learned.max() + ROOM)
    axis.set(xlabel="learning rate", ylabel="validation loss (nats)")


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    norm: str,
    others: Sequence[str],
    names: Mapping[str, str],
) -> tuple[Figure, str]:
    """Left: losses above LayerNorm's by regime. Right: pilot losses against the learning rate.

    Of the ``others``, the swept regime alone is shown; ``names`` are labels of the shown regimes.
    """
    shown = [norm, *others]
    runs, compared, trials = (
        tables[name][tables[name]["arm"].isin(shown)] for name in ("runs", "compared", "trials")
    )
    of_norm = compared["arm"].eq(norm) | compared["regime"].eq(SWEPT)
    of_norm |= compared["reads"].eq("the reference")
    compared = compared[of_norm & compared["regime"].isin(names)]
    compared = compared.sort_values("arm", key=lambda arms: arms.ne(norm), kind="stable")
    height = max(LEAST_MM, MM_PER_ROW * int(compared["difference"].notna().sum())) + ROOM_MM
    figure, axes = style.canvas(look.width_mm, height, 1, 2, shared=False)
    differences(axes[0, 0], runs, compared, names)
    rates(axes[0, 1], select(trials, regime=SWEPT))
    arms = style.legend_handles([axes[0, 1]])  # on top, where a page shows it without scrolling
    figure.legend([*arms.values()], [*arms], loc="outside upper center", ncols=len(arms))
    n = compared.groupby("regime", sort=False)["texts"].max()
    sizes = ", ".join(f"{names[str(name)]} {count}" for name, count in n.items())
    return figure, (
        f"Texts: {sizes}. Bars: {look.level:.0%} t intervals over texts. Between the dotted "
        "lines, a difference counts as none. Right: pilot models."
    )
