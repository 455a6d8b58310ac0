"""Weights of a trained model from model.safetensors."""

from pathlib import Path

import safetensors
import safetensors.torch
from torch import nn

from normscope.io.stored import damaged


def fill(model: nn.Module, weights: Path) -> None:
    """Load a model's parameters and buffers, in evaluation mode from then on.

    Raises:
        Damaged: the file is truncated, or holds another model.
    """
    try:
        model.load_state_dict(safetensors.torch.load(weights.read_bytes()))
    except (safetensors.SafetensorError, RuntimeError) as e:
        reason = f"it does not hold the model of its config.json: {e}"
        raise damaged(weights, reason) from e
    model.eval()
