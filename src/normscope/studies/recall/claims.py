"""The notebook's statements, each beside what its protocol shows and what the corrected one shows.

Under the notebook's protocol a verdict speaks of that protocol's runs alone: of their means. Under
the corrected one it is that of the entry's exact test over seeds, on models of the same seed. A
test of what models are like asks first whether they learned their task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from normscope.ledger.case import SELECTION, Case, exp, log, of_units
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.nn.arms import ARMS
from normscope.paper.words import number, significant
from normscope.studies.recall.grid import Cell, Recall

LEARNED = 0.9  # accuracy from which a task counts as learned
ALONE, RANK = "accuracy_without_context", "effective_rank_query"
Needs = Sequence[tuple[str, str]]  # arm, measure


@dataclass(frozen=True)
class Protocol:
    """Models of some cells, one cell an arm.

    Args:
        runs: recall.csv, a row a model.
        cells: that are compared.
        chance: accuracy of guessing.
        level: of the intervals.
    """

    runs: pd.DataFrame
    cells: Sequence[Cell]
    chance: float
    level: float

    @cached_property
    def _by_cell(self) -> dict[Cell, pd.DataFrame]:
        groups = self.runs.groupby(list(Cell._fields), sort=False)
        return {Cell._make(key): of.set_index("seed") for key, of in groups}

    def at(self, cell: Cell | None) -> pd.DataFrame:
        """The models of a cell, by seed."""
        none = self.runs.iloc[:0].set_index("seed")
        return none if cell is None else self._by_cell.get(cell, none)

    def models(self, arm: str) -> pd.DataFrame:
        """The models of an arm, by seed."""
        return self.at(next((cell for cell in self.cells if cell.arm == arm), None))

    def of(self, cell: Cell, measure: str) -> float:
        """The mean of a measure, of any cell; NaN for what was not trained or diverged."""
        return _mean(self.at(cell), measure)

    def get(self, arm: str, measure: str) -> float:
        """The mean of a measure of an arm."""
        return _mean(self.models(arm), measure)

    def each(self, measure: str) -> str:
        """The measure of every arm, as words."""
        show = number if measure.startswith("accuracy") else significant
        return ", ".join(f"{ARMS[c.arm].label} {show(self.of(c, measure))}" for c in self.cells)

    def why_open(self, needs: Needs, learned: Sequence[str]) -> str:
        """Why a question cannot be asked; empty if it can.

        Args:
            needs: arms and measures that it is about.
            learned: arms that must have learned their task, or it asks of nothing.
        """
        asked = [*needs, *((arm, "accuracy") for arm in learned)]
        if any(np.isnan(self.get(*need)) for need in asked):
            return "no data"
        if any(self.models(arm)["diverged_at"].notna().any() for arm, _ in asked):
            return SELECTION
        for arm in learned:
            if self.get(arm, "accuracy") < LEARNED:
                return f"undecided: {ARMS[arm].label} did not learn the task"
        return ""

    def verdict(self, needs: Needs, holds: Callable[..., bool], learned: Sequence[str]) -> str:
        """Whether ``holds`` of the means of ``needs``, of these runs alone."""
        if why := self.why_open(needs, learned):
            return why
        return "holds" if holds(*(self.get(*need) for need in needs)) else "fails"

    def case(
        self,
        entry: Entry,
        needs: Needs,
        quantity: Callable[..., float],
        learned: Sequence[str],
    ) -> Case:
        """The entry's test of a quantity of these measures, taken seed by seed."""
        if why := self.why_open(needs, learned):
            return Case.unknown(why)
        both = pd.concat([self.models(arm)[measure] for arm, measure in needs], axis=1)
        finite = both[np.isfinite(both).all(axis=1)]
        values = [quantity(*row) for row in finite.itertuples(index=False)]
        return of_units(entry, values, level=self.level)


def _mean(models: pd.DataFrame, measure: str) -> float:
    values = [v for v in models[measure] if np.isfinite(v)]
    return float(np.mean(values)) if values else float("nan")


def claims(
    runs: pd.DataFrame, recall: Recall, entries: Mapping[str, Entry], level: float
) -> list[Claim]:
    """The notebook's statements.

    Args:
        runs: recall.csv, a row a model.
        recall: what was trained, and what of it is published and what corrected.
        entries: the ledger's.
        level: of the intervals.
    """
    tasks = recall.tasks
    chance = [tasks[part.task].chance for part in (recall.published, recall.corrected)]
    was = Protocol(runs, recall.published_cells(), chance[0], level)
    now = Protocol(runs, recall.corrected_cells(), chance[1], level)
    return [
        _is_recall(entries["copy_is_recall"], was, now),
        _l2_cannot_learn(entries["unit_l2_cannot_learn"], was, now),
        _affine_expresses(entries["affine_is_expressive"], now, recall),
        _l2_is_as_flat(entries["unit_l2_is_flat"], was, now),
        _none_collapses(entries["none_collapses"], was, now),
        _norms_are_needed(entries["norms_are_needed"], was, now),
    ]


def _is_recall(entry: Entry, was: Protocol, now: Protocol) -> Claim:
    """About the notebook's task: one model that does without the context decides."""
    arms = [cell.arm for cell in was.cells]
    bound = (1 + was.chance) / 2
    own = was.verdict([(a, ALONE) for a in arms], lambda *alone: max(alone) < bound, arms)
    if own in ("holds", "fails"):
        case = Case.known(own == "holds", max(was.get(a, ALONE) for a in arms))
    else:
        case = Case.unknown(own)
    return Claim(
        "copy_is_recall",
        entry,
        f"accuracy without context: {was.each(ALONE)}; with it: {was.each('accuracy')}.",
        f"of the task that its name promises: {now.each(ALONE)}, chance {number(now.chance)}; with "
        f"context: {now.each('accuracy')}.",
        {"": case},
        own,
    )


