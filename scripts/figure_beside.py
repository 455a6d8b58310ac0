"""Rule figure_beside: the last block's gain of trained arms beside that of pretrained models."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption, count, divergences
from normscope.studies.pretrained.figure import NORMS, OTHER, n_of, one_line, prompts
from normscope.studies.pretrained.studies import FIRST_STUDIES

PLACEMENT = "pre"  # of pretrained models, and of the trained arms that are comparable


class Flags(FigureFlags):
    """Draw trained and pretrained models side by side."""

    gains: Path
    runs: Path
    by_model: Path
    models: Path


def arm_color(arm: str) -> str:
    """The colour of the pretrained models' norm, for the arm that is the same norm."""
    return NORMS.get(ARMS[arm].label, OTHER)


def draw_trained(axis: Axes, gains: pd.DataFrame) -> None:
    """A marker an arm, with its interval over trained models."""
    for x, row in enumerate(gains.to_dict("records")):
        color = arm_color(row["arm"])
        axis.plot(x, row["last"], "o", color=color)
        axis.vlines(x, row["last_low"], row["last_high"], color=color)
    labels = [ARMS[arm].label for arm in gains["arm"]]
    axis.set_xticks(range(len(gains)), labels, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_title("trained here, all else equal")
    axis.set_ylabel("gain of the last block")


def draw_pretrained(axis: Axes, table: pd.DataFrame) -> None:
    """A marker a model, side by side by family; open ones are published."""
    table = table.sort_values(["norm", "family", "log_gain"], ignore_index=True)
    for x, row in enumerate(table.to_dict("records")):
        color = NORMS.get(row["norm"], OTHER)
        fill = color if row["experiment"] == "measured" else "none"
        axis.plot(x, np.exp(row["log_gain"]), "s", color=color, mfc=fill)
        axis.vlines(x, np.exp(row["low"]), np.exp(row["high"]), color=color)
    axis.set_xticks(
        range(len(table)), list(table["model"]), rotation=60, ha="right", rotation_mode="anchor"
    )
    axis.set_title("pretrained, much else unequal")


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    gains, runs = pd.read_csv(flags.gains), pd.read_csv(flags.runs)
    gains = gains[(gains["placement"] == PLACEMENT) & gains["last"].notna()]
    by_model = pd.read_csv(flags.by_model)
    figure, axes = style.canvas(flags.width_mm, 90, 1, 2)
    draw_trained(axes[0, 0], gains)
    draw_pretrained(axes[0, 1], by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))])
    for axis in axes[0]:
        style.log_y(axis)
        one_line(axis, vertical=False)
    looks: dict[str, dict] = {n: {"color": c, "linestyle": "-"} for n, c in NORMS.items()}
    looks |= {
        "another norm": {"color": OTHER, "linestyle": "-"},
        "published": {"color": "0.4", "marker": "s", "mfc": "none", "linestyle": ""},
        "measured": {"color": "0.4", "marker": "s", "linestyle": ""},
    }
    handles = [axes[0, 1].plot([], [], **look)[0] for look in looks.values()]
    figure.legend(handles, list(looks), loc="outside lower center", ncols=5)
    style.save(figure, flags.out)
    trained = runs[runs["placement"] == PLACEMENT]
    n = (
        f"n: {count(trained)}, bars: {flags.level:.0%} t interval over trained models; "
        f"{prompts(by_model)} "
        f"of each pretrained model, bars: bootstrap over prompts. {divergences(trained)} "
        f"{n_of(pd.read_csv(flags.models))}"
    )
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
