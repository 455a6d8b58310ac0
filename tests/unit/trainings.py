"""Small trainings, alone and in stacks, and jobs that train."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from recall_recipes import recall_run
from recipes import DATA, recipe
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from normscope.io.dataset import Dataset
from normscope.io.files import SUMS
from normscope.measure.windows import SplitLoss
from normscope.nn.dropout import drawing
from normscope.studies.recall.recipe import RecallStack
from normscope.studies.recall.train import RecallProblem
from normscope.train import session
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags
from normscope.train.problem import NextCharacter, Problem
from normscope.train.recipe import Stack, Training
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
    return RecallProblem(stack) if isinstance(stack, RecallStack) else NextCharacter(stack, data)


def to_end(trainer: Trainer) -> list[float]:
    """Train to the end, and return the loss of every step."""
    losses = []
    while not trainer.is_done:
        losses.append(trainer.advance())
    return losses


def train(stack: Stack | RecallStack, data: Dataset = DATA, *, runtime: Runtime = FP32) -> Trainer:
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


def decay(p: Tensor, t: Training) -> float:
    return t.weight_decay if p.dim() > 1 or t.decays == "all" else 0.0


def torchs_step(model: nn.Module, t: Training) -> Callable[[float], None]:
    """A step of torch's SGD, or of its Muon and AdamW, at a learning rate.

    SGD's weight decay is decoupled by hand. Muon trains the matrices of the blocks, with queries,
    keys and values a matrix each, and AdamW at a tenth of the rate all else.
    """
    parts: dict[str, list[tuple[nn.Parameter, nn.Parameter, int]]] = {"hidden": [], "rest": []}
    for name, p in model.named_parameters():
        is_hidden = p.dim() == 2 and name.startswith("blocks.")
        views = p.data.chunk(3) if is_hidden and "qkv" in name else ()  # share p's memory
        found = [(nn.Parameter(view), p, i) for i, view in enumerate(views)] or [(p, p, 0)]
        parts["hidden" if is_hidden else "rest"] += found
    every = [*parts["hidden"], *parts["rest"]]
    if t.optimizer == "sgd":
        of_sgd = [p for p, _, _ in every]
        rates = {torch.optim.SGD(of_sgd, momentum=t.momentum): 1.0}
    else:
        hidden = [p for p, _, _ in parts["hidden"]]
        rest = [{"params": [p], "weight_decay": decay(p, t)} for p, _, _ in parts["rest"]]
        muon = torch.optim.Muon(hidden, weight_decay=t.weight_decay, momentum=t.momentum)
        rates = {muon: 1.0, torch.optim.AdamW(rest, betas=(t.beta1, t.beta2)): 0.1}

    def step(rate: float) -> None:
        for part, whole, i in every:
            assert whole.grad is not None
            part.grad = whole.grad if part is whole else whole.grad.chunk(3)[i]
            if t.optimizer == "sgd":
                part.data.mul_(1 - rate * decay(part, t))
        for optimizer, share in rates.items():
            for group in optimizer.param_groups:
                group["lr"] = share * rate
            optimizer.step()

    return step


def adamw_step(model: nn.Module, t: Training) -> Callable[[float], None]:
    """Algorithm 2 of Loshchilov & Hutter 2019."""
    moments = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    steps = itertools.count(1)

    def step(rate: float) -> None:
        n = next(steps)
        for p, m, v in moments:
            assert p.grad is not None
            m.mul_(t.beta1).add_((1 - t.beta1) * p.grad)
            v.mul_(t.beta2).add_((1 - t.beta2) * p.grad.square())
            first, second = m / (1 - t.beta1**n), v / (1 - t.beta2**n)
            p.data -= rate * (first / (second.sqrt() + 1e-8) + decay(p, t) * p.data)

    return step


def alone(problem: Problem, seed: int, *, runtime: Runtime = FP32) -> Alone:
    """nanoGPT's loop; a loss that is NaN or above the bound ends it.

    torch clips the gradients.
    """
    t = problem.training
    torch.manual_seed(seed)
    end = Alone(problem.build())
    parameters = list(end.model.parameters())
    update = (adamw_step if t.optimizer == "adamw" else torchs_step)(end.model, t)
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
        update(learning_rate(step, t))
    return end


def averages(values: Sequence[float], ends: Sequence[int]) -> list[float]:
    """Means of the values up to the first end, from there to the second, and so on."""
    spans = zip([0, *ends], ends, strict=False)
    return [sum(values[begin:end]) / (end - begin) for begin, end in spans]


EVERY = 4  # steps between checkpoints
SEEDS = [1, 2, 3]
WILD = {"learning_rate": 0.05, "min_lr": 0.05, "warmup_steps": 0}  # one of the losses reaches 1.9
KINDS: dict[str, Stack | RecallStack] = {
    "batchnorm, one diverges": recipe(
        "batchnorm", dropout=0.2, loss_bound=1.9, seeds=SEEDS, **WILD
    ),
    "dfa, bf16": recipe(
        "rmsnorm", "post", feedback="dfa", precision="bf16", seeds=SEEDS, tied_head=False
    ),
    "muon": recipe("rmsnorm", "hybrid", optimizer="muon", seeds=SEEDS),
    "sgd": recipe(optimizer="sgd", qk_norm="all", seeds=SEEDS),
    "decisive": recall_run("batchnorm", seeds=SEEDS),
}


class Counted:
    """A problem that counts its batches, and interrupts the job after some of them."""

    def __init__(self, problem: Problem, left: int) -> None:
        self.training, self.build, self.loss = problem.training, problem.build, problem.loss
        self.watch = problem.watch
        self.problem, self.left, self.drawn = problem, left, 0

    def draw(self, g: Generator) -> tuple[Tensor, Tensor]:
        if self.drawn == self.left:
            raise KeyboardInterrupt
        self.drawn += 1
        return self.problem.draw(g)

    def evaluate(self, model: nn.Module, g: Generator, device: torch.device) -> SplitLoss:
        return self.problem.evaluate(model, g, device)


class Job:
    """A training script with its flags, in a directory."""

    def __init__(self, at: Path, stack: Stack | RecallStack, *, models_per_stack: int = 3) -> None:
        at.mkdir(exist_ok=True)
        self.stack, self.models_per_stack, self.out = stack, models_per_stack, at / "out"
        self.script, self.data, self.timing = at / "s.py", at / "train.bin", at / "timing.tsv"
        self.script.write_text("import normscope.io.provenance\n")
        self.data.write_bytes(b"data")
        self.checkpoints = at / "checkpoints"
        paths: dict[str, Any] = {"out": self.out, "checkpoints": self.checkpoints}
        self.flags = TrainingFlags(**paths, timing=self.timing, checkpoint_every=EVERY)
        self.runtime = BF16 if stack.training.precision == "bf16" else FP32
        self.text = DATA
        self.config = stack.model_dump()

    def train(self, left: int = -1) -> int:
        """Train, interrupted after ``left`` batches; return how many were drawn."""
        problem = Counted(problem_of(self.stack, self.text), left)
        try:
            session.train(
                self.flags,
                self.stack,
                [(problem, self.stack.seeds)],
                self.runtime,
                models_per_stack=self.models_per_stack,
                code=[self.script],
                data=[self.data],
                write=lambda learners: write_models(self.out, learners, self.config, moments=True),
            )
        except KeyboardInterrupt:
            assert problem.drawn == left
        return problem.drawn

    def sums(self) -> str:
        """SHA-256 sums of all outputs."""
        return (self.out / SUMS).read_text()

    def kept(self) -> list[str]:
        folder = self.checkpoints
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("step-*"))
