"""Effects of depth: untrained networks, and the loss without one of the blocks."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from normscope.measure.hooks import passing
from normscope.measure.signals import length
from normscope.nn.model import Attention, Transformer, cross_entropy
from normscope.nn.norms import build
from normscope.nn.recipe import Model, Norm

EQUAL = 1e-12  # distance of tokens that counts as none: far above the rounding of float64
RELATIVE = 1e-3  # size of a perturbation, of the standard deviation of each parameter


@torch.no_grad()
def output_change(model: Transformer, tokens: Tensor, generator: torch.Generator) -> float:
    """The squared relative change of what the head reads, if all parameters change a little.

    Liu et al. 2020 (arXiv:2004.08249, section 4) call the growth of this change with depth
    amplification: it is at most logarithmic in pre-norm, and linear in post-norm.

    Args:
        model: In float64.
        tokens: (windows, T).
        generator: Of the perturbation, normal with ``RELATIVE`` of a parameter's deviation.
    """
    perturbed = copy.deepcopy(model)
    for parameter in perturbed.parameters():
        if parameter.numel() > 1:
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(RELATIVE * parameter.std() * noise)
    before, after = (features(each, tokens) for each in (model, perturbed))
    return float((after - before).square().sum() / before.square().sum())


def features(model: Transformer, tokens: Tensor) -> Tensor:
    """What the head reads, (windows, T, C)."""
    with passing({"final": model.final_norm}) as seen:
        model(tokens)
    return seen["final"][1]


def last_gradient(model: Transformer, tokens: Tensor, targets: Tensor) -> float:
    """The norm of the loss's gradient by the last matrix of the last block.

    Xiong et al. 2020 (arXiv:2002.04745, theorem 1) bound it by a constant in post-norm and by
    ``1 / sqrt(n_layer)`` in pre-norm.

    Args:
        model: In float64.
        tokens, targets: (windows, T).
    """
    weight = model.blocks[-1].get_submodule("mlp.f.proj").get_parameter("weight")
    loss = cross_entropy(model(tokens), targets)
    return length(torch.autograd.grad(loss, [weight]))


@torch.no_grad()
def collapse_rate(norm: Norm, model: Model, tokens: Tensor) -> float:
    r"""The mean logarithm of the factor by which a layer of attention brings tokens together.

    The layers have no residual connection and no MLP: ``x <- N(attention(x))``. How far the tokens
    are apart is ``mu(x) = ||x - mean over tokens||``, divided by ``||x||`` because a norm changes
    both (Wu et al. 2024, arXiv:2405.18781, section 3). The mean ends with the first layer after
    which tokens are equal.

    Args:
        norm: N.
        model: Its ``n_layer`` are those of attention; weights are drawn from torch's generator,
            with a variance of one over the inputs.
        tokens: The inputs, (windows, T, C).
    """
    x = tokens.double()
    apart = [spread(x)]
    for _ in range(model.n_layer):
        attention = Attention(model).double()
        for weight in (attention.qkv.weight, attention.proj.weight):
            nn.init.normal_(weight, std=1 / math.sqrt(model.n_embd))
        x = build(norm, model.n_embd).double()(attention(x))
        apart.append(max(spread(x), EQUAL))
        if apart[-1] == EQUAL:  # the further layers would show rounding
            break
    return math.log(apart[-1] / apart[0]) / (len(apart) - 1)


def spread(x: Tensor) -> float:
    """How far tokens (windows, T, C) are apart: ``||x - mean over tokens|| / ||x||``, a mean."""
    away = (x - x.mean(1, keepdim=True)).flatten(1).norm(dim=1)
    return float((away / x.flatten(1).norm(dim=1)).mean())


@contextmanager
def skipping(block: nn.Module) -> Iterator[None]:
    """Let a block return its input while the body runs."""
    handle = block.register_forward_hook(lambda _, args, output: args[0])
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def added_losses(model: Transformer, tokens: Tensor, targets: Tensor) -> list[float]:
    """The loss in nats without one block, minus the loss of the whole model, block by block.

    This is the test of Sun et al. 2025 (arXiv:2502.05795, section 2.2).

    Args:
        model: In evaluation mode.
        tokens, targets: (windows, T).
    """

    def loss() -> float:
        return float(cross_entropy(model(tokens), targets))

    whole, added = loss(), []
    for block in model.blocks:
        with skipping(block):
            added.append(loss() - whole)
    return added
