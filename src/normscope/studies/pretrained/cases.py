"""Tests of the published statements on residual gain: of a model, of families."""

import math
from collections.abc import Mapping
from dataclasses import replace

from normscope.ledger.case import Case


def _sided(row: Mapping, p: float, effect: float, *, positive: bool) -> Case:
    """A two-sided p of an effect as a case of the statement that it is positive, or negative."""
    if math.isnan(p):
        return Case.unknown("no data")
    for_it, against_it = p / 2, 1 - p / 2
    if (effect > 0) != positive:
        for_it, against_it = against_it, for_it
    n = int(row["n"])
    return Case(effect, n=n, unit="prompt", p_holds=for_it, p_fails=against_it, smallest=0.0)


def gain_case(row: Mapping, *, above: bool) -> Case:
    """Whether a model's gain is on one side of 1: Student's t over prompts, of the log-gain."""
    case = _sided(row, row["p"], row["log_gain"], positive=above)
    gain, low, high = (math.exp(row[k]) for k in ("log_gain", "low", "high"))
    return replace(case, effect=gain, low=low, high=high)


def family_case(row: Mapping) -> Case:
    """Whether RMSNorm's mean log-gain is the higher: exact permutation over families."""
    return Case(
        math.exp(row["difference"]),
        math.exp(row["low"]),
        math.exp(row["high"]),
        n=int(row["layernorm"] + row["rmsnorm"]),
        unit="family",
        p_holds=row["p"],
        p_fails=1.0,  # a test of the one side alone
        smallest=row["smallest"],
    )


def prediction_case(row: Mapping) -> Case:
    """Whether a model's gain is on the side of 1 that H25 predicts: Student's t over prompts."""
    is_above = row["predicted"] == "above 1"
    case = _sided(row, row["p"], math.log(row["gain"]), positive=is_above)
    return replace(case, effect=row["gain"], low=row["low"], high=row["high"])
