"""The notebook's statements, each beside what its protocol and the corrected one show."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.arms import ARMS
from normscope.recall.grid import Cell, Recall
from normscope.tables import number, significant

LEARNED = 0.99  # accuracy from which a task counts as learned
ALIKE = 2.0  # ratio of sharpnesses below which two arms count as equally flat


@dataclass(frozen=True)
class Values:
    """Means of measures by task, arm and learning rate; NaN for what was not trained."""

    cells: pd.DataFrame  # recall_cells.csv
    recall: Recall

    @property
    def published(self) -> list[Cell]:
        return self.recall.published_cells()

    def at(self, cell: Cell, measure: str) -> float:
        c = self.cells
        row = c[(c["task"] == cell.task) & (c["arm"] == cell.arm) & (c["measure"] == measure)]
        found = row.loc[row["learning_rate"] == cell.learning_rate, "mean"]
        return float(found.iloc[0]) if len(found) else float("nan")

    def was(self, arm: str, measure: str) -> float:
        """Under the notebook's protocol."""
        cells = [cell for cell in self.published if cell.arm == arm]
        return self.at(cells[0], measure) if cells else float("nan")

    def now(self, arm: str, measure: str) -> float:
        """On the corrected task."""
        corrected = self.recall.corrected
        return self.at(Cell(corrected.task, arm, corrected.learning_rate), measure)

    def each(self, value: Callable[[str, str], float], measure: str) -> str:
        """The measure of every published arm, as words."""
        show = number if measure.startswith("accuracy") else significant
        return ", ".join(
            f"{ARMS[cell.arm].label} {show(value(cell.arm, measure))}" for cell in self.published
        )


def _verdict(fails: bool | None) -> str:
    """In these runs; None where what the test needs was not trained."""
    return "no data" if fails is None else ("fails" if fails else "holds")


def _exceeds(value: float, bound: float) -> bool | None:
    return None if np.isnan(value) or np.isnan(bound) else bool(value > bound)


