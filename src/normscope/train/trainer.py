"""Training E models of one shape together: nanoGPT's recipe, resumable to the bit.

AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), or Muon or SGD, with gradient clipping, linear
warm-up and cosine decay. For one seed every arm sees the same batches in the same order.

A step of a small model is mostly the overhead of its kernels. Stacked, E models share it
(``torch.func.vmap``): one forward and backward pass, one optimizer. Each model has separate
batches, dropout masks, clipping, curve and divergence, and ends where it would alone, up to
rounding.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from normscope.measure.windows import SplitLoss
from normscope.nn.dropout import drawing
from normscope.train.optimizer import optimizer
from normscope.train.problem import Problem
from normscope.train.recipe import Training
from normscope.train.runtime import Runtime

Row = dict[str, float | int | None]
CURVE = ("step", "train_loss", "grad_norm", "learning_rate", "val_loss")


def learning_rate(step: int, t: Training) -> float:
    """Rate of a step (from 0): linear warm-up, then a cosine to ``min_lr`` at the end."""
    if step < t.warmup_steps:
        return t.learning_rate * (step + 1) / (t.warmup_steps + 1)
    progress = (step - t.warmup_steps) / (t.steps - t.warmup_steps)
    return t.min_lr + 0.5 * (1 + math.cos(math.pi * progress)) * (t.learning_rate - t.min_lr)


class Learner:
    """One model in training: its generators of batches and dropout masks, its curve and outcome.

    ``curve`` has one row for every ``log_every`` steps and for every evaluation, and with
    ``records_scales`` for every step that is a power of two. ``diverged_at`` is the step, counted
    from 1, whose training loss was NaN or above the bound, or after which the validation loss was;
    the model stays as it was then.
    """

    def __init__(self, model: nn.Module, seed: int, device: torch.device) -> None:
        self.model, self.seed = model, seed
        self.batches = Generator().manual_seed(seed)
        self.masks = Generator(device).manual_seed(seed)
        self.curve: list[Row] = []
        self.pending: list[tuple[float, float]] = []  # (loss, gradient norm) since the last row
        self.diverged_at: int | None = None
        self.val_loss: SplitLoss | None = None
        self.second_moments: dict[str, Tensor] = {}  # set by Trainer.write_back

    def state(self) -> dict[str, Any]:
        return {
            "batches": self.batches.get_state(),
            "masks": self.masks.get_state(),
            "curve": self.curve,
            "pending": self.pending,
            "diverged_at": self.diverged_at,
            "val_loss": asdict(self.val_loss) if self.val_loss else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.batches.set_state(state["batches"])
        self.masks.set_state(state["masks"])
        self.curve, self.pending = state["curve"], state["pending"]
        self.diverged_at = state["diverged_at"]
        self.val_loss = SplitLoss(**state["val_loss"]) if state["val_loss"] else None


def stacked_parameters(models: Sequence[nn.Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack parameters and buffers to ``(E, ...)``; those of the models become views of them."""
    parameters, buffers = stack_module_state(list(models))
    for i, model in enumerate(models):
        for name, parameter in model.named_parameters():
            parameter.data = parameters[name].detach()[i]
        for name, _ in list(model.named_buffers()):
            path, _, last = name.rpartition(".")
            setattr(model.get_submodule(path), last, buffers[name][i])
    return parameters, buffers


def clip(gradients: Sequence[Tensor], bound: float) -> Tensor:
    """Scale each model's gradients, stacked ``(E, ...)``, to a norm of at most ``bound``.

    The same as ``torch.nn.utils.clip_grad_norm_`` for each model.

    Returns:
        The norms before clipping, (E,).
    """
    E = len(gradients[0])
    parts = [torch.linalg.vector_norm(g.reshape(E, -1), dim=1) for g in gradients]
    norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)
    scale = (bound / (norms + 1e-6)).clamp(max=1.0)
    for g in gradients:
        g.mul_(scale.view(E, *[1] * (g.dim() - 1)))
    return norms


@contextmanager
def freeze_diverged(lost: Sequence[bool], tensors: Iterable[Tensor]) -> Iterator[None]:
    """On exit, restore the diverged models' entries of stacked tensors ``(E, ...)``."""
    at = [i for i, is_lost in enumerate(lost) if is_lost]
    before = [(tensor, tensor[at].clone()) for tensor in tensors] if at else []
    yield
    for tensor, entries in before:
        tensor[at] = entries


