"""The tutorial on depth: readings of its statements, tested on planted networks and losses."""

import math
from typing import Any

import pytest
from depth_evidence import Row, losses, tables
from readings import finding

POST: dict[str, Any] = {"placement": "post"}


def by_rate(slow: list, fast: list, warmup_steps: int = 0, **changes) -> list[Row]:
    at = {"warmup_steps": warmup_steps} | changes
    return losses(slow, learning_rate=0.001, **at) + losses(fast, learning_rate=0.01, **at)


def test_sensitivities_are_compared_over_all_pairs_of_rates():
    """Post-norm's best rate is 0.5 better than its mean, in one of eight seeds 0.2; pre-norm's 0.3.

    For the pair of the best rates the sign test gives 9/256, which is doubled for the two rates.
    """
    post = by_rate([2.0] * 8, [3.0] * 7 + [2.4], **POST)
    pre = by_rate([2.6] * 8, [2.0] * 8)
    (case,) = finding("pre_less_sensitive", "without_warm_up", tables([], post, pre)).cases.values()
    assert case.effect == pytest.approx(0.2)
    assert (case.p_holds, case.p_fails) == (pytest.approx(18 / 256), 1)
    assert case.p_beyond == pytest.approx(18 / 256)  # seven are beyond the margin, too
    assert case.smallest == pytest.approx(2 / 256)
    assert math.isnan(case.low)