def claims(cells: pd.DataFrame, factors: pd.DataFrame, recall: Recall) -> pd.DataFrame:
    """Each statement of the notebook: what its protocol shows, what the corrected one shows.

    The verdicts compare means of this grid's runs by the test that stands beside them; they are no
    inference about other seeds.

    Args:
        cells: means of measures, recall_cells.csv.
        factors: effects of the factors, factors.csv.
        recall: what was trained, and what of it is published and what corrected.
    """
    v = Values(cells, recall)
    rows = [_is_recall(v), _l2_cannot_learn(v), _affine_expresses(v, factors)]
    rows += [_l2_is_as_flat(v), _none_collapses(v), _norms_are_needed(v)]
    columns = ["claim", "as published", "corrected", "test", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _is_recall(v: Values) -> list[str]:
    chance = v.recall.tasks[v.recall.corrected.task].chance
    alone = [v.at(cell, "accuracy_without_context") for cell in v.published]
    return [
        "The task is associative recall.",
        "accuracy with the whole context deleted: "
        f"{v.each(v.was, 'accuracy_without_context')}. The answer is the query itself.",
        f"on the task of that name: {v.each(v.now, 'accuracy_without_context')}; chance is "
        f"{number(chance)}. With the context: {v.each(v.now, 'accuracy')}.",
        "accuracy without context is below 0.5",
        _verdict(_exceeds(min(alone), 0.5)),
    ]


def _l2_cannot_learn(v: Values) -> list[str]:
    l2, ln = "manual_l2", "layernorm"
    return [
        "Unit L2 fails to learn the task, for want of an affine part.",
        f"loss {significant(v.was(l2, 'loss'))} (LayerNorm {significant(v.was(ln, 'loss'))}) at "
        f"accuracy {number(v.was(l2, 'accuracy'))}.",
        f"all logits divided by one temperature, {significant(v.was(l2, 'temperature'))}, the same "
        f"model's loss is {significant(v.was(l2, 'calibrated_loss'))}. Recall: accuracy "
        f"{number(v.now(l2, 'accuracy'))} (LayerNorm {number(v.now(ln, 'accuracy'))}), calibrated "
        f"loss {significant(v.now(l2, 'calibrated_loss'))} "
        f"({significant(v.now(ln, 'calibrated_loss'))}).",
        f"accuracy under the notebook's protocol is below {LEARNED}",
        _verdict(_exceeds(v.was(l2, "accuracy"), LEARNED)),
    ]


def _effect(factors: pd.DataFrame, response: str, contrast: str) -> float:
    found = factors.loc[
        (factors["response"] == response) & (factors["contrast"] == contrast), "effect"
    ]
    return float(found.iloc[0]) if len(found) else float("nan")


def _affine_expresses(v: Values, factors: pd.DataFrame) -> list[str]:
    gain, bias, radius = (
        _effect(factors, "ln calibrated loss", contrast)
        for contrast in ("gain: yes − no", "bias: yes − no", "radius: 1 − sqrt(d)")
    )
    plain, ln = "layernorm_plain", "layernorm"
    return [
        "The affine part is the expressive engine that makes a solution reachable.",
        "read off the loss of Unit L2 alone, whose radius is other than LayerNorm's too.",
        f"main effects on ln calibrated loss, crossed: gain {number(gain, sign=True)}, bias "
        f"{number(bias, sign=True)}, radius 1 instead of sqrt(d) {number(radius, sign=True)}. "
        f"LayerNorm without gain and bias: accuracy {number(v.now(plain, 'accuracy'))}, with both "
        f"{number(v.now(ln, 'accuracy'))}.",
        "gain or bias changes the calibrated loss by more than the radius does",
        _verdict(_exceeds(abs(radius), max(abs(gain), abs(bias)))),
    ]


def _l2_is_as_flat(v: Values) -> list[str]:
    l2, ln = "manual_l2", "layernorm"
    ratio = v.was(l2, "sharpness") / v.was(ln, "sharpness")
    return [
        "Unit L2 shares the flat landscape of LayerNorm and BatchNorm.",
        f"height of the slice's hump, which its procedure makes: {v.each(v.was, 'hump')}.",
        f"largest Hessian eigenvalue of the same models: {v.each(v.was, 'sharpness')}; of recall: "
        f"{v.each(v.now, 'sharpness')}. Rise of the loss along filter-normalized directions: "
        f"{v.each(v.was, 'rise')}; of recall: {v.each(v.now, 'rise')}.",
        f"its sharpness is within {ALIKE:g} times LayerNorm's, notebook's protocol",
        _verdict(None if np.isnan(ratio) else not 1 / ALIKE <= ratio <= ALIKE),
    ]


def _none_collapses(v: Values) -> list[str]:
    measure = "effective_rank_query"
    normed = [v.at(cell, measure) for cell in v.published if cell.arm != "none"]
    return [
        "Norms keep representations isotropic; without one they collapse.",
        f"effective rank: {v.each(v.was, measure)}.",
        f"of recall: {v.each(v.now, measure)}. Losses of the same models, copy: "
        f"{v.each(v.was, 'loss')}; recall: {v.each(v.now, 'loss')}.",
        "under the notebook's protocol the effective rank without norm is below every norm's",
        _verdict(_exceeds(v.was("none", measure), min(normed, default=float("nan")))),
    ]


def _norms_are_needed(v: Values) -> list[str]:
    rates = {cell.arm: cell.learning_rate for cell in v.published}
    rate = rates.get("layernorm", float("nan"))
    same = v.at(Cell(v.recall.published.task, "none", rate), "loss")
    ln = v.was("layernorm", "loss")
    return [
        "A high-performance solution needs a norm; the unconstrained baseline shows what is lost.",
        f"loss without norm {significant(v.was('none', 'loss'))}, at a learning rate of its own.",
        f"at LayerNorm's rate {significant(same)}, LayerNorm {significant(ln)}. Recall, one rate: "
        f"accuracy {number(v.now('none', 'accuracy'))} and {number(v.now('layernorm', 'accuracy'))}"
        ".",
        "at one learning rate the loss without norm is above LayerNorm's (copy)",
        _verdict(_exceeds(ln, same)),
    ]
