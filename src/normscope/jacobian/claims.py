"""The published script's statements, each beside what its own and the corrected protocol show.

The script prints shares and cosines, and no losses; what it takes for granted, or sets out to
explain, are its statements. They are about LayerNorm under feedback alignment, as the script is;
the twin under backpropagation stands beside it. A verdict is the answer of the test that stands
beside the statement: under the script's protocol of these runs alone, under the corrected one only
with seeds enough for an exact test. Statements about formulas need none: one model shows an error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from normscope.jacobian.grid import Jacobian
from normscope.jacobian.tables import ANY, SETTING
from normscope.stats import estimate, margin_verdict, sign_verdict, undecidable
from normscope.tables import interval, number, significant

ARM, OWN = "layernorm", "fa"
EXACT = 1e-9  # relative error below which two formulas are the same, in float64
SAME = 1e-3  # difference below which two cosines are the same
CLOSE = 0.9  # cosine from which a direction counts as close to another
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
    """

    grid: Jacobian
    layers: pd.DataFrame
    picked: pd.DataFrame
    models: pd.DataFrame
    predictions: pd.DataFrame
    unigram: float
    level: float

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
        """Two standard deviations of the exact models' losses over seeds, softmax under FA."""
        of = dict(zip(SETTING, (self.grid.corrected, ARM, "softmax", OWN), strict=True))
        losses = _rows(self.picked, **of, norm_backward="exact")["val_loss"].dropna()
        return 2 * float(losses.std()) if len(losses) > 1 else math.nan

    def at_ceiling(self, *models: pd.DataFrame) -> str:
        """Why costs that are ceilings cannot be compared; empty if they are none."""
        margin = 0.0 if math.isnan(self.margin()) else self.margin()
        is_any = any(of["val_loss"].mean() > self.unigram - margin for of in models)
        return "" if not is_any else "undecided: models do no better than character frequencies"


