"""The published script's statements, each beside what its own and the corrected protocol show.

The script prints shares and cosines, and no losses; what it takes for granted, or sets out to
explain, are its statements. They are about LayerNorm under feedback alignment, as the script is;
the twin under backpropagation stands beside it. A verdict is the answer of the test that stands
beside the statement: under the script's protocol of these runs alone, under the corrected one only
with seeds enough for an exact test. Statements about formulas need none: one model shows an error.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.ledger.case import SELECTION, Case, of_units, too_few
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.paper.words import interval, number, significant
from normscope.statistics.estimate import estimate
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.jacobian.tables import ANY, SETTING

ARM, OWN = "layernorm", "fa"
CLOSE = 0.9  # cosine from which a surrogate's direction counts as close to the exact one
PREDICTOR = "left_in_blocks"
ATTENTION = ("softmax", "sigmoid")
PLACES = {"block": "block norms", "final": "final norm"}


def _rows(table: pd.DataFrame, **where: str) -> pd.DataFrame:
    """The rows with these values."""
    here = np.ones(len(table), dtype=bool)
    for column, value in where.items():
        here &= np.asarray(table[column] == value, dtype=bool)
    return table[here]


@dataclass(frozen=True)
class Evidence:
    """The workflow's tables.

    Args:
        grid: the configuration.
        layers: rows of ``tables.of_chosen``.
        picked: rows of ``tables.chosen``.
        models: rows of ``tables.predictors``, a model trained with a surrogate each.
        predictions: what ``tables.predictions`` gives.
        unigram: loss of character frequencies.
        level: confidence level.
        entries: the ledger's.
        margin_sds: standard deviations of the exact models' losses that count as nothing.
    """

    grid: Jacobian
    layers: pd.DataFrame
    picked: pd.DataFrame
    models: pd.DataFrame
    predictions: pd.DataFrame
    unigram: float
    level: float
    entries: Mapping[str, Entry]
    margin_sds: float

    def measured(self, measure: str, place: str | None, **where: str) -> pd.Series:
        """The mean of a measure over the norms of a place (None: over all), by seed."""
        of = {"arm": ARM, "signal": "own", "variant": "corrected", "feedback": OWN, **where}
        found = _rows(self.layers, **of, **({"place": place} if place else {}))
        return found.dropna(subset=measure).groupby("seed")[measure].mean()

    def lost(self, **where: str) -> int:
        """How many models with the exact backward pass diverged, of the corrected protocol."""
        of = {"protocol": self.grid.corrected, "arm": ARM, "norm_backward": "exact", **where}
        return int(_rows(self.picked, **of)["diverged"].sum())

    def models_of(self, rule: str, place: str = "all", **where: str) -> pd.DataFrame:
        """The models of the corrected protocol that were trained with a surrogate."""
        of = {"protocol": self.grid.corrected, "arm": ARM, "norm_backward": rule}
        return _rows(self.models, **of, surrogates_in=place, **where)

    def costs(self, rule: str, place: str = "all", attention: str = "softmax") -> str:
        """The cost of a surrogate under FA and backpropagation, as words."""
        fa, backprop = (
            self.words(self.models_of(rule, place, feedback=f, attention=attention)["cost"], True)
            for f in (OWN, "backprop")
        )
        return f"{fa} under FA, {backprop} under backpropagation"

    def words(self, values: pd.Series, sign: bool = False) -> str:
        """A mean over seeds with its interval where there is one."""
        there = list(values.dropna())
        if not there:
            return number(math.nan)
        e = estimate(there, self.level)
        bounds = "" if e.n < 2 else f" {interval(e.low, e.high, sign=sign)}"
        return f"{number(e.mean, sign=sign)}{bounds}"

    def margin(self) -> float:
        """Standard deviations of the exact models' losses over seeds, softmax under FA."""
        of = dict(zip(SETTING, (self.grid.corrected, ARM, "softmax", OWN), strict=True))
        losses = _rows(self.picked, **of, norm_backward="exact")["val_loss"].dropna()
        return self.margin_sds * float(losses.std()) if len(losses) > 1 else math.nan

    def margin_of(self, entry: Entry) -> float:
        """The entry's margin: a number of its own, or that of the exact models."""
        return entry.margin if isinstance(entry.margin, float) else self.margin()

    def at_ceiling(self, *models: pd.DataFrame) -> str:
        """Why costs that are ceilings cannot be compared; empty if they are none."""
        margin = 0.0 if math.isnan(self.margin()) else self.margin()
        is_any = any(of["val_loss"].mean() > self.unigram - margin for of in models)
        return "" if not is_any else "undecided: models do no better than character frequencies"


