"""The notebook's statements, each beside what its protocol shows and what the corrected one shows.

A verdict is the answer of the test that stands beside the statement: holds, fails, or undecided
with the reason. Under the notebook's protocol it speaks of that protocol's runs alone. Under the
corrected one it needs seeds enough for an exact test, and the same answer over all ends of the
intervals. A test of what models are like asks first whether they learned their task.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.arms import ARMS
from normscope.recall.grid import Cell, Recall
from normscope.stats import ALPHA, seeds_needed
from normscope.tables import number, records, significant

LEARNED = 0.9  # accuracy from which a task counts as learned
ALIKE = 2.0  # ratio of sharpnesses up to which two arms count as equally flat

ALONE, RANK = "accuracy_without_context", "effective_rank_query"


Row = Mapping[str, float]


@dataclass(frozen=True)
class Protocol:
    """Means of the measures of some cells, one an arm."""

    rows: Mapping[tuple[Cell, str], Row]  # of recall_cells.csv, by cell and measure
    cells: Sequence[Cell]
    chance: float
    seeds: int  # below which nothing is decided

    def of(self, cell: Cell, measure: str) -> float:
        """The mean of a measure, of any cell; NaN for what was not trained or diverged."""
        return self.rows.get((cell, measure), {"mean": float("nan")})["mean"]

    def row(self, arm: str, measure: str) -> Row | None:
        """All that is known of a measure of an arm."""
        return next((self.rows.get((c, measure)) for c in self.cells if c.arm == arm), None)

    def get(self, arm: str, measure: str) -> float:
        """The mean of a measure of an arm."""
        row = self.row(arm, measure)
        return row["mean"] if row else float("nan")

    def each(self, measure: str) -> str:
        """The measure of every arm, as words."""
        show = number if measure.startswith("accuracy") else significant
        return ", ".join(f"{ARMS[c.arm].label} {show(self.of(c, measure))}" for c in self.cells)

    def verdict(
        self, needs: Sequence[tuple[str, str]], holds: Callable[..., bool], learned: Sequence[str]
    ) -> str:
        """Whether ``holds`` of the values of ``needs`` (arm, measure), where it can be asked.

        Args:
            needs: what ``holds`` is given, in order.
            holds: the test.
            learned: arms that must have learned their task, or the test asks of nothing.
        """
        asked = [*needs, *((arm, "accuracy") for arm in learned)]
        rows = [self.row(arm, measure) for arm, measure in asked]
        known = [row for row in rows if row and np.isfinite(row["mean"])]
        if len(known) < len(rows):
            return "no data"
        if any(row["diverged"] for row in known):
            return "undecided: runs diverged, and the others are a selection"
        for arm in learned:
            if self.get(arm, "accuracy") < LEARNED:
                return f"undecided: {ARMS[arm].label} did not learn the task"
        n = int(min(row["n"] for row in known))
        if n < self.seeds:
            return f"undecided: {n} seeds, {self.seeds} needed"
        columns = ("mean", "low", "high") if n > 1 else ("mean",)
        ranges = [[row[column] for column in columns] for row in known[: len(needs)]]
        answers = {holds(*corner) for corner in itertools.product(*ranges)}
        if len(answers) > 1:
            return "undecided: intervals overlap"
        return "holds" if answers.pop() else "fails"


def claims(cells: pd.DataFrame, recall: Recall) -> pd.DataFrame:
    """A row per statement of the notebook.

    Args:
        cells: means of measures, recall_cells.csv.
        recall: what was trained, and what of it is published and what corrected.
    """
    tasks = recall.tasks
    chance = [tasks[part.task].chance for part in (recall.published, recall.corrected)]
    rows: dict[tuple[Cell, str], Row] = {
        (Cell(r.task, r.arm, r.learning_rate), r.measure): {
            name: getattr(r, name) for name in ("mean", "low", "high", "n", "diverged")
        }
        for r in records(cells)
    }
    was = Protocol(rows, recall.published_cells(), chance[0], 1)
    now = Protocol(rows, recall.corrected_cells(), chance[1], seeds_needed(ALPHA))
    statements = [
        _is_recall(was, now),
        _l2_cannot_learn(was, now),
        _affine_expresses(now, recall),
        _l2_is_as_flat(was, now),
        _none_collapses(was, now),
        _norms_are_needed(was, now),
    ]
    columns = ["claim", "test", "as published", "its verdict", "corrected", "verdict"]
    return pd.DataFrame(statements, columns=columns)


def _is_recall(was: Protocol, now: Protocol) -> list[str]:
    def verdict(p: Protocol) -> str:
        arms = [cell.arm for cell in p.cells]
        bound = (1 + p.chance) / 2
        return p.verdict([(a, ALONE) for a in arms], lambda *alone: max(alone) < bound, arms)

    return [
        "The task is associative recall.",
        "without its context, accuracy is nearer to chance than to 1",
        f"accuracy without context: {was.each(ALONE)}; with it: {was.each('accuracy')}.",
        verdict(was),
        f"without: {now.each(ALONE)}, chance {number(now.chance)}; with: {now.each('accuracy')}.",
        verdict(now),
    ]


def _l2_cannot_learn(was: Protocol, now: Protocol) -> list[str]:
    def words(p: Protocol) -> str:
        loss, accuracy, temperature, calibrated = (
            p.get("manual_l2", m) for m in ("loss", "accuracy", "temperature", "calibrated_loss")
        )
        return (
            f"loss {significant(loss)} (LayerNorm {significant(p.get('layernorm', 'loss'))}), "
            f"accuracy {number(accuracy)} ({number(p.get('layernorm', 'accuracy'))}), loss "
            f"{significant(calibrated)} ({significant(p.get('layernorm', 'calibrated_loss'))}) "
            f"after division of its logits by {significant(temperature)}."
        )

    def verdict(p: Protocol) -> str:
        needs = [("manual_l2", "accuracy")]
        return p.verdict(needs, lambda accuracy: accuracy < LEARNED, ["layernorm"])

    return [
        "Unit L2 fails to learn the task, for want of an affine part.",
        f"its accuracy stays below {LEARNED:g} where LayerNorm's does not",
        *(part for p in (was, now) for part in (words(p), verdict(p))),
    ]


def _affine_expresses(now: Protocol, recall: Recall) -> list[str]:
    corrected = recall.corrected

    def get(arm: str, measure: str) -> float:
        return now.of(Cell(corrected.task, arm, corrected.learning_rate), measure)

    def pair(one: str, other: str) -> str:
        losses = " to ".join(significant(get(arm, "loss")) for arm in (one, other))
        calibrated = " to ".join(significant(get(arm, "calibrated_loss")) for arm in (one, other))
        accuracy = " to ".join(number(get(arm, "accuracy")) for arm in (one, other))
        return f"loss {losses}, calibrated {calibrated}, accuracy {accuracy}"

    arms = ("manual_l2", "manual_l2_affine", "layernorm_plain")
    cells = [Cell(corrected.task, arm, corrected.learning_rate) for arm in arms]
    crossed = Protocol(now.rows, cells, now.chance, now.seeds)
    return [
        "The affine part is the expressive engine that makes a solution reachable.",
        "on Unit L2, gain and bias lower the calibrated loss by more than radius sqrt(d) does",
        "one arm, Unit L2, that lacks the affine part and has another radius than LayerNorm.",
        "undecided: the two are confounded",
        f"gain and bias on Unit L2: {pair('manual_l2', 'manual_l2_affine')}; on LayerNorm: "
        f"{pair('layernorm_plain', 'layernorm')}; radius sqrt(d) and centering on Unit L2: "
        f"{pair('manual_l2', 'layernorm_plain')}.",
        crossed.verdict(
            [(arm, "calibrated_loss") for arm in arms],
            lambda plain, affine, radius: affine < radius and affine < plain,
            ["layernorm_plain"],
        ),
    ]


def _l2_is_as_flat(was: Protocol, now: Protocol) -> list[str]:
    def words(p: Protocol) -> str:
        return f"sharpness: {p.each('sharpness')}; at losses {p.each('loss')}"

    def alike(l2: float, *others: float) -> bool:
        return all(0 < l2 <= ALIKE * other and other <= ALIKE * l2 for other in others)

    def verdict(p: Protocol) -> str:
        arms = ["manual_l2", "layernorm", "batchnorm"]
        return p.verdict([(a, "sharpness") for a in arms], alike, arms)

    return [
        "Unit L2 shares the flat landscape of LayerNorm and BatchNorm.",
        f"largest Hessian eigenvalues within a factor of {ALIKE:g}, of the raw loss",
        f"middle of the published slice above its ends by {was.each('hump')}, at parameters far "
        f"from those that its labels name; {words(was)}.",
        verdict(was),
        f"{words(now)}. Filter-normalized slices rise by {now.each('rise')}.",
        verdict(now),
    ]


def _none_collapses(was: Protocol, now: Protocol) -> list[str]:
    def words(p: Protocol) -> str:
        return f"effective rank: {p.each(RANK)}; at losses {p.each('loss')}."

    def verdict(p: Protocol) -> str:
        arms = ["none", *(cell.arm for cell in p.cells if cell.arm != "none")]
        needs = [(arm, RANK) for arm in arms]
        if len(arms) < 2:
            return "no data"
        return p.verdict(needs, lambda none, *normed: none < min(normed), arms)

    return [
        "Norms keep representations isotropic; without one they collapse.",
        "the effective rank without norm is below that of every norm",
        *(part for p in (was, now) for part in (words(p), verdict(p))),
    ]


def _norms_are_needed(was: Protocol, now: Protocol) -> list[str]:
    def words(p: Protocol) -> str:
        return f"loss {p.each('loss')}; learning rates " + ", ".join(
            f"{cell.learning_rate:g}" for cell in p.cells
        )

    def verdict(p: Protocol) -> str:
        needs = [("none", "loss"), ("layernorm", "loss")]
        return p.verdict(needs, lambda none, layernorm: none > layernorm, ["layernorm"])

    rates = {cell.arm: cell.learning_rate for cell in was.cells}
    matched = Cell(was.cells[0].task, "none", rates.get("layernorm", float("nan")))
    same = significant(was.of(matched, "loss"))
    return [
        "A good solution needs a norm; the baseline without one shows what is lost.",
        "the loss without norm is above LayerNorm's",
        f"{words(was)}; without norm at LayerNorm's rate: {same}.",
        verdict(was),
        f"{words(now)}.",
        verdict(now),
    ]
