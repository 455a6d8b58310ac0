"""Weights of trained models, and other tensors that are stored by seed and name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import safetensors
import safetensors.torch
from torch import Tensor, nn

from normscope.io.stored import damage

Module = TypeVar("Module", bound=nn.Module)
OTHERS = "it does not hold the models of its config.json"


def load(weights: Path, build: Callable[[Mapping[str, Tensor]], Module]) -> dict[int, Module]:
    """Load the models of a job, by seed in ascending order and in evaluation mode.

    Args:
        weights: a safetensors file with names ``<seed>.<name>``.
        build: makes a model of the shape of these tensors.

    Raises:
        Damaged: the file is truncated, or holds other models.
    """
    models: dict[int, Module] = {}
    try:
        for seed, tensors in tensors_by_seed(weights).items():
            models[seed] = build(tensors)
            models[seed].load_state_dict(tensors)
            models[seed].eval()
    except (RuntimeError, KeyError) as e:
        raise damage(weights, f"{OTHERS}: {e}") from e
    return models


def tensors_by_seed(path: Path) -> dict[int, dict[str, Tensor]]:
    """Load the tensors of a file by seed, in ascending order, and name.

    Args:
        path: a safetensors file with names ``<seed>.<name>``.

    Raises:
        Damaged: the file is truncated, or its tensors have other names.
    """
    tensors: dict[int, dict[str, Tensor]] = {}
    try:
        for key, tensor in safetensors.torch.load(path.read_bytes()).items():
            seed, _, name = key.partition(".")
            tensors.setdefault(int(seed), {})[name] = tensor
    except (safetensors.SafetensorError, ValueError) as e:
        raise damage(path, f"{OTHERS}: {e}") from e
    return dict(sorted(tensors.items()))