def claims(evidence: Evidence) -> list[Claim]:
    """The statements: what its protocol shows, what the corrected one shows, and their tests."""
    return [
        _softmax_costs_more(evidence),
        _radial_part_is_larger(evidence),
        _shares_predict_costs(evidence),
        _cosines_tell_harm(evidence),
        _norms_are_alike(evidence),
        _formula_is_exact(evidence),
        _cosines_follow_from_shares(evidence),
        _signal_is_gradient(evidence),
    ]


def _here(test: Callable[[float], bool], value: float) -> str:
    """A verdict that speaks of the runs at hand alone."""
    if math.isnan(value):
        return "no data"
    return "holds" if test(value) else "fails"


def _claim(
    e: Evidence, key: str, *, was: str, own: str, now: str, case: Callable[[Entry], Case]
) -> Claim:
    entry = e.entries[key]
    return Claim(key, entry, was, now, {"": case(entry)}, own)


def _fact(value: float, entry: Entry) -> Case:
    """Whether an error is below the bound: one counterexample decides."""
    if math.isnan(value):
        return Case.unknown("no data")
    return Case.known(value < entry.limit, value)


def _of_pairs(
    e: Evidence,
    entry: Entry,
    pairs: tuple[list[float], int],
    ceiling: str,
    margin: float | None = None,
) -> Case:
    """The entry's test of paired costs, unless they are ceilings or the margin is not known."""
    if ceiling:
        return Case.unknown(ceiling)
    differences, lost = pairs
    if margin is not None and math.isnan(margin):
        return Case.unknown(SELECTION if lost else too_few(len(differences)) or "no data")
    return of_units(entry, differences, lost=lost, margin=margin, level=e.level)


def _error(value: float) -> str:
    return number(value) if math.isnan(value) else f"{value:.1e}"


def _paired(one: pd.DataFrame, other: pd.DataFrame) -> tuple[list[float], int]:
    """Differences of cost by seed, and how many pairs a divergence has taken."""
    both = one.merge(other, on="seed", suffixes=("", "_other"))
    lost = int((both["diverged"] | both["diverged_other"]).sum())
    return list((both["cost"] - both["cost_other"]).dropna()), lost


def _softmax_costs_more(e: Evidence) -> Claim:
    of = [e.models_of("center_scale", feedback=OWN, attention=a) for a in ATTENTION]
    words = [f"{a}: {e.costs('center_scale', attention=a)}" for a in ATTENTION]
    return _claim(
        e,
        "softmax_costs_more",
        was="no surrogate is trained and no loss is shown.",
        own="no data",
        now=f"cost in nats, {'; '.join(words)}.",
        case=lambda entry: _of_pairs(e, entry, _paired(*of), e.at_ceiling(*of)),
    )


