"""Statements of papers that are no contrast of two cells."""

from itertools import pairwise

from normscope.statistics.summary import select
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.contrast import find
from normscope.verdicts.reading import Reading

LOSS = "capped_loss"
DYT = {"derf_third": "dyt_two", "derf_half": "dyt_half"}  # with Derf's alpha in the same way


@claim("derivatives_matter_more")
def compare_improvements(reading: Reading, evidence: Evidence) -> Finding:
    """What the derivatives of mean and variance improve, less what forward normalization does.

    With DetachNorm, which normalizes forward alone, the improvements are ``detached - norm`` and
    ``none - detached``, paired by seed. The table of the contrast has their difference in place of
    the loss of DetachNorm.
    """
    c = reading.contrast
    assert c is not None
    table = evidence.table(c.table)
    pre = {"arm": c.cells["arm"], "placement": "pre"}
    norm = select(table, protocol="small", **pre).set_index("seed")[LOSS]
    none = select(table, protocol="small", arm="none").set_index("seed")[LOSS]
    detached = select(table, protocol=c.cells["protocol"], **pre)
    others = detached["seed"].map(norm) + detached["seed"].map(none)
    return find(reading, evidence, detached.assign(**{LOSS: 2 * detached[LOSS] - others}))


@claim("derf_training_loss_order")
def compare_neighbors(reading: Reading, evidence: Evidence) -> Finding:
    """The order is that of its neighbors: Derf against LayerNorm, and DyT against Derf."""
    c = reading.contrast
    assert c is not None
    assert c.less is not None
    derf = str(c.cells["arm"])
    order = [c.less["arm"], derf, DYT[derf]]
    findings = []
    for lower, higher in pairwise(order):
        pair = c.model_copy(update={"cells": c.cells | {"arm": higher}, "less": {"arm": lower}})
        findings.append(find(reading.model_copy(update={"contrast": pair}), evidence))
    cases = {
        f"{higher} over {lower}": case
        for (lower, higher), found in zip(pairwise(order), findings, strict=True)
        for case in found.cases.values()
    }
    return Finding(cases, corrected="; ".join(found.corrected for found in findings))
