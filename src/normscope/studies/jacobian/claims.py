"""The script's statement that no contrast can say; the others are in data/claims/."""

import math
from collections.abc import Iterable

import numpy as np

from normscope.statistics.summary import select
from normscope.studies.jacobian.tabulate import at_chosen_rate
from normscope.verdicts.case import Case
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.reading import Reading
from normscope.words import number

ARM = "layernorm"


@claim("shares_give_cosines")
def shares_give_cosines(reading: Reading, evidence: Evidence) -> Finding:
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
        {"": _below(reading, now, corrected["seed"])},
        f"largest difference: {number(was, 4)}; r is a ratio of batch means, the cosine a mean "
        "over tokens.",
        _below(reading, was).answer(),
        f"largest difference: {number(now, 4)}, both means over tokens, of which the root is "
        "not the mean of roots; token by token, with eps: "
        f"{number(token) if math.isnan(token) else f'{token:.1e}'}.",
    )


def _below(reading: Reading, value: float, seeds: Iterable[int] = ()) -> Case:
    """Whether an error is below the bound: one counterexample decides."""
    if math.isnan(value):
        return Case.unknown("no data")
    return Case.known(value < reading.limit, value, seeds)
