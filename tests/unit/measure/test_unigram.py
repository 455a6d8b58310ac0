"""The loss of character frequencies, against scipy; losses on a part of the validation split."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from recipes import DATA, recipe
from scipy.stats import entropy
from torch import nn
from torch.nn import functional as F
from trainings import FP32, problem_of, to_end

from normscope.io.dataset import DatasetError
from normscope.measure.evaluation import validation_windows
from normscope.measure.unigram import unigram_loss
from normscope.nn.model import Transformer
from normscope.train.recipe import Stack
from normscope.train.trainer import Trainer


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_of_the_training_tokens_themselves_it_is_their_entropy(tokens):
    tokens = np.array([*tokens, *range(5)], dtype=np.uint16)
    expected = entropy(np.bincount(tokens))
    assert unigram_loss(tokens, tokens, 5) == pytest.approx(expected, rel=1e-12)


def test_a_character_that_training_lacks_counts_as_seen_once():
    """8 and 2 of 11, and 1 of 11."""
    train = np.array([0] * 8 + [1] * 2)
    assert unigram_loss(train, np.array([2]), 3) == pytest.approx(np.log(11))
    assert unigram_loss(train, np.array([0]), 3) == pytest.approx(np.log(11 / 8))


def by_hand(model: nn.Module, tokens: int) -> float:
    """Mean over targets 1, 2, ... of these tokens, windows one after another."""
    val = torch.from_numpy(DATA.val[:tokens].astype(int))
    losses = []
    with torch.no_grad():
        for begin in range(0, tokens - 1, 8):
            x, y = val[begin : begin + 8], val[begin + 1 : begin + 9]
            logits = model.eval()(x[None, : len(y)])[0]
            losses += F.cross_entropy(logits, y, reduction="none").tolist()
    assert len(losses) == tokens - 1
    return float(np.mean(losses))


@pytest.mark.parametrize("tokens", [9, 17, 20, 40, None, 10**6])
def test_the_validation_loss_is_of_exactly_the_first_tokens(tokens):
    stack = recipe("batchnorm", eval_tokens=tokens, steps=5)
    trainer = Trainer(problem_of(stack), stack.seeds, FP32)
    (learner,) = trainer.learners
    assert isinstance(learner.model, Transformer)
    with torch.no_grad():  # so that losses differ much between tokens
        learner.model.token_embedding.weight.mul_(30)
    to_end(trainer)
    assert learner.val_loss is not None
    used = min(tokens or len(DATA.val), len(DATA.val))
    assert learner.val_loss.mean == pytest.approx(by_hand(learner.model, used), rel=1e-6)
    if used < len(DATA.val):
        assert learner.val_loss.mean != pytest.approx(by_hand(learner.model, used - 1), rel=1e-4)


@pytest.mark.parametrize("tokens", [1, 8])
def test_a_part_without_a_window_is_refused(tokens):
    raw = recipe().model_dump()
    raw["training"]["eval_tokens"] = tokens
    with pytest.raises(ValueError, match=rf"eval_tokens \({tokens}\) must exceed block_size \(8\)"):
        Stack.model_validate(raw)


def test_windows_of_a_probe_begin_at_the_first_token_and_end_with_the_last_target():
    val = np.arange(30, dtype=np.uint16)
    x, y = validation_windows(val, 8, 3)
    assert x[:, 0].tolist() == [0, 10, 21]
    assert torch.equal(x, x[:, :1] + torch.arange(8))
    assert torch.equal(y, x + 1)
    assert int(y.max()) == 29
    assert len(validation_windows(val, 8, 9)[0]) == 3  # no more than fit side by side
    with pytest.raises(DatasetError):
        validation_windows(val[:8], 8, 1)
