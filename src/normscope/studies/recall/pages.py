"""The decisive test in words and tables, made from the workflow's tables alone."""

import numpy as np
import pandas as pd

from normscope.nn.arms import ARMS
from normscope.paper.words import Section, interval, number, records, reference, significant
from normscope.statistics.estimate import ALPHA, seeds_needed
from normscope.studies.recall.grid import Recall
from normscope.studies.recall.tables import why_no_effects

SHOWN = {
    "loss": "loss",
    "accuracy": "accuracy",
    "temperature": "temperature",
    "calibrated_loss": "calibrated loss",
    "accuracy_without_context": "accuracy without context",
    "effective_rank_query": "effective rank",
    "sharpness": "sharpness",
    "scaled_sharpness": "sharpness x norm²",
}


def cell_table(cells: pd.DataFrame, task: str) -> pd.DataFrame:
    """A row per arm and learning rate of a task: means over models."""
    of_task = cells[cells["task"] == task]
    rows = []
    for (arm, rate), group in of_task.groupby(["arm", "learning_rate"], sort=False):
        means = group.set_index("measure")["mean"]
        n, diverged = int(group["n"].max()), int(group["diverged"].iloc[0])
        row = {"arm": ARMS[str(arm)].label, "learning rate": f"{rate:g}"}
        row["n"] = f"{n}, {diverged} diverged" if diverged else str(n)
        for measure, title in SHOWN.items():
            accuracy = measure.startswith("accuracy")
            row[title] = number(means[measure]) if accuracy else significant(means[measure])
        rows.append(row)
    return pd.DataFrame(rows)


def best_table(best: pd.DataFrame) -> pd.DataFrame:
    """The best learning rate of each arm that was trained at more than one."""
    return pd.DataFrame(
        {
            "task": best["task"],
            "arm": [ARMS[arm].label for arm in best["arm"]],
            "rates tried": best["rates"],
            "best": [
                "diverged" if np.isnan(r.best) else f"{r.best:g}{' (edge)' * bool(r.at_edge)}"
                for r in records(best)
            ],
            "loss": [significant(v) for v in best["loss"]],
            "accuracy": [number(v) for v in best["accuracy"]],
        }
    )


def factor_table(factors: pd.DataFrame) -> pd.DataFrame:
    """A row per contrast, a column per response: effect, interval, and a star if it stands.

    It stands if its joint interval excludes 0 and there are seeds enough for an exact test to agree
    at the joint level.
    """
    rows: dict[str, dict[str, str]] = {}
    for r in records(factors):
        enough = r.n >= seeds_needed(r.alpha)
        star = "*" if enough and (r.joint_low > 0 or r.joint_high < 0) else ""
        row = rows.setdefault(r.contrast, {"contrast": r.contrast, "n": str(r.n)})
        bounds = "" if r.n < 2 else f" {interval(r.low, r.high, sign=True)}"
        own = "" if str(r.n) == row["n"] else f", n = {r.n}"
        row[r.response] = f"{number(r.effect, sign=True)}{bounds}{star}{own}"
    return pd.DataFrame(list(rows.values()))


def section(
    recall: Recall, cells: pd.DataFrame, best: pd.DataFrame, factors: pd.DataFrame
) -> Section:
    """What the template of the summary says of the decisive test, by the template's names.

    Args:
        recall: the configuration.
        cells, best, factors: recall_cells.csv, recall_best.csv, factors.csv.
    """
    corrected, published = recall.corrected, recall.published
    copy, task = recall.tasks[published.task], recall.tasks[corrected.task]
    there = {name: s for name, s in recall.tasks.items() if name in set(cells["task"])}
    tables = {f"recall_{name}": cell_table(cells, name) for name in there}
    tables |= {"best": best_table(best), "factors": factor_table(factors)}
    sections = [
        f"### Task {name}, {settings.steps} steps, embedding started at {settings.embedding_std:g}"
        f"\n\n{reference(f'recall_{name}')}"
        for name, settings in there.items()
    ]
    texts = {
        "recall_width": task.n_embd,
        "copy_entities": copy.entities,
        "copy_attributes": copy.attributes,
        "entities": task.entities,
        "attributes": task.attributes,
        "corrected_task": corrected.task,
        "recall_rate": f"{corrected.learning_rate:g}",
        "verdict_seeds": seeds_needed(ALPHA),
        "tasks": "\n\n".join(sections),
        "best": reference("best") if len(best) else "No arm has two learning rates here.",
        "factors": _factors(recall, cells, factors),
    }
    return Section(texts, tables)


def _factors(recall: Recall, cells: pd.DataFrame, factors: pd.DataFrame) -> str:
    """The table of effects with how to read it, or why there is none."""
    corrected = recall.corrected
    if factors.empty:
        at = (cells["task"] == corrected.task) & (cells["learning_rate"] == corrected.learning_rate)
        return f"No effects: {why_no_effects(cells[at].drop_duplicates('arm'))}."
    needed = seeds_needed(factors["alpha"].iloc[0])
    return (
        f"Intervals: Student's t over seeds, each on its own: of {len(factors)} effects a few will "
        "exclude 0 by chance. A star marks those whose joint interval (Bonferroni, within a "
        "column) excludes 0 with seeds enough for an exact test to agree, here "
        f"{needed}.\n\n{reference('factors')}"
    )
