"""AdaNorm's statement, which compares the improvements of two parts of a norm."""

from normscope.ledger.claim import Evidence, Finding, claim
from normscope.ledger.contrast import find
from normscope.ledger.reading import Reading
from normscope.statistics.summary import select

LOSS = "capped_loss"


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
