"""Entropy of the next token, as it is and as published, against closed forms and scipy."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import VOCABULARY, tokenizer

from normscope.hub.measurement import prediction

TOKENIZER = tokenizer()
LOGITS = st.lists(st.floats(-60, 60), min_size=2, max_size=VOCABULARY)


def measured(logits: list[float]) -> dict:
    return prediction(torch.tensor(logits, dtype=torch.float64), TOKENIZER)


@pytest.mark.parametrize("size", [2, 7, VOCABULARY])
@pytest.mark.parametrize("level", [-1e4, 0.0, 3.5])
def test_equal_logits_have_the_entropy_of_the_vocabulary(size, level):
    ours = measured([level] * size)
    assert ours["entropy"] == pytest.approx(math.log(size), rel=1e-12)
    assert ours["entropy_as_published"] == pytest.approx(math.log(size), rel=1e-12)
    assert ours["top_prob"] == pytest.approx(1 / size, rel=1e-12)


def test_a_certain_prediction_has_none():
    ours = measured([0.0] * 5 + [1e4] + [0.0] * 5)
    assert ours["entropy"] == 0
    assert ours["top_prob"] == 1
    lifted = np.array([1e-10] * 10 + [1.0])
    assert ours["entropy_as_published"] == pytest.approx(scipy.stats.entropy(lifted), rel=1e-9)
    assert ours["entropy_as_published"] > 2e-8


def test_a_token_that_cannot_come_adds_nothing():
    ours = measured([0.0, -math.inf, 0.0])
    assert ours["entropy"] == pytest.approx(math.log(2), rel=1e-12)
    published = scipy.stats.entropy([0.5, 1e-10, 0.5])
    assert ours["entropy_as_published"] == pytest.approx(published, rel=1e-12)


@given(LOGITS)
def test_entropies_are_those_of_scipy(logits):
    p = scipy.special.softmax(logits)
    ours = measured(logits)
    assert ours["entropy"] == pytest.approx(scipy.stats.entropy(p), rel=1e-9, abs=1e-12)
    published = scipy.stats.entropy(np.clip(p, 1e-10, None))  # which makes the sum one
    assert ours["entropy_as_published"] == pytest.approx(published, rel=1e-9, abs=1e-12)


@given(LOGITS)
def test_the_top_token_is_the_likeliest(logits):
    ours = measured(logits)
    p = scipy.special.softmax(logits)
    assert ours["top_prob"] == pytest.approx(p.max(), rel=1e-12)
    likeliest = np.flatnonzero(p == p.max())
    assert ours["top_token"] in [TOKENIZER.decode([int(i)]) for i in likeliest]


def test_the_top_token_is_text():
    (number,) = TOKENIZER("Ġ", add_special_tokens=False)["input_ids"][-1:]
    ours = measured([float(i == number) for i in range(VOCABULARY)])
    assert ours["top_token"] == TOKENIZER.decode([number])
