"""Training one run: nanoGPT's recipe, resumable to the bit.

AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) with gradient clipping, linear warm-up and cosine
decay. For one seed every arm sees the same batches in the same order.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from normscope.io.dataset import Dataset, DatasetError
from normscope.measure.windows import SplitLoss, as_tensor, draw, split_loss
from normscope.nn.model import Transformer, cross_entropy
from normscope.train.checkpoint import Checkpoints
from normscope.train.optimizer import AdamW
from normscope.train.recipe import Run, Training
from normscope.train.resume import run_to_end
from normscope.train.runtime import Runtime

Row = dict[str, float | int | None]


@dataclass
class Result:
    """A trained model, its curve (one row per ``log_every`` steps or evaluation) and its end.

    ``diverged_at`` is the step, counted from 1, whose training loss was NaN or above the bound, or
    after which the validation loss was not finite; training stops there.
    """

    model: Transformer
    curve: list[Row]
    val_loss: SplitLoss | None
    diverged_at: int | None


def learning_rate(step: int, t: Training) -> float:
    """Rate of step ``step`` (from 0): linear warm-up, then a cosine to ``min_lr`` at the end."""
    if step < t.warmup_steps:
        return t.learning_rate * (step + 1) / (t.warmup_steps + 1)
    progress = (step - t.warmup_steps) / (t.steps - t.warmup_steps)
    return t.min_lr + 0.5 * (1 + math.cos(math.pi * progress)) * (t.learning_rate - t.min_lr)


def make_optimizer(model: nn.Module, t: Training) -> AdamW:
    """AdamW; matrices and embeddings decay, gains, biases and scalars only with ``decays: all``."""
    vector_decay = t.weight_decay if t.decays == "all" else 0.0
    groups = [
        ([p for p in model.parameters() if p.dim() >= 2], t.weight_decay),
        ([p for p in model.parameters() if p.dim() < 2], vector_decay),
    ]
    return AdamW(groups, t.beta1, t.beta2)


class Trainer:
    """All that changes during a run, and how a step changes it."""

    def __init__(self, run: Run, data: Dataset, runtime: Runtime) -> None:
        self.run, self.runtime = run, runtime
        self.train_tokens = as_tensor(data.train)
        self.val_tokens = as_tensor(data.val[: run.training.eval_tokens])
        torch.manual_seed(run.seed)
        self.model = Transformer(run.model, run.norm, run.placement, data.vocab_size)
        self.optimizer = make_optimizer(self.model, run.training)
        self.batches = torch.Generator().manual_seed(run.seed)
        self.step = 0
        self.curve: list[Row] = []
        self.pending: list[tuple[float, float]] = []  # (loss, gradient norm) since the last row
        self.diverged_at: int | None = None
        self.val_loss: SplitLoss | None = None

    @property
    def done(self) -> bool:
        return self.step == self.run.training.steps or self.diverged_at is not None

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state(),
            "batches": self.batches.get_state(),
            "dropout": torch.get_rng_state(),
            "curve": self.curve,
            "pending": self.pending,
            "diverged_at": self.diverged_at,
            "val_loss": asdict(self.val_loss) if self.val_loss else None,
        }

    def restore(self, step: int, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.restore(state["optimizer"])
        self.batches.set_state(state["batches"])
        torch.set_rng_state(state["dropout"])
        self.step, self.curve, self.pending = step, state["curve"], state["pending"]
        self.diverged_at = state["diverged_at"]
        self.val_loss = SplitLoss(**state["val_loss"]) if state["val_loss"] else None

    def batch(self) -> tuple[Tensor, Tensor]:
        """The next inputs and targets, each (batch_size, block_size)."""
        m, t = self.run.model, self.run.training
        return draw(self.train_tokens, m.block_size, t.batch_size, self.batches)

    def advance(self) -> float:
        """One optimizer step; returns its training loss and notes a divergence."""
        x, y = self.batch()
        with self.runtime.autocast():
            logits = self.model(x)
        loss = cross_entropy(logits, y)
        value = loss.item()
        if self.is_within_bound(value):
            self.model.zero_grad(set_to_none=True)
            loss.backward()
            self.update(value)
        return value

    def is_within_bound(self, loss: float) -> bool:
        """Whether a training loss is finite and within the bound; notes a divergence if not."""
        if loss <= self.run.training.loss_bound:  # NaN compares false
            return True
        self.diverged_at = self.step + 1
        shown = loss if math.isfinite(loss) else None
        self.curve.append({"step": self.diverged_at, "train_loss": shown})
        return False

    def update(self, loss: float) -> None:
        """Move the parameters against their gradients, and note the loss that these are of."""
        t = self.run.training
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), t.grad_clip or math.inf)
        gradients = [p.grad for p in self.optimizer.parameters if p.grad is not None]
        self.optimizer.step(gradients, learning_rate(self.step, t))
        self.pending.append((loss, norm.item()))
        self.step += 1
        self._record()

    def _record(self) -> None:
        t = self.run.training
        last = self.step == t.steps
        evaluate = last or self.step % t.eval_every == 0
        if not (evaluate or self.step % t.log_every == 0):
            return
        if evaluate:
            self._evaluate()
        losses, norms = zip(*self.pending, strict=True)
        self.pending = []
        self.curve.append(
            {
                "step": self.step,
                "train_loss": sum(losses) / len(losses),
                "grad_norm": sum(norms) / len(norms),
                "learning_rate": learning_rate(self.step - 1, t),
                "val_loss": self.val_loss.mean if evaluate and self.val_loss else None,
            }
        )

    def _evaluate(self) -> None:
        """Loss on the validation split; a divergence if it is not finite."""
        loss = split_loss(self.model, self.val_tokens, self.run.model.block_size)
        self.val_loss = loss if math.isfinite(loss.mean) else None
        if self.val_loss is None:
            self.diverged_at = self.step


def train(
    run: Run,
    data: Dataset,
    runtime: Runtime,
    checkpoints: Checkpoints,
    *,
    say: Callable[[str], None],
    progress: Callable[[int, float], None],
) -> Result:
    """Train ``run`` to its last step or its divergence, resuming where it was interrupted.

    Args:
        run: what to train.
        data: tokens; both splits are longer than a window.
        runtime: threads and precision.
        checkpoints, say, progress: see ``normscope.train.resume.run_to_end``.

    Raises:
        DatasetError: a split is too short for a window.
        BrokenCheckpoint, OSError: see ``Checkpoints``.
    """
    for split, tokens in (("train", data.train), ("val", data.val)):
        if len(tokens) <= run.model.block_size:
            raise DatasetError(
                f"the {split} split has {len(tokens)} tokens; windows of block_size "
                f"{run.model.block_size} and their targets need at least one more than that"
            )
    trainer = Trainer(run, data, runtime)
    run_to_end(trainer, checkpoints, say=say, progress=progress)
    if trainer.diverged_at is not None:
        say(f"diverged at step {trainer.diverged_at}: the loss is not finite or above the bound")
        return Result(trainer.model, trainer.curve, None, trainer.diverged_at)
    return Result(trainer.model, trainer.curve, trainer.val_loss, None)
