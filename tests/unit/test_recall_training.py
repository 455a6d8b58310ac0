"""Training the decisive test: torch's Adam, the same bits after a stop, divergence as a result."""

import math
from pathlib import Path

import pytest
import safetensors.torch
import torch
from recall_recipes import KINDS, recall_run
from torch import nn
from torch.nn import functional as F

from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import RecallRun
from normscope.studies.recall.tasks import draw
from normscope.studies.recall.trainer import RecallTrainer
from normscope.train.checkpoint import Checkpoints
from normscope.train.resume import run_to_end

EVERY = 4  # steps between checkpoints
ARM = pytest.mark.parametrize(
    "arm", ["layernorm", "batchnorm", "centered_scalenorm_affine", "none"]
)
TASKS = pytest.mark.parametrize("kind", KINDS)


class Interrupted(Exception):
    pass


def go(run: RecallRun, at: Path, stop: int = -1) -> tuple[RecallTrainer, list[str], list[float]]:
    """Train with checkpoints at a place; leave in the middle of things after step ``stop``."""
    said: list[str] = []
    losses: list[float] = []

    def progress(step: int, loss: float) -> None:
        losses.append(loss)
        if step == stop:
            raise Interrupted

    trainer = RecallTrainer(run)
    run_to_end(trainer, Checkpoints(at, "same", EVERY), say=said.append, progress=progress)
    return trainer, said, losses


def weights(model: nn.Module) -> bytes:
    return safetensors.torch.save(model.state_dict())


def assert_same(a: RecallTrainer, b: RecallTrainer) -> None:
    assert weights(a.model) == weights(b.model)
    assert (a.curve, a.step, a.diverged_at) == (b.curve, b.step, b.diverged_at)


@ARM
@TASKS
def test_training_is_torchs_plain_loop_to_the_bit(tmp_path, arm, kind):
    run = recall_run(arm, kind)
    torch.manual_seed(run.seed)
    model = RecallModel(run.task, run.norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=run.learning_rate, fused=True)
    g = torch.Generator().manual_seed(run.seed)
    losses = []
    for _ in range(run.task.steps):
        tokens, answers = draw(run.task, run.task.batch_size, g)
        loss = F.cross_entropy(model(tokens), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    trained, _, seen = go(run, tmp_path)
    assert seen == losses
    assert weights(trained.model) == weights(model)


def test_rows_of_the_curve_average_the_steps_since_the_one_before(tmp_path):
    trainer, _, losses = go(recall_run(), tmp_path)
    spans = [(0, 3), (3, 6), (6, 9), (9, 11)]
    expected = [{"step": b, "train_loss": sum(losses[a:b]) / (b - a)} for a, b in spans]
    assert trainer.curve == expected
    assert trainer.step == 11
    assert trainer.diverged_at is None


@pytest.mark.parametrize(("log_every", "steps"), [(1, list(range(1, 12))), (11, [11]), (20, [11])])
def test_the_last_step_has_a_row_and_is_not_recorded_twice(tmp_path, log_every, steps):
    trainer, _, _ = go(recall_run(log_every=log_every), tmp_path)
    assert [row["step"] for row in trainer.curve] == steps


@ARM
@pytest.mark.parametrize("stop", [1, 5, 8])
def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path, arm, stop):
    run = recall_run(arm, "copy")
    whole, _, _ = go(run, tmp_path / "whole")
    with pytest.raises(Interrupted):
        go(run, tmp_path / "parts", stop)
    torch.rand(5)
    resumed, said, _ = go(run, tmp_path / "parts")
    done = (stop - 1) // EVERY * EVERY
    assert said == ([f"continuing from step {done}"] if done else [])
    assert_same(resumed, whole)


def test_a_loss_above_the_bound_is_a_divergence_and_ends_the_run(tmp_path):
    trainer, _, losses = go(recall_run(loss_bound=0.01), tmp_path)
    assert (trainer.diverged_at, trainer.step, trainer.done) == (1, 0, True)
    assert trainer.curve == [{"step": 1, "train_loss": losses[0]}]
    assert weights(trainer.model) == weights(RecallTrainer(recall_run()).model)


def test_a_loss_that_is_not_finite_is_a_divergence_without_a_number(tmp_path):
    """Adam's first step is the learning rate long: 1e30 squares to infinity in fp32."""
    trainer, _, losses = go(recall_run("none", learning_rate=1e30), tmp_path)
    assert math.isfinite(losses[0])
    assert not math.isfinite(losses[1])
    assert (trainer.diverged_at, trainer.step) == (2, 1)
    assert trainer.curve == [{"step": 2, "train_loss": None}]


def test_weights_that_have_no_finite_loss_at_the_end_are_a_divergence(tmp_path):
    trainer, _, losses = go(recall_run("none", learning_rate=1e30, steps=1), tmp_path)
    tokens, answers = draw(trainer.run.task, 8, torch.Generator().manual_seed(1))
    assert math.isfinite(losses[0])
    assert not F.cross_entropy(trainer.model(tokens), answers).isfinite()
    assert trainer.diverged_at == 1


def test_a_diverged_run_started_again_says_the_same(tmp_path):
    run = recall_run("none", learning_rate=1e30)
    diverged, _, _ = go(run, tmp_path)
    again, said, losses = go(run, tmp_path)
    assert (said, losses) == (["continuing from step 1"], [])
    assert_same(again, diverged)


def batches_of(trainer: RecallTrainer) -> torch.Tensor:
    seen: list[torch.Tensor] = []
    trainer.model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    for _ in range(3):
        trainer.advance()
    return torch.stack(seen)


@TASKS
def test_arms_of_one_seed_see_the_same_batches(kind):
    seen = []
    for arm in ("layernorm", "batchnorm", "none"):
        seen.append(batches_of(RecallTrainer(recall_run(arm, kind))))
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0][0], seen[0][1])
