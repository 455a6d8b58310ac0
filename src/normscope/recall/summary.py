"""The decisive test in words and tables, made from the workflow's tables alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.arms import ARMS
from normscope.recall.recipe import Task
from normscope.summary import seeds_needed
from normscope.tables import interval, number, records, significant

LEARNED = 0.99  # accuracy from which a task counts as learned
ALIKE = 2.0  # ratio of sharpnesses below which two arms count as equally flat

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
        row[r.response] = f"{number(r.effect, sign=True)}{bounds}{star}"
    return pd.DataFrame(list(rows.values()))


@dataclass(frozen=True)
class Values:
    """Means of measures by task, arm and learning rate; NaN for what was not trained."""

    cells: pd.DataFrame
    published: dict[str, float]  # learning rate of each of the notebook's arms
    published_task: str
    corrected_task: str
    rate: float  # of the corrected task

    def at(self, task: str, arm: str, rate: float, measure: str) -> float:
        c = self.cells
        row = c[(c["task"] == task) & (c["arm"] == arm) & (c["measure"] == measure)]
        found = row.loc[row["learning_rate"] == rate, "mean"]
        return float(found.iloc[0]) if len(found) else float("nan")

    def was(self, arm: str, measure: str) -> float:
        """Under the notebook's protocol."""
        rate = self.published.get(arm, float("nan"))
        return self.at(self.published_task, arm, rate, measure)

    def now(self, arm: str, measure: str) -> float:
        """On the corrected task."""
        return self.at(self.corrected_task, arm, self.rate, measure)

    def each(self, value: Callable[[str, str], float], measure: str) -> str:
        """The measure of every published arm, as words."""
        accuracy = measure.startswith("accuracy")
        show = number if accuracy else significant
        return ", ".join(f"{ARMS[arm].label} {show(value(arm, measure))}" for arm in self.published)


def _verdict(fails: bool | None) -> str:
    """In these runs; None where what the test needs was not trained."""
    return "no data" if fails is None else ("fails" if fails else "holds")


def _exceeds(value: float, bound: float) -> bool | None:
    return None if np.isnan(value) or np.isnan(bound) else bool(value > bound)


def claims(v: Values, factors: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Each statement of the notebook: what its protocol shows, what the corrected one shows.

    The verdicts compare means of this grid's runs by the test that stands beside them; they are no
    inference about other seeds.

    Args:
        v: measured means.
        factors: effects of the factors, as in factors.csv.
        task: the corrected task.
    """
    rows = [_is_recall(v, task), _l2_cannot_learn(v), _affine_expresses(v, factors)]
    rows += [_l2_is_as_flat(v), _none_collapses(v), _norms_are_needed(v)]
    columns = ["claim", "as published", "corrected", "test", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _is_recall(v: Values, task: Task) -> list[str]:
    alone = [v.was(arm, "accuracy_without_context") for arm in v.published]
    return [
        "The task is associative recall.",
        "accuracy with the whole context deleted: "
        f"{v.each(v.was, 'accuracy_without_context')}. The answer is the query itself.",
        f"on the task of that name: {v.each(v.now, 'accuracy_without_context')}; chance is "
        f"{number(task.chance)}. With the context: {v.each(v.now, 'accuracy')}.",
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
    normed = [v.was(arm, measure) for arm in v.published if arm != "none"]
    return [
        "Norms keep representations isotropic; without one they collapse.",
        f"effective rank: {v.each(v.was, measure)}.",
        f"of recall: {v.each(v.now, measure)}. Losses of the same models, copy: "
        f"{v.each(v.was, 'loss')}; recall: {v.each(v.now, 'loss')}.",
        "under the notebook's protocol the effective rank without norm is below every norm's",
        _verdict(_exceeds(v.was("none", measure), min(normed, default=float("nan")))),
    ]


def _norms_are_needed(v: Values) -> list[str]:
    rate = v.published.get("layernorm", float("nan"))
    same = v.at(v.published_task, "none", rate, "loss")
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
