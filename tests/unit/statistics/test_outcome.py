"""Capped losses, failures, and the loss of character frequencies."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from normscope.statistics.outcome import unigram_loss, with_outcome

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


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_the_unigram_loss_of_the_training_tokens_is_their_entropy(tokens):
    tokens = np.array([*tokens, *range(5)], dtype=np.uint16)
    expected = entropy(np.bincount(tokens))
    assert unigram_loss(tokens, tokens, 5) == pytest.approx(expected, rel=1e-12)


def test_a_character_that_training_lacks_counts_as_seen_once():
    """8 and 2 of 11, and 1 of 11."""
    train = np.array([0] * 8 + [1] * 2)
    assert unigram_loss(train, np.array([2]), 3) == pytest.approx(np.log(11))
    assert unigram_loss(train, np.array([0]), 3) == pytest.approx(np.log(11 / 8))
