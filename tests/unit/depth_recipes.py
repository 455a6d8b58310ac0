"""Linear residual networks with spectra in closed form, small Transformers, a small depth grid."""

from typing import Any

import numpy as np
import torch
import yaml
from recipes import recipe, with_changes
from torch import Tensor, nn

from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Init, Model, Placement
from normscope.studies.depth.grid import Depth

V, T, C, B = 7, 5, 8, 2


class Linear(nn.Module):
    """``x + x W^T``, or without the residual connection ``x W^T``."""

    def __init__(self, weight: Tensor, *, residual: bool = True) -> None:
        super().__init__()
        self.weight, self.residual = nn.Parameter(weight), residual

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight.T
        return x + y if self.residual else y


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthogonal(d: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(normal(d, d, seed=seed))[0]


def symmetric(eigenvalues: Tensor, seed: int = 0) -> Tensor:
    """With these eigenvalues, in a random basis."""
    q = orthogonal(len(eigenvalues), seed)
    return q @ torch.diag(eigenvalues) @ q.T


def transformer(
    arm: str = "layernorm",
    placement: Placement = "pre",
    *,
    residual: bool = True,
    init: Init = "gpt2",
    n_layer: int = 2,
) -> Transformer:
    """In float64, in training mode."""
    sizes = {"n_layer": n_layer, "n_head": 2, "n_embd": C, "block_size": T}
    model = Model.model_validate(sizes | {"residual": residual, "init": init})
    torch.manual_seed(3)
    return Transformer(model, ARMS[arm].norm, placement, V).double().train()


def tokens(seed: int = 1) -> Tensor:
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


def dense(block: nn.Module, x: Tensor) -> np.ndarray:
    """dy/dx over all tokens of the batch, by forward differentiation of whole columns."""
    n = x.numel()
    jacobian = torch.func.jacrev(lambda v: block(v.view(x.shape)).flatten())(x.flatten())
    return jacobian.detach().numpy().reshape(n, n)


GRID: dict[str, Any] = yaml.safe_load("""
sizes: {n_head: 2, n_embd: 8, block_size: 8}
start:
- arms: [layernorm]
  placements: [pre, post]
  residual: [true, false]
  init: [gpt2]
  depths: [2, 3]
  seeds: [1, 2]
- arms: [none]
  placements: [none]
  residual: [true]
  init: [gpt2, xavier]
  depths: [2]
  seeds: [1]
trained:
- arms: [layernorm, batchnorm]
  placements: [pre]
  residual: [true]
  init: [gpt2]
  depths: [2]
  learning_rates: [0.003, 0.01]
  warmup_steps: [0, 2]
  steps: 4
  seeds: [1, 2]
stack: 2
kept: [{learning_rate: 0.003, warmup_steps: 2}]
windows: 2
spectra: 2
""") | {"training": recipe(steps=6, eval_every=6, eval_tokens=30).training.model_dump()}


def raw_grid(**changes: Any) -> dict[str, Any]:
    """The small grid with values set at dotted keys (``__`` is a dot)."""
    return with_changes(GRID, "__", changes)


def depth_grid(**changes: Any) -> Depth:
    return Depth.model_validate(raw_grid(**changes))
