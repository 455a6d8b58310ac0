"""Training a Transformer: nanoGPT's recipe up to rounding; divergence is a result."""

import math

import numpy as np
import pytest
import torch
from recipes import DATA, recipe
from torch import Generator
from trainings import FP32, InFloat64, alone, averages, problem_of, to_end, trained

from normscope.io.dataset import Dataset
from normscope.train.trainer import Trainer, learning_rate


def test_learning_rate_is_nanogpts():
    """nanoGPT, train.py, get_lr, with lr_decay_iters = max_iters."""

    def get_lr(it: int) -> float:
        learning_rate, min_lr, warmup_iters, lr_decay_iters = 1e-3, 1e-4, 100, 2000
        if it < warmup_iters:
            return learning_rate * (it + 1) / (warmup_iters + 1)
        if it > lr_decay_iters:
            return min_lr
        decay_ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
        coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
        return min_lr + coeff * (learning_rate - min_lr)

    t = recipe(steps=2000, warmup_steps=100, learning_rate=1e-3, min_lr=1e-4).training
    assert [learning_rate(i, t) for i in range(2001)] == pytest.approx(
        [get_lr(i) for i in range(2001)], rel=1e-12
    )
    assert learning_rate(100, t) == 1e-3
    assert learning_rate(2000, t) == pytest.approx(1e-4, rel=1e-12)


def test_a_curve_has_the_losses_of_nanogpts_loop_its_rates_and_evaluations():
    stack = recipe()
    problem, (seed,) = problem_of(stack), stack.seeds
    trainer = Trainer(problem, [seed], FP32)
    losses = alone(InFloat64(problem), seed).losses
    assert to_end(trainer) == pytest.approx(losses, rel=1e-5)
    ends = [3, 5, 6, 9, 10, 11]  # one row every 3 steps and one per evaluation
    (learner,) = trainer.learners
    curve = {name: [row[name] for row in learner.curve] for name in learner.curve[0]}
    assert curve["step"] == ends
    assert curve["train_loss"] == pytest.approx(averages(losses, ends), rel=1e-5)
    rates = [learning_rate(end - 1, stack.training) for end in ends]
    assert curve["learning_rate"] == rates
    evaluated = [end for end, loss in zip(ends, curve["val_loss"], strict=True) if loss is not None]
    assert evaluated == [5, 10, 11]
    assert learner.val_loss is not None
    assert curve["val_loss"][-1] == learner.val_loss.mean


@pytest.mark.parametrize(
    ("stack", "diverged_at", "step"),
    [
        # a rate of 1e30 squares to infinity in fp32: seen in the training loss of the second step,
        (recipe("none", "none", learning_rate=1e30, warmup_steps=0), 2, 1),
        # or in the validation loss after the only step
        (recipe(steps=1, warmup_steps=0, learning_rate=1e38), 1, 1),
    ],
    ids=["training", "validation"],
)
def test_a_loss_that_is_not_finite_is_a_divergence_without_a_number(stack, diverged_at, step):
    trainer = trained(stack)
    (learner,) = trainer.learners
    assert (learner.diverged_at, learner.val_loss, trainer.step) == (diverged_at, None, step)
    assert learner.curve[-1]["step"] == diverged_at
    assert learner.curve[-1].get("val_loss") is None


@pytest.mark.parametrize(("train_tokens", "seen"), [(20, 20), (None, 40), (99, 40)])
def test_batches_are_of_the_first_tokens_of_the_split(train_tokens, seen):
    """Inputs and targets of many steps, in a text whose tokens are all different."""
    text = Dataset(train=np.arange(40, dtype=np.uint16), val=DATA.val, chars=DATA.chars)
    problem, g = problem_of(recipe(train_tokens=train_tokens), text), Generator().manual_seed(0)
    drawn = torch.cat([part for _ in range(99) for part in problem.draw(g)])
    assert drawn.unique().tolist() == list(range(seen))