def claims(evidence: Evidence) -> pd.DataFrame:
    """A row per statement: what its protocol shows, what the corrected one shows, two verdicts."""
    rows = [
        _softmax_costs_more(evidence),
        _radial_part_is_larger(evidence),
        _shares_predict_costs(evidence),
        _cosines_tell_harm(evidence),
        _norms_are_alike(evidence),
        _formula_is_exact(evidence),
        _cosines_follow_from_shares(evidence),
        _signal_is_gradient(evidence),
    ]
    columns = ["claim", "test", "as published", "its verdict", "corrected", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _here(test: Callable[[float], bool], value: float) -> str:
    """A verdict that speaks of the runs at hand alone."""
    if math.isnan(value):
        return "no data"
    return "holds" if test(value) else "fails"


def _error(value: float) -> str:
    return number(value) if math.isnan(value) else f"{value:.1e}"


def _paired(one: pd.DataFrame, other: pd.DataFrame) -> tuple[list[float], int]:
    """Differences of cost by seed, and how many pairs a divergence has taken."""
    both = one.merge(other, on="seed", suffixes=("", "_other"))
    lost = int((both["diverged"] | both["diverged_other"]).sum())
    return list((both["cost"] - both["cost_other"]).dropna()), lost


def _softmax_costs_more(e: Evidence) -> list[str]:
    of = [e.models_of("center_scale", feedback=OWN, attention=a) for a in ATTENTION]
    words = [f"{a}: {e.costs('center_scale', attention=a)}" for a in ATTENTION]
    return [
        "center_scale costs more with softmax attention than with sigmoid.",
        "validation loss above the exact model's is higher with softmax, under FA",
        "no surrogate is trained and no loss is shown.",
        "no data",
        f"cost in nats, {'; '.join(words)}.",
        e.at_ceiling(*of) or sign_verdict(*_paired(*of)),
    ]


def _radial_part_is_larger(e: Evidence) -> list[str]:
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
    return [
        "The radial part of the gradient is larger with softmax, which would explain it.",
        "r_radial is larger with softmax, under FA; corrected: of the block norms",
        f"r_radial, all norms averaged: softmax {significant(softmax, 4)}, sigmoid "
        f"{significant(sigmoid, 4)}.",
        _here(lambda difference: difference > 0, softmax - sigmoid),
        f"r_radial x d, {'; '.join(words)}.",
        sign_verdict(list(differences.dropna()), lost),
    ]


def _shares_predict_costs(e: Evidence) -> list[str]:
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
    return [
        "The larger the part of the gradient that center_scale leaves in, the more it costs.",
        "Spearman's rho of r_radial at the block norms with the cost of center_scale in all norms, "
        "over settings of arm, attention and feedback, is positive",
        "no surrogate is trained.",
        "no data",
        f"rho {rho('center_scale', 'all', PREDICTOR)}; of r_radial at the final norm: "
        f"{rho('center_scale', 'all', 'left_in_final')}. Over all cells of setting, surrogate and "
        f"place, of the energy left in at block norms: {every[PREDICTOR]}; at the final norm: "
        f"{every['left_in_final']}; of the gradient's relative error at block norms: "
        f"{every['error_blocks']}.",
        "no data" if row is None else _of_correlation(row),
    ]


def _of_correlation(row: dict) -> str:
    """Why a correlation over settings decides nothing."""
    if why := undecidable(int(row["seeds"]), int(row["diverged"])):
        return why
    if math.isnan(row["rho"]):
        return "no data"
    return f"undecided: {row['n']} crossed settings are no independent sample"


def _cosines_tell_harm(e: Evidence) -> list[str]:
    def cosines(protocol: str, variant: str) -> list[float]:
        of = {"protocol": protocol, "variant": variant, "attention": "softmax"}
        return [float(e.measured("cos_center_scale", place, **of).mean()) for place in PLACES]

    def words(values: list[float]) -> str:
        return f"block norms {number(values[0])}, final norm {number(values[1])}"

    now, margin = cosines(e.grid.corrected, "corrected"), e.margin()
    models = e.models_of("center_scale", feedback=OWN, attention="softmax")
    below = [margin - cost for cost in models["cost"].dropna()]
    verdict = undecidable(len(below), int(models["diverged"].sum()))
    if not verdict and np.isnan(now).any():
        verdict = "no data"
    elif not verdict and min(now) <= CLOSE:
        verdict = f"undecided: a cosine is not above {CLOSE:g}"
    return [
        "A surrogate whose cosine with the true backward pass is close to 1 does little harm.",
        f"center_scale, with cosines above {CLOSE:g}, costs less than two standard deviations of "
        "the exact model's loss over seeds, with softmax under FA",
        f"cosine of center_scale: {words(cosines(e.grid.published, 'published'))}; no loss.",
        "no data",
        f"cosine of center_scale: {words(now)}; cost {e.costs('center_scale')}, against "
        f"{number(margin)}. projected, whose cosine is 1 token by token and whose length is off by "
        f"sigma, costs {e.costs('projected')}.",
        verdict or sign_verdict(below, 0),
    ]


def _norms_are_alike(e: Evidence) -> list[str]:
    def r(place: str | None) -> str:
        of = {"protocol": e.grid.published, "variant": "published", "attention": "softmax"}
        return significant(float(e.measured("r_radial", place, **of).mean()))

    of = [
        e.models_of("center_scale", place, feedback=OWN, attention="softmax")
        for place in ("all", "blocks")
    ]
    differences, lost = _paired(*of)
    return [
        "The final norm is a norm like the others: one average describes them all.",
        "center_scale in the block norms alone costs as much as in all norms, within two standard "
        "deviations of the exact model's loss, with softmax under FA",
        f"r_radial averaged over all norms: {r(None)}; of the block norms {r('block')}, of the "
        f"final norm {r('final')}.",
        "no data",
        f"cost of center_scale in all norms: {e.costs('center_scale')}; in the block norms alone: "
        f"{e.costs('center_scale', 'blocks')}; in the final norm alone: "
        f"{e.costs('center_scale', 'final')}.",
        e.at_ceiling(*of) or margin_verdict(differences, e.margin(), lost),
    ]


def _formula_is_exact(e: Evidence) -> list[str]:
    def worst(measure: str, protocol: str) -> float:
        of = _rows(e.layers, arm=ARM, protocol=protocol, variant="corrected")
        return float(of[measure].max())

    was, now = (
        worst("error_without_gain", protocol) for protocol in (e.grid.published, e.grid.corrected)
    )
    closed = worst("error_closed_form", e.grid.corrected)
    return [
        "(g - mean(g) - z mean(g z))/sigma, with g = dL/dy at the norm's output, is its backward "
        "pass.",
        f"it equals autograd's, to a relative error of {EXACT:g} in float64, in every layer",
        f"largest relative error over layers: {significant(was)}.",
        _here(lambda error: error < EXACT, was),
        f"largest relative error: {significant(now)}; with g = gain dL/dy: {_error(closed)}.",
        _here(lambda error: error < EXACT, now),
    ]


def _cosines_follow_from_shares(e: Evidence) -> list[str]:
    def gap(protocol: str, variant: str) -> float:
        of = _rows(e.layers, arm=ARM, protocol=protocol, variant=variant, signal="own")
        left = (1 - of["r_mean"] - of["r_radial"]).clip(lower=0)
        return float((np.sqrt(left / (1 - of["r_mean"])) - of["cos_center_scale"]).abs().max())

    was, now = gap(e.grid.published, "published"), gap(e.grid.corrected, "corrected")
    rows = _rows(e.layers, arm=ARM, protocol=e.grid.corrected, variant="corrected")
    return [
        "The shares that are printed give the cosine that is printed.",
        "cos(center_scale) = sqrt((1 - r_mean - r_radial)/(1 - r_mean)) in every layer, to "
        f"{SAME:g}",
        f"largest difference: {number(was, 4)}; r is a ratio of batch means, the cosine a mean "
        "over tokens.",
        _here(lambda difference: difference < SAME, was),
        f"largest difference: {number(now, 4)}, both means over tokens, of which the root is not "
        "the mean of roots; token by token, with eps: "
        f"{_error(float(rows['error_identity'].max()))}.",
        _here(lambda difference: difference < SAME, now),
    ]


def _signal_is_gradient(e: Evidence) -> list[str]:
    def alignment(protocol: str, place: str) -> pd.Series:
        return e.measured("alignment", place, protocol=protocol, attention="softmax")

    was = [float(alignment(e.grid.published, place).mean()) for place in PLACES]
    now = [alignment(e.grid.corrected, place) for place in PLACES]
    return [
        "The gradient that is taken apart is dL/dy.",
        f"at the block norms, its cosine with backpropagation's at the same weights is above "
        f"{CLOSE:g}, under FA",
        f"block norms {number(was[0])}, final norm {number(was[1])}.",
        _here(lambda cosine: cosine > CLOSE, was[0]),
        f"block norms {e.words(now[0])}, final norm {e.words(now[1])}; the twin under "
        "backpropagation is in the tables.",
        sign_verdict(list(now[0] - CLOSE), e.lost(feedback=OWN, attention="softmax")),
    ]
