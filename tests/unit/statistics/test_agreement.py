"""A model trained again: as near as roundings, within its seeds, or another result."""

import math

import pytest

from normscope.statistics.agreement import agreement

NAN = math.nan


@pytest.mark.parametrize(
    ("was", "now", "spread", "word"),
    [
        (2.0, 2.019, 0.001, "agrees"),
        (2.0, 1.981, NAN, "agrees"),
        (2.0, 2.03, 0.01, "differs"),  # its seeds lie closer than that
        (2.0, 2.03, NAN, "differs"),
        (2.0, 2.5, 0.2, "within its seeds"),
        (2.0, 2.7, 0.2, "differs"),
        (NAN, NAN, 0.01, "agrees"),  # it diverges here as there
        (NAN, 2.0, 0.5, "differs"),
        (2.0, NAN, 0.5, "differs"),
    ],
)
def test_a_model_that_is_trained_again(was: float, now: float, spread: float, word: str) -> None:
    assert agreement(was, now, spread) == word
