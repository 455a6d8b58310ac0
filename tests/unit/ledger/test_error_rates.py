"""The ledger's error rates: those of the reference, and each design again with fewer ledgers.

They catch a missing factor 2 of a two-sided p, of cases, readings or statements; a one-sided level;
a test with too small a p; a gate that opens too early; and an untrue table in the reference.
"""

import csv

import numpy as np
import pytest
from error_rates import LIMIT, Design, not_of_the_ledger, of_the_ledger, simulate
from processes import ROOT
from scipy import stats

from normscope.statistics.levels import ALPHA

LEDGERS = 1_000
USED, OTHERS = list(of_the_ledger()), list(not_of_the_ledger())


@pytest.fixture(scope="module")
def published() -> dict[tuple[str, str, str], dict[str, str]]:
    with (ROOT / "docs/error_rates.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {(row["design"], row["truth"], row["n"]): row for row in rows}


def test_no_design_of_the_ledger_is_above_the_limit_and_the_others_are(published):
    for designs, used in ((USED, True), (OTHERS, False)):
        for design in designs:
            rates = [
                float(published[design.design, design.truth, str(n)]["rate"]) for n in design.sizes
            ]
            assert (max(rates) <= LIMIT) is used, design
    assert len(published) == sum(len(design.sizes) for design in USED + OTHERS)


@pytest.mark.long
@pytest.mark.parametrize("design", USED, ids=lambda design: f"{design.design}: {design.truth}")
def test_a_design_keeps_the_level(design: Design):
    """More errors than are allowed here are as rare as 1 in 10,000 if the rate is 5%."""
    ledgers = min(LEDGERS, design.ledgers)
    errors = design.errors(np.random.default_rng(1), design.sizes[0], ledgers)
    assert errors <= stats.binom.isf(1e-4, ledgers, ALPHA)


@pytest.mark.long
@pytest.mark.parametrize("chosen", [USED[0], OTHERS[-1]], ids=["paired", "documents"])
def test_a_published_rate_is_the_one_that_is_simulated(published, chosen):
    n = chosen.sizes[0]
    row = simulate(chosen, n, used=chosen in USED)
    assert row == published[chosen.design, chosen.truth, str(n)]