class Trainer:
    """Models in training, stacked, with their optimizer.

    Args:
        problem: what the models learn.
        seeds: E, one per model.
        runtime: device, threads and precision.
    """

    def __init__(self, problem: Problem, seeds: Sequence[int], runtime: Runtime) -> None:
        self.problem, self.runtime, self.training = problem, runtime, problem.training
        self.learners: list[Learner] = []
        for seed in seeds:
            torch.manual_seed(seed)
            model = problem.build().to(runtime.device)
            self.learners.append(Learner(model, seed, runtime.device))
        self.parameters, self.buffers = stacked_parameters(
            [learner.model for learner in self.learners]
        )
        self.optimizer = optimizer(self.training, self.parameters)
        self.step = 0

    @property
    def is_done(self) -> bool:
        return self.step == self.training.steps or all(self._lost())

    def _lost(self) -> list[bool]:
        return [learner.diverged_at is not None for learner in self.learners]

    def state(self) -> dict[str, Any]:
        return {
            "parameters": {name: p.detach() for name, p in self.parameters.items()},
            "buffers": self.buffers,
            "optimizer": self.optimizer.state(),
            "learners": [learner.state() for learner in self.learners],
        }

    def write_back(self) -> None:
        """Give each learner its part of Adam's second moments, on the CPU; other optimizers
        have none.
        """
        stacks = zip(self.parameters, self.optimizer.second_moments(), strict=True)
        for name, stacked in ((name, part) for name, part in stacks if part is not None):
            for learner, moments in zip(self.learners, stacked.cpu(), strict=True):
                learner.second_moments[name] = moments

    @torch.no_grad()
    def restore(self, step: int, state: dict[str, Any]) -> None:
        for stacked in ("parameters", "buffers"):
            for name, tensor in getattr(self, stacked).items():
                tensor.copy_(state[stacked][name])
        self.optimizer.restore(state["optimizer"])
        for learner, saved in zip(self.learners, state["learners"], strict=True):
            learner.restore(saved)
        self.step = step

    def advance(self) -> float:
        """One step of every model that has not diverged; returns their mean training loss."""
        lost = self._lost()
        batches = [self.problem.draw(learner.batches) for learner in self.learners]
        x, y = (torch.stack(part).to(self.runtime.device) for part in zip(*batches, strict=True))
        # BatchNorm's running statistics; restored after the backward pass, which reads them
        with freeze_diverged(lost, self.buffers.values()):
            losses = self._losses(x, y)
            values = losses.tolist()
            for learner, loss, is_lost in zip(self.learners, values, lost, strict=True):
                if not is_lost and not loss <= self.training.loss_bound:  # NaN compares false
                    self._diverge(learner, loss)
            if not all(self._lost()):
                self._update(x, losses, values)
        going = [value for value, is_lost in zip(values, lost, strict=True) if not is_lost]
        return math.fsum(going) / len(going)

    def _losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Training loss of every model ``(E,)`` on its batch, ``x[e]`` and ``y[e]``."""
        first = self.learners[0].model

        def forward(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
            with self.runtime.autocast():
                return functional_call(first, (parameters, buffers), (x,))

        with drawing([learner.masks for learner in self.learners]):
            if len(self.learners) > 1:
                outputs = vmap(forward)(self.parameters, self.buffers, x).unbind()
            else:
                with self.runtime.autocast():
                    outputs = (first(x[0]),)
        # not inside vmap, where torch's cross-entropy runs in Python and loads sympy in 0.5 s
        pairs = zip(outputs, y, strict=True)
        return torch.stack([self.problem.loss(logits, targets) for logits, targets in pairs])

    def _gradients(self, losses: Tensor) -> list[Tensor]:
        """Gradients of the losses by the stacked parameters, ``(E, ...)`` each."""
        if len(self.learners) > 1:
            gradients = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
            # vmap can return transposed memory, whose strides the fused optimizer ignores
            return [g.contiguous() for g in gradients]
        parameters = list(self.learners[0].model.parameters())
        return [g[None] for g in torch.autograd.grad(losses[0], parameters)]

    def _diverge(self, learner: Learner, loss: float) -> None:
        learner.diverged_at = self.step + 1
        shown = loss if math.isfinite(loss) else None
        learner.curve.append({"step": learner.diverged_at, "train_loss": shown})

    def _update(self, x: Tensor, losses: Tensor, values: Sequence[float]) -> None:
        """Take an optimizer step for the models that have not diverged, and record it."""
        t, lost = self.training, self._lost()
        gradients = self._gradients(losses)
        norms = clip(gradients, t.grad_clip or math.inf).tolist()
        with freeze_diverged(lost, [p.detach() for p in self.parameters.values()]):
            self.optimizer.step(gradients, learning_rate(self.step, t))
        self.step += 1
        for i, learner in enumerate(self.learners):
            if not lost[i]:
                learner.pending.append((values[i], norms[i]))
                self._record(learner, x[i])

    def _record(self, learner: Learner, inputs: Tensor) -> None:
        """Append a row to the curve if one is due."""
        t = self.training
        last = self.step == t.steps
        evaluates = last or self.step % t.eval_every == 0
        is_power_of_two = self.step & (self.step - 1) == 0
        # scales change most in the first steps, which powers of two resolve
        is_watched = t.records_scales and is_power_of_two
        if not (evaluates or is_watched or self.step % t.log_every == 0):
            return
        if evaluates:
            self._evaluate(learner)
        losses, norms = zip(*learner.pending, strict=True)
        learner.pending = []
        learner.curve.append(
            {
                "step": self.step,
                "train_loss": sum(losses) / len(losses),
                "grad_norm": sum(norms) / len(norms),
                "learning_rate": learning_rate(self.step - 1, t),
                "val_loss": learner.val_loss.mean if evaluates and learner.val_loss else None,
                **self.problem.watch(learner.model, inputs),
            }
        )

    def _evaluate(self, learner: Learner) -> None:
        """Evaluate a model; it has diverged if the loss is NaN or above the bound."""
        loss = self.problem.evaluate(learner.model, learner.batches, self.runtime.device)
        is_sound = loss.mean <= self.training.loss_bound  # NaN compares false
        learner.val_loss = loss if is_sound else None
        if not is_sound:
            learner.diverged_at = self.step
