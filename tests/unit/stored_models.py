"""The files of a training job for models that were not trained."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from recall_recipes import move
from recipes import DATA

from normscope.measure.windows import SplitLoss
from normscope.nn.model import Transformer
from normscope.train.files import write_models
from normscope.train.recipe import Stack
from normscope.train.runtime import CPU
from normscope.train.trainer import Learner

LOST_AT = 4  # the last step, in which a model without a loss diverged


def write(folder: Path, stack: Stack, losses: Sequence[float | None]) -> Path:
    """Write models whose parameters differ from their start; one without a loss diverged to NaN."""
    learners = []
    for seed, loss in zip(stack.seeds, losses, strict=True):
        torch.manual_seed(seed)
        model = Transformer(stack.model, stack.norm, stack.placement, DATA.vocab_size)
        move(model, seed)
        learner = Learner(model.eval(), seed, CPU)
        learner.curve = [{"step": LOST_AT, "train_loss": loss, "val_loss": loss}]
        if loss is None:
            model.token_embedding.weight.data.fill_(math.nan)
            learner.diverged_at = LOST_AT
        else:
            learner.val_loss = SplitLoss(loss, 0.1)
        learners.append(learner)
    write_models(folder, learners, stack.model_dump())
    return folder
