"""Training a model of the decisive test: Adam at a constant rate on fresh batches."""

import math
from typing import Any

import torch
from torch.nn import functional as F

from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import RecallRun
from normscope.studies.recall.tasks import draw
from normscope.train.optimizer import AdamW

Row = dict[str, float | int | None]


class RecallTrainer:
    """All that changes during a run, and how a step changes it.

    For one seed every arm starts from the same weights and sees the same batches in the same order.
    """

    def __init__(self, run: RecallRun) -> None:
        self.run = run
        torch.manual_seed(run.seed)
        self.model = RecallModel(run.task, run.norm)
        # without decay this is Adam, at torch's defaults
        self.optimizer = AdamW([(list(self.model.parameters()), 0.0)], beta1=0.9, beta2=0.999)
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
        gradients = torch.autograd.grad(loss, self.optimizer.parameters)
        self.optimizer.step(gradients, self.run.learning_rate)
        self.step += 1
        self.pending.append(value)
        if self.step == task.steps and not self._ends_well():
            self.diverged_at = self.step
        if self.step % task.log_every == 0 or self.step == task.steps:
            mean = sum(self.pending) / len(self.pending)
            self.curve.append({"step": self.step, "train_loss": mean})
            self.pending = []
        return value
