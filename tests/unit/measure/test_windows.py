"""Windows of a split, and the loss over all of it."""

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from recipes import DATA, recipe
from torch import Tensor, nn
from torch.nn import functional as F
from trainings import train

from normscope.io.dataset import DatasetError
from normscope.measure.windows import (
    EVAL_BATCH,
    as_tensor,
    cover,
    draw,
    split_loss,
    spread,
    validation_windows,
)
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

V, BLOCK = 5, 4


def model(arm: str = "layernorm") -> Transformer:
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": BLOCK, "dropout": 0.3}
    made = Transformer(Model.model_validate(sizes), ARMS[arm].norm, "pre", V).double()
    for p in made.parameters():
        nn.init.normal_(p)
    return made


def random_tokens(n: int) -> Tensor:
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(n))


@given(length=st.integers(2, 300), block_size=st.integers(1, 20))
@example(length=9, block_size=4)
@example(length=8, block_size=4)
@example(length=10, block_size=4)
@example(length=2, block_size=20)
@example(length=EVAL_BATCH * 4 + 1, block_size=4)
def test_every_token_but_the_first_is_a_target_once(length, block_size):
    tokens = torch.arange(length)
    batches = list(cover(tokens, block_size))
    assert torch.equal(torch.cat([y.flatten() for _, y in batches]), tokens[1:])
    assert torch.equal(torch.cat([x.flatten() for x, _ in batches]), tokens[:-1])
    assert all(x.shape == y.shape and x.shape[1] <= block_size for x, y in batches)


def window_losses(m: Transformer, tokens: Tensor) -> list[list[float]]:
    """Token by token, window by window, with no batches."""
    m.eval().requires_grad_(False)
    losses = []
    for start in range(0, len(tokens) - 1, BLOCK):
        window = tokens[start : start + BLOCK + 1]
        logits = m(window[None, :-1])[0].float()
        steps = zip(logits, window[1:], strict=True)
        losses.append([float(-F.log_softmax(row, 0)[target]) for row, target in steps])
    return losses


@pytest.mark.parametrize("length", [5, 6, 21, 23, EVAL_BATCH * BLOCK + 3])
@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_split_loss_is_the_mean_over_all_tokens(arm, length):
    m, tokens = model(arm), random_tokens(length)
    loss = split_loss(m, tokens, BLOCK)
    naive = window_losses(m, tokens)
    assert loss.mean == pytest.approx(np.mean(np.concatenate(naive)), rel=1e-6)
    means = [np.mean(window) for window in naive if len(window) == BLOCK]
    assert loss.window_sd == pytest.approx(np.std(means), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_split_loss_leaves_the_model_as_it_was(training):
    m = model("batchnorm").train(training)
    before = {name: t.clone() for name, t in m.state_dict().items()}
    split_loss(m, random_tokens(30), BLOCK)
    assert m.training is training
    assert all(torch.equal(t, before[name]) for name, t in m.state_dict().items())


def test_draw_takes_nanogpts_windows():
    """nanoGPT, train.py, get_batch."""
    data = random_tokens(100)
    for seed in range(5):
        x, y = draw(data, BLOCK, 7, torch.Generator().manual_seed(seed))
        ix = torch.randint(len(data) - BLOCK, (7,), generator=torch.Generator().manual_seed(seed))
        assert torch.equal(x, torch.stack([data[i : i + BLOCK] for i in ix]))
        assert torch.equal(y, torch.stack([data[i + 1 : i + 1 + BLOCK] for i in ix]))


@given(tokens=st.integers(1, 5000), block_size=st.integers(1, 60), windows=st.integers(1, 90))
@example(tokens=60, block_size=20, windows=3)
@example(tokens=59, block_size=20, windows=3)
@example(tokens=20, block_size=20, windows=3)
def test_windows_are_spread_evenly_from_the_first_token_to_the_last(tokens, block_size, windows):
    assume(block_size <= tokens)
    starts = spread(tokens, block_size, windows).tolist()
    assert len(starts) == min(windows, tokens // block_size)
    assert starts[0] == 0
    assert len(starts) == 1 or starts[-1] + block_size == tokens
    gaps = np.diff(starts)
    assert all(gaps >= block_size)
    assert len(gaps) == 0 or max(gaps) - min(gaps) <= 1


def test_no_window_in_too_few_tokens_is_an_error_that_names_both():
    with pytest.raises(DatasetError, match="the split has 7 tokens, fewer than a window of 8"):
        spread(7, 8, 3)


@pytest.mark.parametrize("tokens", [9, 20, None, 10**6])
def test_eval_tokens_are_the_first_of_the_validation_split(tokens):
    (learner,) = train(recipe("batchnorm", eval_tokens=tokens, steps=5)).learners
    assert learner.val_loss == split_loss(learner.model, as_tensor(DATA.val[:tokens]), 8)


def test_validation_windows_are_from_the_first_token_to_the_last_target():
    val = np.arange(30, dtype=np.uint16)
    x, y = validation_windows(val, 8, 3)
    assert x[:, 0].tolist() == [0, 10, 21]
    assert torch.equal(x, x[:, :1] + torch.arange(8))
    assert torch.equal(y, x + 1)
    assert len(validation_windows(val, 8, 9)[0]) == 3  # the windows do not overlap
    with pytest.raises(DatasetError):
        validation_windows(val[:8], 8, 1)
