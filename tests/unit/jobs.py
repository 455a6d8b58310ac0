"""Training jobs as a script runs them, in a directory, and interrupted on request."""

from pathlib import Path
from typing import Any

import torch
from recall_recipes import recall_run
from recipes import DATA, recipe
from torch import Generator, Tensor, nn
from trainings import BF16, FP32, problem_of

from normscope.io.files import SUMS
from normscope.measure.windows import SplitLoss
from normscope.studies.recall.recipe import RecallStack
from normscope.train import session
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags
from normscope.train.problem import Problem
from normscope.train.recipe import Stack

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
        self.config = stack.model_dump() | {"vocab_size": DATA.vocab_size}

    def train(self, left: int = -1) -> int:
        """Train, interrupted after ``left`` batches; return how many were drawn."""
        problem = Counted(problem_of(self.stack, self.text), left)
        try:
            session.train(
                self.flags,
                self.stack,
                problem,
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