def _radial_part_is_larger(e: Evidence) -> Claim:
    d = e.grid.protocols[e.grid.corrected].model.n_embd

    def of(attention: str, place: str | None, **where: str) -> pd.Series:
        return e.measured("r_radial", place, attention=attention, **where)

    published = {"protocol": e.grid.published, "variant": "published"}
    softmax, sigmoid = (float(of(a, None, **published).mean()) for a in ATTENTION)
    corrected = {"protocol": e.grid.corrected}
    now = {place: [d * of(a, place, **corrected) for a in ATTENTION] for place in PLACES}
    words = [
        f"{name}: softmax {e.words(now[place][0])}, sigmoid {e.words(now[place][1])}"
        for place, name in PLACES.items()
    ]
    differences = now["block"][0] - now["block"][1]
    lost = sum(e.lost(feedback=OWN, attention=a) for a in ATTENTION)
    return _claim(
        e,
        "radial_is_larger",
        was=f"r_radial, all norms averaged: softmax {significant(softmax, 4)}, sigmoid "
        f"{significant(sigmoid, 4)}.",
        own=_here(lambda difference: difference > 0, softmax - sigmoid),
        now=f"r_radial x d, {'; '.join(words)}.",
        case=lambda entry: of_units(entry, list(differences.dropna()), lost=lost, level=e.level),
    )


def _shares_predict_costs(e: Evidence) -> Claim:
    found = {
        (r["norm_backward"], r["surrogates_in"], r["predictor"]): r
        for r in _rows(e.predictions, protocol=e.grid.corrected).to_dict("records")
    }

    def rho(rule: str, place: str, predictor: str) -> str:
        row = found.get((rule, place, predictor))
        if row is None or math.isnan(row["rho"]):
            return number(math.nan)
        return f"{number(row['rho'], 2)} (n {row['n']})"

    row = found.get(("center_scale", "all", PREDICTOR))
    every = {name: rho(ANY, ANY, name) for name in (PREDICTOR, "left_in_final", "error_blocks")}
    return _claim(
        e,
        "shares_predict_costs",
        was="no surrogate is trained.",
        own="no data",
        now=f"rho {rho('center_scale', 'all', PREDICTOR)}; of r_radial at the final norm: "
        f"{rho('center_scale', 'all', 'left_in_final')}. Over all cells of setting, surrogate and "
        f"place, of the energy left in at block norms: {every[PREDICTOR]}; at the final norm: "
        f"{every['left_in_final']}; of the gradient's relative error at block norms: "
        f"{every['error_blocks']}.",
        case=lambda _: Case.unknown("no data" if row is None else _of_correlation(row)),
    )


def _of_correlation(row: dict) -> str:
    """Why a correlation over settings decides nothing."""
    if why := SELECTION if row["diverged"] else too_few(int(row["seeds"])):
        return why
    if math.isnan(row["rho"]):
        return "no data"
    return f"undecided: {row['n']} crossed settings are no independent sample"


def _cosines_tell_harm(e: Evidence) -> Claim:
    def cosines(protocol: str, variant: str) -> list[float]:
        of = {"protocol": protocol, "variant": variant, "attention": "softmax"}
        return [float(e.measured("cos_center_scale", place, **of).mean()) for place in PLACES]

    def words(values: list[float]) -> str:
        return f"block norms {number(values[0])}, final norm {number(values[1])}"

    now, margin = (
        cosines(e.grid.corrected, "corrected"),
        e.margin_of(e.entries["cosines_tell_harm"]),
    )
    models = e.models_of("center_scale", feedback=OWN, attention="softmax")
    costs, lost = list(models["cost"].dropna()), int(models["diverged"].sum())

    def case(entry: Entry) -> Case:
        if few := SELECTION if lost else too_few(len(costs)):
            return Case.unknown(few)
        if np.isnan(now).any() or math.isnan(margin):
            return Case.unknown("no data")
        if min(now) <= CLOSE:
            return Case.unknown(f"undecided: a cosine is not above {CLOSE:g}")
        return of_units(entry, costs, lost=lost, bound=margin, level=e.level)

    return _claim(
        e,
        "cosines_tell_harm",
        was=f"cosine of center_scale: {words(cosines(e.grid.published, 'published'))}; no loss.",
        own="no data",
        now=f"cosine of center_scale: {words(now)}; cost {e.costs('center_scale')}, against "
        f"{number(margin)}. projected, whose cosine is 1 token by token and whose length is off by "
        f"sigma, costs {e.costs('projected')}.",
        case=case,
    )


