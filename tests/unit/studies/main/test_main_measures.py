"""Measures of trained models: norms that are frozen alone, and what blocks add to the stream."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from main_recipes import SIZES, TRAINING
from recall_recipes import move
from recipes import DATA
from torch.nn import functional as F

from normscope.measure.signals import Row
from normscope.measure.windows import as_tensor, draw
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.studies.main.inside import growth_imbalance, of_blocks, of_norms, without_norms
from normscope.train.recipe import Stack

NAMES = [
    *("blocks.0.attention.before", "blocks.0.mlp.before"),
    *("blocks.1.attention.before", "blocks.1.mlp.before", "final_norm"),
]


def stack_of(arm: str) -> Stack:
    fields = {"norm": ARMS[arm].norm, "placement": "pre", "model": SIZES, "training": TRAINING}
    return Stack.model_validate({**fields, "seeds": [1]})


def transformer(arm: str) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(SIZES), ARMS[arm].norm, "pre", DATA.vocab_size)
    move(model)
    return model.eval()


@torch.no_grad()
def equalize(model: Transformer) -> None:
    """Every token gets an embedding of mean 0 and of the same length, at every position."""
    model.position_embedding.weight.zero_()
    signs = torch.tensor([1.0, -1, 1, -1, 1, -1, 1, -1])
    orders = [torch.randperm(8) for _ in range(DATA.vocab_size)]
    model.token_embedding.weight.copy_(torch.stack([signs[order] for order in orders]))


@pytest.mark.parametrize("arm", ["layernorm", "rmsnorm"])
def test_a_norm_whose_sigma_is_the_same_for_all_tokens_is_lost_for_nothing(arm):
    """The first norm reads tokens of one sigma; those after it do not, and cost something.

    A probe that freezes all norms in every row, or names them in another order, is found.
    """
    model = transformer(arm)
    equalize(model)
    together, rows = without_norms(model, DATA, stack_of(arm), 1)
    assert [(row["norm"], row["place"]) for row in rows] == list(
        zip(NAMES, range(1, 6), strict=True)
    )
    first, *later = (row["frozen_loss"] for row in rows)
    assert first == pytest.approx(0, abs=1e-6)
    assert min(abs(loss) for loss in later) > 1e-5
    assert together["frozen_loss"] not in later


def test_the_loss_without_the_final_norm_is_that_of_a_forward_pass_written_out():
    """Sigma is the mean over tokens of the training text, and the loss that of the validation text.

    A sigma that is taken elsewhere, or a loss in place of the added loss, is found.
    """
    model, stack = transformer("layernorm"), stack_of("layernorm")
    _, rows = without_norms(model, DATA, stack, 1)
    windows, _ = draw(as_tensor(DATA.train), 8, 256, torch.Generator().manual_seed(0))
    sigma = stream(model, windows).std(-1, correction=0).mean()
    val = as_tensor(DATA.val[: stack.training.eval_tokens])
    n = (len(val) - 1) // 8 * 8  # the last window is shorter
    x, y = val[:n].view(-1, 8), val[1 : n + 1].view(-1, 8)
    parts = [(x, y)] if n == len(val) - 1 else [(x, y), (val[None, n:-1], val[None, n + 1 :])]
    gain, bias = (model.final_norm.get_parameter(name) for name in ("gain", "bias"))
    total = 0.0
    with torch.no_grad():
        for tokens, targets in parts:
            u = stream(model, tokens)
            u = gain * (u - u.mean(-1, keepdim=True)) / sigma + bias
            frozen = F.linear(u, model.token_embedding.weight)
            for logits, sign in ((frozen, 1), (model(tokens), -1)):
                losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
                total += sign * float(losses)
    assert rows[-1]["frozen_loss"] == pytest.approx(total / (len(val) - 1), rel=1e-3)
    assert abs(rows[-1]["frozen_loss"]) > 1e-4


@torch.no_grad()
def stream(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    """The stream before the final norm."""
    x = model.token_embedding(tokens) + model.position_embedding.weight[: tokens.shape[1]]
    for block in model.blocks:
        x = block(x)
    return x


def test_what_most_norms_cost_is_the_median():
    """A mean, absolute values of the losses, or columns exchanged, are found."""
    losses = [(-0.5, 0.02), (0.0, 0.03), (0.01, 0.0), (0.02, 0.5), (3.0, 0.5)]
    rows = [{"frozen_loss": now, "refined_loss": later} for now, later in losses]
    assert of_norms(rows) == {"one_frozen_loss": 0.01, "one_refined_loss": 0.03}


@given(st.floats(0.01, 100), st.floats(0.1, 10))
def test_growth_is_balanced_if_every_block_adds_the_same(first, scale):
    """Whatever the stream was before. The spread of RMS is found."""
    even = [scale * math.sqrt(first + i) for i in range(4)]
    assert growth_imbalance(even) == pytest.approx(0, abs=1e-6)
    uneven = [scale * math.sqrt(first + added) for added in (0, 1, 4)]  # adds 1 and 3
    assert growth_imbalance(uneven) == pytest.approx(0.5, rel=1e-6)
    assert growth_imbalance(uneven[::-1]) == pytest.approx(0.5, rel=1e-6)  # a stream that shrinks


def test_early_gradients_are_compared_with_those_of_the_last_block():
    """Gradients at inputs instead of by parameters, or the inverse ratio, are found."""
    assert ratios([12.0, 6.0, 3.0]) == (4, 2)
    first, second = ratios([12.0, 3.0])
    assert first == 4
    assert math.isnan(second)  # the second of two is the last


def ratios(gradients: list[float]) -> tuple[float, float]:
    """The ratios of a model whose blocks have these gradients by their parameters."""
    row = {"entering_rms": 0.5, "activation_rms": 1.0, "gradient": 1.0, "added_loss": 0.0}
    found: Row = of_blocks([row | {"gradient_parameters": value} for value in gradients])
    return found["first_gradient_ratio"], found["second_gradient_ratio"]
