r"""Feedback alignment: errors travel back through fixed random matrices instead of the weights.

Backpropagation through ``y = W x`` is ``dx = W^T dy``, ``dW = dy x^T``. Feedback alignment keeps
the second and replaces the first:

    FA    dx  = B dy     Lillicrap et al. 2016, doi:10.1038/ncomms13276, eq. 3
    DFA   dx_l = B_l e   Nøkland 2016, arXiv:1609.01596, eq. 7: e is the error at the logits

with B drawn once and never trained. B is a buffer: stored with the model, without a gradient. With
B = W^T both are backpropagation.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from normscope.nn.recipe import Model


class _FeedbackProduct(torch.autograd.Function):
    """``x W^T + b`` forward; backward ``dy B^T`` for x, and the exact gradients for W and b."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, feedback: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, _, bias, feedback = inputs
        ctx.save_for_backward(x, feedback)
        ctx.has_bias = bias is not None

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: the decorator hides ctx
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        (dy,) = grads
        x, feedback = ctx.saved_tensors
        rows = dy.reshape(-1, dy.shape[-1])  # (tokens, out), in autocast's type where that is on
        dx = dy @ feedback.to(dy.dtype)
        dweight = rows.T @ x.reshape(-1, x.shape[-1]).to(dy.dtype)
        return dx, dweight, rows.sum(0) if ctx.has_bias else None, None


class FeedbackLinear(nn.Linear):
    """A linear layer that propagates its error through ``feedback`` (out, in), which is B^T.

    ``(..., in)`` to ``(..., out)``. ``feedback`` is not initialized here.
    """

    feedback: Tensor

    def __init__(self, in_features: int, out_features: int, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.register_buffer("feedback", torch.empty_like(self.weight.detach()))

    def forward(self, input: Tensor) -> Tensor:
        return _FeedbackProduct.apply(input, self.weight, self.bias, self.feedback)


def linear(model: Model, inputs: int, outputs: int, bias: bool) -> nn.Linear:
    """A linear layer that propagates errors through its weights, or through fixed ones (fa)."""
    kind = FeedbackLinear if model.feedback == "fa" else nn.Linear
    return kind(inputs, outputs, bias=bias)


class Errors:
    """The error at the logits of the newest backward pass.

    A class, because ``vmap`` would copy a list.
    """

    newest: Tensor


class _Catch(torch.autograd.Function):
    """Identity; backward stores the incoming error."""

    @staticmethod
    def forward(logits: Tensor, errors: Errors) -> Tensor:
        return logits.view_as(logits)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.errors = inputs

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        logits, errors = args
        # by hand, as the error leaves the map: that of all models, (E, B, T, V)
        return _Catch.apply(logits.movedim(in_dims[0], 0), errors), 0

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: the decorator hides ctx
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        ctx.errors.newest = grads[0]
        return grads[0], None


class _Deliver(torch.autograd.Function):
    """Identity; backward replaces the incoming gradient by ``e B^T``, with the stored error e."""

    @staticmethod
    def forward(x: Tensor, feedback: Tensor, errors: Errors) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, feedback, ctx.errors = inputs
        ctx.save_for_backward(feedback)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        x, feedback, errors = args
        # (E, B, T, C), and (E, 1, C, V) to meet the error of all models
        matrices = feedback.movedim(in_dims[1], 0).unsqueeze(1)
        return _Deliver.apply(x.movedim(in_dims[0], 0), matrices, errors), 0

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: the decorator hides ctx
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        (feedback,) = ctx.saved_tensors
        error = ctx.errors.newest  # stored already: the logits come after this block
        return error.to(grads[0].dtype) @ feedback.mT.to(grads[0].dtype), None, None


def catch(logits: Tensor, errors: Errors) -> Tensor:
    """The logits; the backward pass stores their gradient e ``(B, T, V)`` in ``errors``."""
    return _Catch.apply(logits, errors)


def deliver(x: Tensor, feedback: Tensor, errors: Errors) -> Tensor:
    """x ``(B, T, C)``; its gradient becomes ``B_l e``, with ``feedback`` (C, V) as B_l."""
    return _Deliver.apply(x, feedback, errors)
