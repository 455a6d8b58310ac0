"""Figure loss: validation loss above the baseline's by arm and placement, every seed a point."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import AS_CHANCE, arm_label, count, divergences
from normscope.studies.losses import draw_losses

ROOM = 1.3
LINEAR = 0.1  # nats up to which the axis is linear: seeds differ by hundredths, arms by up to 1
LEAST = (-0.05, 0.05)  # what is shown in any case
BOUNDS = ("difference", "difference_low", "difference_high")


def above_baseline(chosen: pd.DataFrame, baseline: Mapping[str, str]) -> pd.Series:
    """The loss of every model less that of the baseline's with the same protocol and seed."""
    keys = ["protocol", "seed"]
    reference = select(chosen, **baseline).set_index(keys)["capped_loss"]
    lower = reference.reindex(pd.MultiIndex.from_frame(chosen[keys]))
    return chosen["capped_loss"] - lower.to_numpy()


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    protocols: Sequence[str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """One panel per protocol: losses above the baseline's, each arm at its chosen rate."""
    chosen, arms = (t[t["protocol"].isin(protocols)] for t in (tables["chosen"], tables["arms"]))
    chosen = chosen.assign(shown=above_baseline(chosen, baseline))
    figure, axes = draw_losses(chosen, arms, look.width_mm, BOUNDS)
    ends = [*LEAST, *chosen["shown"].dropna()]
    for axis in axes:
        style.baseline(axis, 0, vertical=True)
        axis.set_xlim(ROOM * min(ends), ROOM * max(ends))  # intervals of a few seeds end beyond
        style.symlog(axis, LINEAR)
    axes[-1].set_xlabel(f"validation loss above {arm_label(**baseline)} (nats per character)")
    words = [f"{p}: {count(models)}." for p, models in chosen.groupby("protocol", sort=False)]
    bars = f"Bars: mean and {look.level:.0%} t intervals that hold together in a protocol."
    lost = divergences(chosen, ("protocol", "arm", "placement"), AS_CHANCE)
    return figure, f"n: {' '.join(words)} {bars} {lost}"
