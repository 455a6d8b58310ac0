"""Weights of trained models from models.safetensors."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import safetensors
import safetensors.torch
from torch import Tensor, nn

from normscope.io.stored import damaged

Module = TypeVar("Module", bound=nn.Module)


def load(weights: Path, build: Callable[[], Module]) -> dict[int, Module]:
    """The models of a job by seed, in order, with parameters and buffers, in evaluation mode.

    Args:
        weights: each tensor by ``<seed>.<name>``.
        build: makes a model of the shape that the file holds.

    Raises:
        Damaged: the file is truncated, or holds other models.
    """
    tensors: dict[str, dict[str, Tensor]] = {}
    models: dict[int, Module] = {}
    try:
        for key, tensor in safetensors.torch.load(weights.read_bytes()).items():
            seed, _, name = key.partition(".")
            tensors.setdefault(seed, {})[name] = tensor
        for seed in sorted(tensors, key=int):
            models[int(seed)] = build()
            models[int(seed)].load_state_dict(tensors[seed])
            models[int(seed)].eval()
    except (safetensors.SafetensorError, RuntimeError, ValueError) as e:
        reason = f"it does not hold the models of its config.json: {e}"
        raise damaged(weights, reason) from e
    return models
