"""Small tasks, jobs and models of the recall test, for its tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from normscope.nn.arms import ARMS
from normscope.studies.recall.recipe import RecallStack, Task

KINDS = ("copy", "recall")


def task(kind: str, **changes: Any) -> Task:
    """A task of 16 keys and 11 steps."""
    small = {
        "entities": 4,
        "attributes": 4,
        "n_embd": 8,
        "batch_size": 6,
        "steps": 11,
        "log_every": 3,
    }
    return Task.model_validate({"kind": kind, **small, **changes})


def recall_run(
    arm: str = "layernorm", kind: str = "recall", *, learning_rate: float = 0.01, **changes: Any
) -> RecallStack:
    """Models of 11 steps: one, of ``seed``, or those of ``seeds``; changes go to the task."""
    one = [changes.pop("seed", 1337)]
    seeds = changes.pop("seeds", one)
    return RecallStack(
        task=task(kind, **changes), norm=ARMS[arm].norm, learning_rate=learning_rate, seeds=seeds
    )


def move(module: nn.Module, seed: int = 0) -> nn.Module:
    """Every parameter away from where it starts: no bias is 0, no gain is 1."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=g, dtype=p.dtype))
    return module


def by(table: pd.DataFrame, *columns: str) -> dict[Any, dict[str, Any]]:
    """The rows of a table by what they have in a column, or in several."""
    rows = [{str(c): v for c, v in row.items()} for row in table.to_dict("records")]
    return {tuple(r[c] for c in columns) if columns[1:] else r[columns[0]]: r for r in rows}


def dense_hessian(model: nn.Module, loss: Callable[[], Tensor]) -> np.ndarray:
    """By torch.autograd.functional, over one flat vector that replaces the parameters."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    sizes = [p.numel() for p in parameters]
    modules = [(model.get_submodule(n.rpartition(".")[0]), n.rpartition(".")[2]) for n in names]

    def of_flat(flat: Tensor) -> Tensor:
        for (module, name), p, part in zip(modules, parameters, flat.split(sizes), strict=True):
            del module._parameters[name]
            object.__setattr__(module, name, part.view_as(p))
        try:
            return loss()
        finally:
            for (module, name), p in zip(modules, parameters, strict=True):
                object.__delattr__(module, name)
                module._parameters[name] = p

    flat = torch.cat([p.detach().flatten() for p in parameters])
    matrix = torch.autograd.functional.hessian(of_flat, flat, vectorize=True)
    assert isinstance(matrix, Tensor)
    return matrix.numpy()
