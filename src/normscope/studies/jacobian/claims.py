"""The script's statements that no contrast can say; the others are in data/claims.yaml."""

import math

import numpy as np
import pandas as pd

from normscope.ledger.case import SELECTION, Case, too_few
from normscope.ledger.claim import Evidence, Finding, claim
from normscope.ledger.entry import Entry
from normscope.statistics.summary import select
from normscope.studies.jacobian.tables import ANY, at_chosen_rate
from normscope.words import number

ARM = "layernorm"
PREDICTOR = "left_in_blocks"


@claim("shares_predict_costs")
def shares_predict_costs(_: Entry, evidence: Evidence) -> Finding:
    """Settings are few and crossed: a correlation over them is described, and never tested."""
    corrected = evidence.studies["jacobian"].corrected
    predictions = select(evidence.table("jacobian.predictions"), protocol=corrected)

    def row(rule: str, place: str, predictor: str) -> pd.Series | None:
        rows = select(predictions, norm_backward=rule, surrogates_in=place, predictor=predictor)
        return None if rows.empty else rows.iloc[0]

    def rho(rule: str, place: str, predictor: str) -> str:
        known = row(rule, place, predictor)
        if known is None or math.isnan(known["rho"]):
            return number(math.nan)
        return f"{number(known['rho'], 2)} (n {known['n']})"

    own = row("center_scale", "all", PREDICTOR)
    return Finding(
        {"": Case.unknown("no data" if own is None else _why_open(own))},
        "no surrogate is trained.",
        "no data",
        f"rho {rho('center_scale', 'all', PREDICTOR)}; of r_radial at the final norm: "
        f"{rho('center_scale', 'all', 'left_in_final')}. Over all cells of setting, surrogate and "
        f"place, of the energy left in at block norms: {rho(ANY, ANY, PREDICTOR)}; at the final "
        f"norm: {rho(ANY, ANY, 'left_in_final')}; of the gradient's relative error at block norms: "
        f"{rho(ANY, ANY, 'error_blocks')}.",
    )


def _why_open(row: pd.Series) -> str:
    """Why a correlation over settings decides nothing."""
    if why := SELECTION if row["diverged"] else too_few(int(row["seeds"])):
        return why
    if math.isnan(row["rho"]):
        return "no data"
    return f"undecided: {row['n']} crossed settings are no independent sample"


@claim("shares_give_cosines")
def shares_give_cosines(entry: Entry, evidence: Evidence) -> Finding:
    """In every layer: one in which the shares give another cosine decides."""
    study = evidence.studies["jacobian"]
    layers = at_chosen_rate(evidence.table("jacobian.layers"), evidence.table("jacobian.chosen"))
    layers = select(layers, arm=ARM)

    def gap(protocol: str, variant: str) -> float:
        rows = select(layers, protocol=protocol, variant=variant, signal="own")
        left = (1 - rows["r_mean"] - rows["r_radial"]).clip(lower=0)
        return float((np.sqrt(left / (1 - rows["r_mean"])) - rows["cos_center_scale"]).abs().max())

    was, now = gap(study.published, "published"), gap(study.corrected, "corrected")
    corrected = select(layers, protocol=study.corrected, variant="corrected")
    token = float(corrected["error_identity"].max())
    return Finding(
        {"": _below(entry, now)},
        f"largest difference: {number(was, 4)}; r is a ratio of batch means, the cosine a mean "
        "over tokens.",
        _below(entry, was).reading(),
        f"largest difference: {number(now, 4)}, both means over tokens, of which the root is "
        "not the mean of roots; token by token, with eps: "
        f"{number(token) if math.isnan(token) else f'{token:.1e}'}.",
    )


def _below(entry: Entry, value: float) -> Case:
    """Whether an error is below the bound: one counterexample decides."""
    if math.isnan(value):
        return Case.unknown("no data")
    return Case.known(value < entry.limit, value)
