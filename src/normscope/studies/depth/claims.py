"""The tutorial's statements on depth that a contrast alone cannot say.

Its curves are drawn, not measured, and its statements come without a size of network, a start or a
learning rate: data/claims.yaml has each tested in every kind of network that the tables have, at
the depth that its test names, so that a verdict says for which it holds.
"""

from dataclasses import replace

from normscope.ledger.case import Case
from normscope.ledger.claim import Evidence, Finding, claim
from normscope.ledger.contrast import find
from normscope.ledger.entry import Entry
from normscope.studies.depth.measures import RESOLUTION

HUNDRED = 100  # layers


@claim("identity_path")
def identity_path(entry: Entry, evidence: Evidence) -> Finding:
    """The contrast, without models of which a measured 0 may stand for a value near the bound."""
    rates = evidence.table("depth.rates")
    is_known = (rates["smallest"] > 0) | (RESOLUTION * rates["largest"] < entry.limit)
    every, known = (find(entry, evidence, table) for table in (rates, rates[is_known]))
    cases = {name: known.cases.get(name, Case.unknown("no data")) for name in every.cases}
    return replace(every, cases=cases)


@claim("trainable")
def trainable(entry: Entry, evidence: Evidence) -> Finding:
    """The contrast, which a network of 100 layers alone can decide."""
    finding = find(entry, evidence)
    losses = evidence.table("depth.losses")
    names = {f"{depth} blocks" for depth in losses["depth"] if depth >= HUNDRED}
    if not finding.cases or names & set(finding.cases):
        return finding
    short = Case.unknown(f"undecided: no network of {HUNDRED} layers was trained")
    return replace(
        finding,
        cases={**finding.cases, f"{HUNDRED} layers": short},
        corrected=f"{finding.corrected}; {HUNDRED} layers were not trained",
    )
