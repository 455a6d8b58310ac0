"""Further training of a trained Transformer, with its norms or without them."""

import copy
from collections.abc import Mapping
from math import nan

import torch
from torch import nn

from normscope.io.dataset import Dataset
from normscope.nn.model import Transformer
from normscope.train.problem import NextCharacter
from normscope.train.recipe import Stack, Training
from normscope.train.runtime import Runtime
from normscope.train.trainer import Trainer

FRESH = 2**32 - 1  # the seed of the batches, which no training of this project has
RATE = 0.1  # of the peak learning rate: that at which a training with nanoGPT's schedule ends


class Continuation(NextCharacter):
    """The next character, learned further by a copy of a model.

    Args:
        model: Where the training begins.
        stack: The recipe of the model.
        data: The text that it learned.
        steps: Further steps, at a constant learning rate.
    """

    def __init__(self, model: nn.Module, stack: Stack, data: Dataset, steps: int) -> None:
        t = stack.training
        rate = RATE * t.learning_rate
        changes = {"learning_rate": rate, "min_lr": rate, "warmup_steps": 0}
        changes |= {"steps": steps, "eval_every": steps, "records_scales": False}
        training = Training.model_validate(t.model_dump() | changes)
        super().__init__(stack.model_copy(update={"training": training}), data)
        self.model = model

    def build(self) -> Transformer:
        return copy.deepcopy(self.model).train()  # pyright: ignore[reportReturnType]


def refined_losses(
    models: Mapping[str, nn.Module], stack: Stack, data: Dataset, steps: int, device: torch.device
) -> dict[str, float]:
    """The validation loss in nats of each model after further steps; NaN if it diverges.

    All see the same batches, which are others than those of the training.

    Args:
        models: By name; they are not changed.
        stack, data, steps: As ``Continuation`` takes them.
        device: Of the models.
    """
    matmul = torch.get_float32_matmul_precision()
    runtime = Runtime("fp32", torch.get_num_threads(), matmul, nan, device)
    losses = {}
    for name, model in models.items():
        problem = Continuation(model, stack, data, steps)
        trainer = Trainer(problem, [FRESH], runtime)
        while not trainer.is_done:
            trainer.advance()
        (learner,) = trainer.learners
        losses[name] = learner.val_loss.mean if learner.val_loss else nan
    return losses
