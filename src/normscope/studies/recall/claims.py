"""The notebook's statement that a contrast cannot express; the others are in data/claims/."""

import pandas as pd

from normscope.ledger.case import SELECTION, Case
from normscope.ledger.claim import Evidence, Finding, claim
from normscope.ledger.entry import Entry
from normscope.ledger.expression import mean
from normscope.ledger.pairs import diverged, select
from normscope.nn.arms import ARMS
from normscope.words import number

LEARNED = 0.9  # accuracy from which a task counts as learned
ALONE = "accuracy_without_context"
PROTOCOLS = ("published", "corrected")


def _arms(evidence: Evidence, protocol: str) -> dict[str, pd.DataFrame]:
    """The models of the published arms under a protocol, by arm."""
    vocabulary = evidence.studies["recall"].vocabulary()
    cells = {"protocol": protocol, "arms": "published"}
    rows = select(evidence.table("recall.runs"), cells, vocabulary)
    return {str(arm): models for arm, models in rows.groupby("arm", sort=False)}


def _each(arms: dict[str, pd.DataFrame], measure: str) -> str:
    """The mean of a measure of every arm, as words."""
    means = {arm: mean(rows[measure]) for arm, rows in arms.items()}
    return ", ".join(f"{ARMS[arm].label} {number(value)}" for arm, value in means.items())


def _why_open(arms: dict[str, pd.DataFrame], published: int) -> str:
    """Why the task cannot be judged; empty if it can."""
    if len(arms) < published:
        return "no data"
    if any(diverged(rows).any() for rows in arms.values()):
        return SELECTION
    for arm, rows in arms.items():
        if not mean(rows["accuracy"]) >= LEARNED:
            return f"undecided: {ARMS[arm].label} did not learn the task"
    return ""


@claim("copy_is_recall")
def copy_is_recall(entry: Entry, evidence: Evidence) -> Finding:
    """About the notebook's task: one arm that does without the context decides."""
    recall = evidence.studies["recall"]
    was, now = _arms(evidence, "published"), _arms(evidence, "corrected")
    chance = {name: recall.tasks[getattr(recall, name).task].chance for name in PROTOCOLS}
    alone = [mean(rows[ALONE]) for rows in was.values()]
    why = _why_open(was, len(recall.published.arms))
    case = Case.unknown(why)
    if not why:
        case = Case.known(max(alone) < (1 + chance["published"]) / 2, max(alone))
    return Finding(
        {"": case},
        f"accuracy without context: {_each(was, ALONE)}; with it: {_each(was, 'accuracy')}.",
        case.reading(),
        f"of the task that its name promises: {_each(now, ALONE)}, chance "
        f"{number(chance['corrected'])}; with context: {_each(now, 'accuracy')}.",
    )