def _l2_cannot_learn(entry: Entry, was: Protocol, now: Protocol) -> Claim:
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

    needs, learned = [("manual_l2", "accuracy")], ["layernorm"]
    return Claim(
        "unit_l2_cannot_learn",
        entry,
        words(was),
        words(now),
        {"": now.case(entry, needs, float, learned)},
        was.verdict(needs, lambda accuracy: accuracy < entry.limit, learned),
    )


def _affine_expresses(entry: Entry, now: Protocol, recall: Recall) -> Claim:
    corrected = recall.corrected

    def get(arm: str, measure: str) -> float:
        return now.of(Cell(corrected.task, arm, corrected.learning_rate), measure)

    def pair(one: str, other: str) -> str:
        losses = " to ".join(significant(get(arm, "loss")) for arm in (one, other))
        calibrated = " to ".join(significant(get(arm, "calibrated_loss")) for arm in (one, other))
        accuracy = " to ".join(number(get(arm, "accuracy")) for arm in (one, other))
        return f"loss {losses}, calibrated {calibrated}, accuracy {accuracy}"

    plain, affine, radius = "manual_l2", "manual_l2_affine", "layernorm_plain"
    arms = (plain, affine, radius)
    cells = [Cell(corrected.task, arm, corrected.learning_rate) for arm in arms]
    crossed = Protocol(now.runs, cells, now.chance, now.level)

    def case(other: str) -> Case:
        needs = [(affine, "calibrated_loss"), (other, "calibrated_loss")]
        return crossed.case(entry, needs, lambda a, b: a - b, [radius])

    return Claim(
        "affine_is_expressive",
        entry,
        "one arm, Unit L2, that lacks the affine part and has another radius than LayerNorm.",
        f"gain and bias on Unit L2: {pair(plain, affine)}; on LayerNorm: "
        f"{pair(radius, 'layernorm')}; radius sqrt(d) and centering on Unit L2: "
        f"{pair(plain, radius)}.",
        {"the pair with radius sqrt(d)": case(radius), "the pair with Unit L2": case(plain)},
        "undecided: the two are confounded",
    )


def _l2_is_as_flat(entry: Entry, was: Protocol, now: Protocol) -> Claim:
    others = ("layernorm", "batchnorm")
    assert isinstance(entry.margin, float)
    factor = entry.margin

    def words(p: Protocol) -> str:
        return f"sharpness: {p.each('sharpness')}; at losses {p.each('loss')}"

    def alike(l2: float, *others: float) -> bool:
        return all(0 < l2 <= factor * other and other <= factor * l2 for other in others)

    arms = ["manual_l2", *others]
    needs = [(arm, "sharpness") for arm in arms]
    cases = {
        f"the pair with {ARMS[other].label}": now.case(
            entry, [needs[0], (other, "sharpness")], _ratio, arms
        )
        for other in others
    }
    return Claim(
        "unit_l2_is_flat",
        entry,
        f"middle of the published slice above its ends by {was.each('hump')}, at parameters far "
        f"from those that its labels name; {words(was)}.",
        f"{words(now)}. Filter-normalized slices rise by {now.each('rise')}.",
        cases,
        was.verdict(needs, alike, arms),
    )


def _ratio(one: float, other: float) -> float:
    """0 where the first is not positive, as a saddle's largest eigenvalue may be."""
    return 0.0 if one <= 0 or other <= 0 else exp(log(one) - log(other))


def _none_collapses(entry: Entry, was: Protocol, now: Protocol) -> Claim:
    def words(p: Protocol) -> str:
        return f"effective rank: {p.each(RANK)}; at losses {p.each('loss')}."

    def normed(p: Protocol) -> list[str]:
        return [cell.arm for cell in p.cells if cell.arm != "none"]

    def verdict(p: Protocol) -> str:
        arms = ["none", *normed(p)]
        if len(arms) < 2:
            return "no data"
        needs = [(arm, RANK) for arm in arms]
        return p.verdict(needs, lambda none, *normed: none < min(normed), arms)

    cases = {
        f"the pair with {ARMS[arm].label}": now.case(
            entry, [("none", RANK), (arm, RANK)], lambda a, b: a - b, ["none", *normed(now)]
        )
        for arm in normed(now)
    }
    return Claim("none_collapses", entry, words(was), words(now), cases, verdict(was))


def _norms_are_needed(entry: Entry, was: Protocol, now: Protocol) -> Claim:
    def words(p: Protocol) -> str:
        return f"loss {p.each('loss')}; learning rates " + ", ".join(
            f"{cell.learning_rate:g}" for cell in p.cells
        )

    needs, learned = [("none", "loss"), ("layernorm", "loss")], ["layernorm"]
    rates = {cell.arm: cell.learning_rate for cell in was.cells}
    matched = Cell(was.cells[0].task, "none", rates.get("layernorm", float("nan")))
    same = significant(was.of(matched, "loss"))
    return Claim(
        "norms_are_needed",
        entry,
        f"{words(was)}; without norm at LayerNorm's rate: {same}.",
        f"{words(now)}.",
        {"": now.case(entry, needs, lambda none, layernorm: none - layernorm, learned)},
        was.verdict(needs, lambda none, layernorm: none > layernorm, learned),
    )
