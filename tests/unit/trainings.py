"""Models trained to the end: by the trainer, and by a reference loop for a single model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from recipes import DATA
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from normscope.io.dataset import Dataset
from normscope.measure.windows import SplitLoss
from normscope.nn.dropout import drawing
from normscope.studies.recall.problem import Asked
from normscope.studies.recall.recipe import RecallStack
from normscope.train.problem import NextCharacter, Problem
from normscope.train.recipe import Stack
from normscope.train.runtime import Runtime
from normscope.train.trainer import Trainer, learning_rate

FP32 = Runtime("fp32", 1, "highest", 0.0)
BF16 = Runtime("bf16", 1, "highest", 0.0)


class InFloat64:
    """A problem whose models and training losses are float64."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.training, self.draw = problem, problem.training, problem.draw
        self.watch = problem.watch

    def build(self) -> nn.Module:
        return self.problem.build().double()

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())

    def evaluate(self, model: nn.Module, g: Generator, device: torch.device) -> SplitLoss:
        return self.problem.evaluate(model, g, device)


def problem_of(stack: Stack | RecallStack, data: Dataset = DATA) -> Problem:
    return Asked(stack) if isinstance(stack, RecallStack) else NextCharacter(stack, data)


def to_end(trainer: Trainer) -> list[float]:
    """Train to the end, and return the loss of every step."""
    losses = []
    while not trainer.done:
        losses.append(trainer.advance())
    return losses


def trained(
    stack: Stack | RecallStack, data: Dataset = DATA, *, runtime: Runtime = FP32
) -> Trainer:
    trainer = Trainer(problem_of(stack, data), stack.seeds, runtime)
    to_end(trainer)
    return trainer


def state(trainer: Trainer, i: int = 0) -> dict[str, Tensor]:
    """A copy of a model's parameters and buffers."""
    return {name: t.clone() for name, t in trainer.learners[i].model.state_dict().items()}


@dataclass
class Alone:
    """A model trained by the reference loop, with its loss and gradient norm in each step."""

    model: nn.Module
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    diverged_at: int | None = None


def alone(problem: Problem, seed: int, *, runtime: Runtime = FP32) -> Alone:
    """nanoGPT's loop; a loss that is NaN or above the bound ends it.

    AdamW is algorithm 2 of Loshchilov & Hutter 2019; torch clips the gradients.
    """
    t = problem.training
    torch.manual_seed(seed)
    end = Alone(problem.build())
    parameters = list(end.model.parameters())
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    batches, masks = Generator().manual_seed(seed), Generator().manual_seed(seed)
    for step in range(t.steps):
        x, y = problem.draw(batches)
        with drawing([masks]), runtime.autocast():
            outputs = end.model(x)
        loss = problem.loss(outputs, y)
        if math.isnan(loss.item()) or loss.item() > t.loss_bound:
            end.diverged_at = step + 1
            break
        end.model.zero_grad()
        loss.backward()
        end.losses.append(loss.item())
        end.norms.append(float(nn.utils.clip_grad_norm_(parameters, t.grad_clip or math.inf)))
        rate = learning_rate(step, t)
        for p, (m, v) in zip(parameters, moments, strict=True):
            assert p.grad is not None
            decay = t.weight_decay if p.dim() > 1 or t.decays == "all" else 0.0
            m.mul_(t.beta1).add_((1 - t.beta1) * p.grad)
            v.mul_(t.beta2).add_((1 - t.beta2) * p.grad.square())
            first, second = m / (1 - t.beta1 ** (step + 1)), v / (1 - t.beta2 ** (step + 1))
            p.data -= rate * (first / (second.sqrt() + 1e-8) + decay * p.data)
    return end


def averages(values: Sequence[float], ends: Sequence[int]) -> list[float]:
    """Means of the values up to the first end, from there to the second, and so on."""
    spans = zip([0, *ends], ends, strict=False)
    return [sum(values[begin:end]) / (end - begin) for begin, end in spans]
