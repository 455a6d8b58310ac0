"""Sizes of the residual stream and of the logits at the end of a Transformer."""

import torch
from torch import Tensor, nn

from normscope.measure.hooks import passing


@torch.no_grad()
def scales(model: nn.Module, last: nn.Module, tokens: Tensor) -> dict[str, float]:
    """Three scales of one forward pass.

    Args:
        model: Tokens to logits ``(B, T, V)``, in evaluation mode.
        last: Its last block, ``(B, T, C)`` to ``(B, T, C)``, after which only a final norm and the
            head follow.
        tokens: ``(B, T)``.

    Returns:
        ``sigma``, the standard deviation over the channels of a token before the final norm, mean
        over tokens; ``last_gain``, the factor by which the last block changes the norm of a token,
        geometric mean over all positions but the first, which attends only to itself; and
        ``logit_sd``, the standard deviation of the logits over the vocabulary, mean over tokens.
    """
    with passing({"last": last}) as seen:
        logits = model(tokens)
    before, after = seen["last"]
    gain = torch.linalg.vector_norm(after, dim=-1) / torch.linalg.vector_norm(before, dim=-1)
    return {
        "sigma": float(after.std(-1, correction=0).mean()),
        "last_gain": float(gain[:, 1:].log().mean().exp()),
        "logit_sd": float(logits.std(-1, correction=0).mean()),
    }
