"""How the recall test's models are trained: on fresh sequences of the task at every step."""

from pathlib import Path

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from normscope.measure.windows import SplitLoss
from normscope.studies.recall.model import RecallModel, draw
from normscope.studies.recall.recipe import RecallStack
from normscope.train.plan import Plan


class RecallProblem:
    """A ``normscope.train.problem.Problem``.

    For one seed every arm starts from the same weights and sees the same batches in the same order.
    """

    def __init__(self, stack: RecallStack) -> None:
        self.stack, self.training = stack, stack.training

    def build(self) -> RecallModel:
        return RecallModel(self.stack.task, self.stack.norm)

    def draw(self, g: Generator) -> tuple[Tensor, Tensor]:
        return draw(self.stack.task, self.stack.task.batch_size, g)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets)

    def watch(self, model: nn.Module, inputs: Tensor) -> dict[str, float]:
        """Nothing."""
        return {}

    def evaluate(self, model: nn.Module, g: Generator, device: torch.device) -> SplitLoss:
        """On one more batch: whether the weights after the last step have a loss."""
        tokens, answers = (part.to(device) for part in self.draw(g))
        model.eval()
        with torch.no_grad():
            loss = self.loss(model(tokens), answers).item()
        model.train()
        return SplitLoss(loss)


def prepare(recipe: RecallStack, data: Path | None) -> Plan:
    """How the models of a job are trained; ``data`` is not used."""
    task = recipe.task
    return Plan(
        RecallProblem(recipe),
        task.batch_size,
        task.n_embd,
        recipe.model_dump(),
        keeps_moments=True,
        stacks=recipe.norm.stacks,
    )
