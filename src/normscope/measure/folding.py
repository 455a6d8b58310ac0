"""Gains and biases of norms, folded into the linear layers that follow them."""

import copy

import torch
from torch import Tensor, nn

from normscope.nn.model import MLP, Attention, Branch, Transformer
from normscope.nn.norms import Affine


def folded(model: Transformer, *, final: bool = False) -> Transformer:
    """A copy in float64 with the same logits, whose block norms have neither gain nor bias.

    ``W (g * z + b) + c = (W diag(g)) z + (W b + c)``: the weight of the next linear layer takes the
    gain, and its bias the bias, which it receives if it has none.

    Args:
        model: Pre-norm, with norms that have an affine part.
        final: Also fold the final norm, into the head. A tied head becomes a separate matrix first,
            because it would otherwise change the embedding.
    """
    model = copy.deepcopy(model).double().requires_grad_(False)
    for branch in model.modules():
        if isinstance(branch, Branch):
            _fold(branch.before, _first_linear(branch.f))
    if final:
        if model.head is None:
            vocab_size, d = model.token_embedding.weight.shape
            model.head = nn.Linear(d, vocab_size, bias=False)
            model.head.weight = model.token_embedding.weight
        _fold(model.final_norm, model.head)
    return model


def change(model: Transformer, tokens: Tensor, *, final: bool = False) -> float:
    """The largest change of a logit by ``folded``, divided by the largest absolute logit.

    Args:
        model: See ``folded``.
        tokens: (windows, T).
        final: See ``folded``.
    """
    with torch.no_grad():
        logits = copy.deepcopy(model).double()(tokens)
        changed = folded(model, final=final)(tokens)
    return float((changed - logits).abs().max() / logits.abs().max())


def _first_linear(sublayer: nn.Module) -> nn.Linear:
    """The linear layer that a sublayer begins with."""
    if isinstance(sublayer, Attention):
        return sublayer.qkv
    assert isinstance(sublayer, MLP)
    return sublayer.fc


def _fold(norm: nn.Module, linear: nn.Linear) -> None:
    assert isinstance(norm, Affine)
    weight = linear.weight
    if norm.bias is not None:
        bias = weight @ norm.bias
        linear.bias = nn.Parameter(bias if linear.bias is None else linear.bias + bias)
    if norm.gain is not None:
        linear.weight = nn.Parameter(weight * norm.size(norm.gain))
    norm.gain = norm.bias = None
