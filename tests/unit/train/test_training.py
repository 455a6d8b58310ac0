"""Training models, by the script and after they were trained."""

import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
import torch
from recall_recipes import move
from recipes import DATA, recipe
from torch import Generator, nn
from trainings import FP32, InFloat64, alone, averages, problem_of, to_end, train

from normscope.io.dataset import Dataset
from normscope.measure.frozen_norms import FrozenNorm, freeze_norms
from normscope.measure.hooks import norm_layers
from normscope.measure.windows import as_tensor, split_loss
from normscope.nn.model import Transformer
from normscope.train.problem import NextCharacter
from normscope.train.recipe import Stack
from normscope.train.refine import FRESH, RATE, Continuation, refined_losses
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
    trainer = train(stack)
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


OUTPUTS = ("models.safetensors", "config.json", "curves.csv", "metrics.csv")
STEPS = 60  # of a stack of two models, with a checkpoint after each step


class Script(processes.Script):
    """scripts/train.py on a small dataset, into one directory."""

    def __init__(self, data: Path, place: Path) -> None:
        self.out, self.checkpoints = place / "out", place / "checkpoints"
        stack = recipe("batchnorm_plain", dropout=0.1, steps=STEPS, seeds=[2, 1])
        paths = {"data": data, "out": self.out, "checkpoints": self.checkpoints}
        arguments = processes.flags(recipe=stack, checkpoint_every=1, **paths)
        super().__init__("train main", arguments, place / "log")

    def outputs(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in OUTPUTS}

    def newest(self) -> int:
        steps = [int(p.stem.split("-")[1]) for p in self.checkpoints.glob("2x2/step-*")]
        return max(steps, default=0)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> dict[str, bytes]:
    """What the script writes without an interruption, started from the command line."""
    script = Script(data, tmp_path_factory.mktemp("whole"))
    command = [sys.executable, str(script.path), *script.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"step {2 * STEPS}/{2 * STEPS}" in done.stderr
    assert script.newest() == STEPS  # until the outputs are in the store
    return script.outputs()


def test_a_killed_script_started_again_writes_the_same_bytes(tmp_path, data, whole):
    killed = Script(data, tmp_path)
    for step in (1, 20):
        assert killed.kill_when(lambda step=step: killed.newest() >= step) == -signal.SIGKILL
        assert killed.newest() >= step
        assert not killed.out.exists()
    killed.kill_when((killed.out / "models.safetensors").exists)
    killed.succeed()
    assert killed.outputs() == whole


def test_on_a_full_disk_the_script_stops_and_later_continues(tmp_path, data, whole):
    script = Script(data, tmp_path)
    script.kill_when(lambda: script.newest() >= 2)
    kept = script.newest()
    newest = script.checkpoints / f"2x2/step-{kept:08d}.ckpt"
    message = script.fail(largest_file=newest.stat().st_size // 2)
    assert "File too large while writing" in message
    assert "fix that and start again" in message
    assert f"step-{kept + 1:08d}.ckpt" in message
    assert script.newest() == kept
    assert not script.out.exists()
    assert f"continuing from step {kept}\n" in script.succeed()
    assert script.outputs() == whole


STACK = recipe("rmsnorm", train_tokens=200, eval_tokens=30)
REFINED = 7
CPU = torch.device("cpu")


def model(stack: Stack = STACK) -> Transformer:
    torch.manual_seed(0)
    net = Transformer(stack.model, stack.norm, stack.placement, DATA.vocab_size)
    move(net)
    return net.eval()


def without_norms(net: Transformer) -> nn.Module:
    batches = [NextCharacter(STACK, DATA).draw(torch.Generator().manual_seed(1))[0]]
    return freeze_norms(net, list(norm_layers(net)), batches)


def losses(**models: nn.Module) -> dict[str, float]:
    return refined_losses(models, STACK, DATA, REFINED, CPU)


def test_the_loss_is_that_of_nanogpts_loop_at_a_tenth_of_the_peak_rate():
    """On the evaluated part of the text; the training is the model's, at a constant rate."""
    problem = Continuation(model(), STACK, DATA, REFINED)
    t = problem.training
    rates = [learning_rate(step, t) for step in range(REFINED)]
    assert rates == pytest.approx([RATE * STACK.training.learning_rate] * REFINED)
    same = {"batch_size", "weight_decay", "grad_clip", "optimizer", "train_tokens", "eval_tokens"}
    assert t.model_dump(include=same) == STACK.training.model_dump(include=same)
    end = alone(problem, FRESH).model
    expected = split_loss(end, as_tensor(DATA.val[:30]), STACK.model.block_size)
    assert losses(it=model())["it"] == pytest.approx(expected.mean, rel=1e-6)


def test_a_model_and_one_with_frozen_norms_see_the_same_batches_and_are_not_changed():
    net = model()
    other = without_norms(net)
    assert sum(isinstance(module, FrozenNorm) for module in other.modules()) == 3
    before = [{k: v.clone() for k, v in m.state_dict().items()} for m in (net, other)]
    found = losses(whole=net, frozen=other)
    assert losses(again=other, whole=net) == {"again": found["frozen"], "whole": found["whole"]}
    assert found["frozen"] != found["whole"]
    for each, state in zip((net, other), before, strict=True):
        assert not each.training
        assert all(torch.equal(state[name], v) for name, v in each.state_dict().items())
