"""The notebook's statement that no contrast can express; the others are in data/claims/."""

import pandas as pd

from normscope.nn.arms import ARMS
from normscope.studies.recall.recipe import Cell
from normscope.verdicts.case import SELECTION, Case
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.reading import Reading
from normscope.words import number

LEARNED = 0.9  # accuracy from which a task counts as learned
ALONE = "accuracy_without_context"


def _means(models: pd.DataFrame, measure: str) -> dict[str, float]:
    """The mean of a measure by the label of the arm; NaN if a model diverged."""
    groups = models.groupby("arm", sort=False)[measure]
    return {ARMS[str(arm)].label: float(group.mean(skipna=False)) for arm, group in groups}


def _words(means: dict[str, float]) -> str:
    return ", ".join(f"{label} {number(value)}" for label, value in means.items())


def _why_open(models: pd.DataFrame, arms: int) -> str:
    """Why the task cannot be judged by the models of so many arms; empty if it can."""
    if models["arm"].nunique() < arms:
        return "no data"
    if models["diverged_at"].notna().any():
        return SELECTION
    lost = [label for label, mean in _means(models, "accuracy").items() if not mean >= LEARNED]
    return f"undecided: {lost[0]} did not learn the task" if lost else ""


@claim("copy_is_recall")
def copy_is_recall(reading: Reading, evidence: Evidence) -> Finding:
    """The notebook's task: one arm that answers without the context decides."""
    recall, runs = evidence.studies["recall"], evidence.table("recall.runs")
    cells = (recall.published_cells(), recall.corrected_cells())
    was, now = (pd.DataFrame(some).merge(runs, on=[*Cell._fields]) for some in cells)
    tasks = (recall.tasks[part.task] for part in (recall.published, recall.corrected))
    chance, corrected_chance = (task.chance for task in tasks)
    case = Case.unknown(why) if (why := _why_open(was, len(cells[0]))) else None
    if case is None:
        alone = max(_means(was, ALONE).values())
        case = Case.known(alone < (1 + chance) / 2, alone, was["seed"])
    return Finding(
        {"": case},
        f"accuracy without context: {_words(_means(was, ALONE))}; with it: "
        f"{_words(_means(was, 'accuracy'))}.",
        case.answer(),
        f"of the task that its name promises: {_words(_means(now, ALONE))}, chance "
        f"{number(corrected_chance)}; with context: {_words(_means(now, 'accuracy'))}.",
    )