def _norms_are_alike(e: Evidence) -> Claim:
    def r(place: str | None) -> str:
        of = {"protocol": e.grid.published, "variant": "published", "attention": "softmax"}
        return significant(float(e.measured("r_radial", place, **of).mean()))

    of = [
        e.models_of("center_scale", place, feedback=OWN, attention="softmax")
        for place in ("all", "blocks")
    ]
    return _claim(
        e,
        "norms_are_alike",
        was=f"r_radial averaged over all norms: {r(None)}; of the block norms {r('block')}, of the "
        f"final norm {r('final')}.",
        own="no data",
        now=f"cost of center_scale in all norms: {e.costs('center_scale')}; in the block norms "
        f"alone: {e.costs('center_scale', 'blocks')}; in the final norm alone: "
        f"{e.costs('center_scale', 'final')}.",
        case=lambda entry: _of_pairs(e, entry, _paired(*of), e.at_ceiling(*of), e.margin_of(entry)),
    )


def _formula_is_exact(e: Evidence) -> Claim:
    def worst(measure: str, protocol: str) -> float:
        of = _rows(e.layers, arm=ARM, protocol=protocol, variant="corrected")
        return float(of[measure].max())

    was, now = (
        worst("error_without_gain", protocol) for protocol in (e.grid.published, e.grid.corrected)
    )
    closed = worst("error_closed_form", e.grid.corrected)
    limit = e.entries["formula_is_exact"].limit
    return _claim(
        e,
        "formula_is_exact",
        was=f"largest relative error over layers: {significant(was)}.",
        own=_here(lambda error: error < limit, was),
        now=f"largest relative error: {significant(now)}; with g = gain dL/dy: {_error(closed)}.",
        case=lambda entry: _fact(now, entry),
    )


def _cosines_follow_from_shares(e: Evidence) -> Claim:
    def gap(protocol: str, variant: str) -> float:
        of = _rows(e.layers, arm=ARM, protocol=protocol, variant=variant, signal="own")
        left = (1 - of["r_mean"] - of["r_radial"]).clip(lower=0)
        return float((np.sqrt(left / (1 - of["r_mean"])) - of["cos_center_scale"]).abs().max())

    was, now = gap(e.grid.published, "published"), gap(e.grid.corrected, "corrected")
    rows = _rows(e.layers, arm=ARM, protocol=e.grid.corrected, variant="corrected")
    limit = e.entries["shares_give_cosines"].limit
    return _claim(
        e,
        "shares_give_cosines",
        was=f"largest difference: {number(was, 4)}; r is a ratio of batch means, the cosine a mean "
        "over tokens.",
        own=_here(lambda difference: difference < limit, was),
        now=f"largest difference: {number(now, 4)}, both means over tokens, of which the root is "
        "not the mean of roots; token by token, with eps: "
        f"{_error(float(rows['error_identity'].max()))}.",
        case=lambda entry: _fact(now, entry),
    )


def _signal_is_gradient(e: Evidence) -> Claim:
    def alignment(protocol: str, place: str) -> pd.Series:
        return e.measured("alignment", place, protocol=protocol, attention="softmax")

    was = [float(alignment(e.grid.published, place).mean()) for place in PLACES]
    now = [alignment(e.grid.corrected, place) for place in PLACES]
    limit, lost = e.entries["signal_is_gradient"].limit, e.lost(feedback=OWN, attention="softmax")
    return _claim(
        e,
        "signal_is_gradient",
        was=f"block norms {number(was[0])}, final norm {number(was[1])}.",
        own=_here(lambda cosine: cosine > limit, was[0]),
        now=f"block norms {e.words(now[0])}, final norm {e.words(now[1])}; the twin under "
        "backpropagation is in the tables.",
        case=lambda entry: of_units(entry, list(now[0]), lost=lost, level=e.level),
    )
