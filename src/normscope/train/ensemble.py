"""Small models of one shape trained at once: one forward and backward pass for all of them.

A step of a deep and narrow model is mostly the overhead of its kernels. Stacked, E models share it
(``torch.func.vmap``); all else is each model's own ``Trainer``: its batches, schedule, clipping,
optimizer, curve and divergence.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from normscope.io.dataset import DatasetError
from normscope.nn.model import cross_entropy
from normscope.train.trainer import Trainer


def _share(models: Sequence[nn.Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stacked parameters and buffers, ``(E, ...)`` each, of which the models' own become views."""
    parameters, buffers = stack_module_state(list(models))
    for i, model in enumerate(models):
        for name, parameter in model.named_parameters():
            parameter.data = parameters[name].detach()[i]
        for name, _ in list(model.named_buffers()):
            path, _, last = name.rpartition(".")
            setattr(model.get_submodule(path), last, buffers[name][i])
    return parameters, buffers


class Ensemble:
    """Trainers of models that differ in seed, learning rate and schedule, stepped together.

    In exact arithmetic each ends where its trainer alone would. A model that diverges stays where
    it was; the others go on.

    Args:
        trainers: at the same step, of models of one shape, without dropout, in fp32.

    Raises:
        ValueError: the models differ, or have dropout, or another precision.
        DatasetError: a split is too short for a window.
    """

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        first = trainers[0].run
        for run in (trainer.run for trainer in trainers):
            if (run.model, run.norm, run.placement) != (first.model, first.norm, first.placement):
                raise ValueError("an ensemble is of models of one shape, norm and placement")
            if run.training.batch_size != first.training.batch_size:
                raise ValueError("an ensemble is of batches of one size")
            if run.model.dropout or run.training.precision != "fp32":
                raise ValueError("an ensemble is trained in fp32, without dropout")
        for trainer in trainers:
            T = trainer.run.model.block_size
            if min(len(trainer.train_tokens), len(trainer.val_tokens)) <= T:
                raise DatasetError(
                    f"a split has too few tokens for a window of {T} and its targets"
                )
        self.trainers = list(trainers)
        self.parameters, self.buffers = _share([trainer.model for trainer in trainers])
        self.step = trainers[0].step
        self.gradients = {name: torch.empty_like(p) for name, p in self.parameters.items()}
        for i, trainer in enumerate(trainers):
            for name, parameter in trainer.model.named_parameters():
                parameter.grad = self.gradients[name][i]

    @property
    def done(self) -> bool:
        return all(trainer.done for trainer in self.trainers)

    def state(self) -> dict[str, Any]:
        return {"trainers": [t.state() | {"step": t.step} for t in self.trainers]}

    def restore(self, step: int, state: dict[str, Any]) -> None:
        for trainer, saved in zip(self.trainers, state["trainers"], strict=True):
            trainer.restore(saved["step"], saved)
        self.step = step

    def _losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Training loss of every model ``(E,)`` on its own batch, ``x`` and ``y`` (E, B, T)."""
        model = self.trainers[0].model

        def loss(
            parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor
        ) -> Tensor:
            return cross_entropy(functional_call(model, (parameters, buffers), (x,)), y)

        return vmap(loss)(self.parameters, self.buffers, x, y)

    def advance(self) -> float:
        """One step of every model that is not done; returns their mean training loss."""
        still = [not trainer.done for trainer in self.trainers]
        live = [t for t, is_live in zip(self.trainers, still, strict=True) if is_live]
        batches = {id(trainer): trainer.batch() for trainer in live}
        filler = batches[id(live[0])]  # what is done rides along
        x, y = (
            torch.stack([batches.get(id(trainer), filler)[k] for trainer in self.trainers])
            for k in (0, 1)
        )
        done = [i for i, is_live in enumerate(still) if not is_live]
        kept = {name: buffer[done].clone() for name, buffer in self.buffers.items()}
        losses = self._losses(x, y)
        values = losses.tolist()
        gradients = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
        for name, buffer in kept.items():  # BatchNorm's: what is done sees no more batches
            self.buffers[name][done] = buffer
        # vmap gives transposed memory, which the fused optimizer would read as it lies
        for own, stacked in zip(self.gradients.values(), gradients, strict=True):
            own.copy_(stacked)
        for i, trainer in enumerate(self.trainers):
            if still[i] and trainer.is_within_bound(values[i]):
                trainer.update(values[i])
        self.step += 1
        return math.fsum(v for v, is_live in zip(values, still, strict=True) if is_live) / len(live)
