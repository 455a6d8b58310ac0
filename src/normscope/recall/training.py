"""Training a model of the decisive test: Adam at a constant rate on fresh batches."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim.adam import adam

from normscope.recall.model import RecallModel
from normscope.recall.recipe import RecallRun
from normscope.recall.tasks import draw

Row = dict[str, float | int | None]


class Adam:
    """``torch.optim.Adam`` at its defaults, a constant rate and nothing else, to the bit.

    It calls the same kernel without the Optimizer around it, which loads torch's compiler at its
    first use: 0.6 s, as much as a third of a short run.
    """

    def __init__(self, parameters: Sequence[Tensor], learning_rate: float) -> None:
        self.parameters, self.learning_rate = list(parameters), learning_rate
        self.first = [torch.zeros_like(p) for p in self.parameters]  # running mean of gradients
        self.second = [torch.zeros_like(p) for p in self.parameters]  # of their squares
        self.steps = [torch.zeros(()) for _ in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the parameters against their gradients (Kingma & Ba 2015, algorithm 1)."""
        adam(
            self.parameters,
            list(gradients),
            self.first,
            self.second,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, list[Tensor]]:
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        self.first, self.second, self.steps = (state[k] for k in ("first", "second", "steps"))


class RecallTrainer:
    """All that changes during a run, and how a step changes it.

    For one seed every arm starts from the same weights and sees the same batches in the same order.
    """

    def __init__(self, run: RecallRun) -> None:
        self.run = run
        torch.manual_seed(run.seed)
        self.model = RecallModel(run.task, run.norm)
        self.optimizer = Adam(list(self.model.parameters()), run.learning_rate)
        self.batches = torch.Generator().manual_seed(run.seed)
        self.step = 0
        self.curve: list[Row] = []
        self.pending: list[float] = []  # losses since the last row
        self.diverged_at: int | None = None

    @property
    def done(self) -> bool:
        return self.step == self.run.task.steps or self.diverged_at is not None

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state(),
            "batches": self.batches.get_state(),
            "curve": self.curve,
            "pending": self.pending,
            "diverged_at": self.diverged_at,
        }

    def restore(self, step: int, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.restore(state["optimizer"])
        self.batches.set_state(state["batches"])
        self.step, self.curve, self.pending = step, state["curve"], state["pending"]
        self.diverged_at = state["diverged_at"]

    def _ends_well(self) -> bool:
        """Whether the weights after the last step, which no training loss has seen, have a loss."""
        tokens, answers = draw(self.run.task, self.run.task.batch_size, self.batches)
        self.model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(self.model(tokens), answers).item()
        self.model.train()
        return loss <= self.run.task.loss_bound

    def advance(self) -> float:
        """One optimizer step; returns its training loss and notes a divergence."""
        task = self.run.task
        tokens, answers = draw(task, task.batch_size, self.batches)
        loss = F.cross_entropy(self.model(tokens), answers)
        value = loss.item()
        if not value <= task.loss_bound:  # NaN compares false
            self.diverged_at = self.step + 1
            shown = value if math.isfinite(value) else None
            self.curve.append({"step": self.diverged_at, "train_loss": shown})
            return value
        self.optimizer.step(torch.autograd.grad(loss, self.optimizer.parameters))
        self.step += 1
        self.pending.append(value)
        if self.step == task.steps and not self._ends_well():
            self.diverged_at = self.step
        if self.step % task.log_every == 0 or self.step == task.steps:
            mean = sum(self.pending) / len(self.pending)
            self.curve.append({"step": self.step, "train_loss": mean})
            self.pending = []
        return value
