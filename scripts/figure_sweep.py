"""Rule figure_sweep: what the learning rate does to each arm, and where each arm is best."""

from pathlib import Path

import pandas as pd
from pydantic_settings import CliApp

from normscope import style
from normscope.arms import ARMS
from normscope.errors import report
from normscope.figure import FigureFlags, caption
from normscope.files import write_text
from normscope.recall.figure import mark_divergence, n_of
from normscope.recall.tables import best_rates, swept

ROWS = {"loss": "loss (nats)", "accuracy": "accuracy"}


class Flags(FigureFlags):
    """Draw loss and accuracy against the learning rate."""

    runs: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    everything = pd.read_csv(flags.runs)
    runs = swept(everything)
    best = best_rates(everything).set_index(["task", "arm"])["best"].to_dict()
    tasks = list(dict.fromkeys(runs["task"]))
    figure, axes = style.canvas(flags.width_mm, 85, len(ROWS), max(1, len(tasks)))
    if not tasks:
        axes[0, 0].text(0.5, 0.5, "no arm has two learning rates", ha="center")
    for row, (column, title) in enumerate(ROWS.items()):
        axes[row, 0].set_ylabel(title)
        for axis, task in zip(axes[row], tasks, strict=False):
            of_task = runs[runs["task"] == task]
            for arm in style.in_order(list(of_task["arm"])):
                looks = style.look(arm, list(runs["arm"]))
                of_arm = of_task[of_task["arm"] == arm]
                dots = looks | {"linestyle": "", "markerfacecolor": "none"}
                axis.plot(of_arm["learning_rate"], of_arm[column], **dots)
                means = of_arm.groupby("learning_rate")[column].mean()
                axis.plot(means, label=ARMS[arm].label, **looks | {"marker": ""})
                at = best.get((task, arm))
                if pd.notna(at):
                    axis.plot(at, means[at], **looks | {"linestyle": ""})
            mark_divergence(axis, of_task, "learning_rate")
            axis.set_xscale("log")
            if column == "loss":
                style.log_y(axis)
                axis.set_title(f"task {task}")
            else:
                axis.set_xlabel("learning rate")
    style.legend(figure)
    style.save(figure, flags.out)
    n = n_of(runs) if tasks else "No arm has two learning rates in this configuration."
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
