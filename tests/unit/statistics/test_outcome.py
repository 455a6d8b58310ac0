"""A loss is at most ln V, which a divergence counts as; failing is to be stuck at frequencies."""

import math

import pandas as pd
import pytest

from normscope.statistics.outcome import with_outcome

V, UNIGRAM = 65, 3.3


@pytest.mark.parametrize(
    ("loss", "diverged_at", "capped", "failed"),
    [
        (2.0, math.nan, 2.0, 0),
        (3.26, math.nan, 3.26, 1),
        (7.5, math.nan, math.log(V), 1),
        (2.0, 40, math.log(V), 1),
        (math.nan, 40, math.log(V), 1),
    ],
)
def test_an_outcome(loss: float, diverged_at: float, capped: float, failed: int) -> None:
    row = pd.DataFrame({"val_loss": [loss], "diverged_at": [diverged_at]})
    (made,) = with_outcome(row, V, UNIGRAM).to_dict("records")
    assert made["capped_loss"] == pytest.approx(capped)
    assert made["failed"] == failed
