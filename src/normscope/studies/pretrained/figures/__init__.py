"""What the figures of residual gain in pretrained models share."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from normscope.pages import style
from normscope.studies.arms import arm_look, family

# the colors of the arms
NORMS = {family(arm): arm_look(arm)["color"] for arm in ("layernorm", "rmsnorm")}
TICKS = (0.5, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 5)
NOTHING = "no model was measured"
OTHER = "0.5"  # a norm that is neither
PUBLISHED, MEASURED = "D", "P"  # markers of where a model's prompts were measured
MARKS: dict[str, dict] = {
    **{norm: {"color": color, "marker": "", "linestyle": "-"} for norm, color in NORMS.items()},
    "published": {"color": "0.4", "marker": PUBLISHED, "linestyle": ""},
    "measured": {"color": "0.4", "marker": MEASURED, "linestyle": ""},
}


def model_labels(table: pd.DataFrame) -> list[str]:
    """A model's name, and where its number is from if that is not this workflow."""
    return [
        r["model"] if r["experiment"] == "measured" else f"{r['model']} ({r['dtype']}, published)"
        for r in table.to_dict("records")
    ]


def draw_gains(axis: Axes, table: pd.DataFrame) -> None:
    """One row per model: its geometric mean, with the interval over prompts."""
    for y, row in enumerate(table.to_dict("records")):
        color = NORMS.get(row["norm"], OTHER)
        gain, low, high = np.exp([row["log_gain"], row["low"], row["high"]])
        axis.hlines(y, low, high, color=color, linewidth=1.4)
        marker = MEASURED if row["experiment"] == "measured" else PUBLISHED
        axis.plot(gain, y, color=color, marker=marker, markersize=3.5, linestyle="")
    style.baseline(axis, 1, vertical=True)


def gain_axis(axis: Axes) -> None:
    """A logarithmic x axis of gains, with plain numbers."""
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("gain of the last block")


def count_prompts(table: pd.DataFrame) -> str:
    """How many prompts stand behind the rows of a table, for a caption."""
    ns = sorted({int(n) for n in table["n"].dropna()})
    if not ns:
        return "no prompt"
    return "–".join(map(str, dict.fromkeys((ns[0], ns[-1])))) + " prompts"


def list_models(models: pd.DataFrame) -> str:
    """Which models were measured, and which not, for a caption.

    Args:
        models: models.csv.
    """
    measured = list(models.loc[models["norm"].notna(), "model"])
    missing = list(models.loc[models["norm"].isna(), "model"])
    text = f"Measured: {', '.join(measured) or 'no model'}."
    return f"{text} Not measured: {', '.join(missing)}." if missing else text
