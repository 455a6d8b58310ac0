"""Training: nanoGPT's recipe, the same bits after every interruption, divergence as a result."""

import math
from pathlib import Path

import pytest
import torch
from recipes import DATA, recipe
from torch import nn
from torch.nn import functional as F

from normscope.io.dataset import Dataset, DatasetError
from normscope.nn.model import Transformer
from normscope.nn.recipe import Placement
from normscope.train.checkpoint import Checkpoints
from normscope.train.recipe import Run
from normscope.train.runtime import Runtime
from normscope.train.trainer import Result, Trainer, learning_rate, make_optimizer, train

FP32 = Runtime("fp32", 1, "highest", 0.0)
BF16 = Runtime("bf16", 1, "highest", 0.0)
EVERY = 4  # steps between checkpoints


class Interrupted(Exception):
    pass


def go(
    run: Run, at: Path, stop: int = -1, runtime: Runtime = FP32, data: Dataset = DATA
) -> tuple[Result, list[str]]:
    """Train with checkpoints at a place; leave in the middle of things after step ``stop``."""
    said: list[str] = []

    def progress(step: int, loss: float) -> None:
        if step == stop:
            raise Interrupted

    checkpoints = Checkpoints(at, "same", EVERY)
    return train(run, data, runtime, checkpoints, say=said.append, progress=progress), said


def assert_same(a: Result, b: Result) -> None:
    ours, theirs = a.model.state_dict(), b.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert (a.curve, a.val_loss, a.diverged_at) == (b.curve, b.val_loss, b.diverged_at)


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


def decayed(decays: str) -> tuple[set[str], set[str]]:
    """Names of all parameters, and of those that a step without gradients shrinks by its decay."""
    run = recipe("derf", "peri", linear_bias=True, weight_decay=0.1, decays=decays)
    model = Transformer(run.model, run.norm, run.placement, 6)
    for p in model.parameters():
        nn.init.uniform_(p, 1.0, 2.0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = make_optimizer(model, run.training)
    optimizer.step([torch.zeros_like(p) for p in optimizer.parameters], 0.5)
    after = {name: p.detach() for name, p in model.named_parameters()}
    shrunk = {name for name in before if not torch.equal(after[name], before[name])}
    for name in shrunk:
        torch.testing.assert_close(after[name], (1 - 0.5 * 0.1) * before[name])
    return set(before), shrunk


def test_matrices_decay_and_gains_biases_and_scalars_do_not():
    every, shrunk = decayed("matrices")
    matrices = ("embedding.weight", "qkv.weight", "proj.weight", "fc.weight")
    assert shrunk == {name for name in every if name.endswith(matrices)}


def test_gains_biases_and_scalars_decay_too_where_all_decays():
    every, shrunk = decayed("all")
    assert shrunk == every
    assert {name.rpartition(".")[2] for name in every} == {
        "weight",
        "bias",
        "gain",
        "alpha",
        "shift",
    }


def test_training_equals_nanogpts_loop(tmp_path):
    run = recipe()
    t = run.training
    torch.manual_seed(run.seed)
    model = Transformer(run.model, run.norm, run.placement, DATA.vocab_size)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        betas=(0.9, 0.99),
        fused=False,
    )
    tokens = torch.from_numpy(DATA.train.astype("int64"))
    g = torch.Generator().manual_seed(run.seed)
    losses = []
    for it in range(t.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(it, t)
        ix = torch.randint(len(tokens) - 8, (3,), generator=g)
        x = torch.stack([tokens[i : i + 8] for i in ix])
        y = torch.stack([tokens[i + 1 : i + 9] for i in ix])
        loss = F.cross_entropy(model(x).view(-1, DATA.vocab_size), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    end, _ = go(run, tmp_path)
    for name, p in model.state_dict().items():
        torch.testing.assert_close(end.model.state_dict()[name], p, rtol=1e-4, atol=1e-6)
    rows = {0: 3, 3: 5, 5: 6, 6: 9, 9: 10, 10: 11}  # a row each 3 steps and at each evaluation
    means = [sum(losses[i:j]) / (j - i) for i, j in rows.items()]
    assert [row["step"] for row in end.curve] == list(rows.values())
    assert [row["train_loss"] for row in end.curve] == pytest.approx(means, rel=1e-5)


def test_curve_has_validation_losses_where_it_evaluates(tmp_path):
    end, _ = go(recipe(), tmp_path)
    assert [row["step"] for row in end.curve if row["val_loss"] is not None] == [5, 10, 11]
    assert end.val_loss is not None
    assert end.curve[-1]["val_loss"] == end.val_loss.mean


@pytest.mark.parametrize("change", [{}, {"dropout": 0.2}])
def test_a_seed_decides_every_bit(tmp_path, change):
    first, _ = go(recipe(**change), tmp_path / "a")
    torch.rand(3)
    again, _ = go(recipe(**change), tmp_path / "b")
    assert_same(first, again)


def batches_of(arm: str, placement: Placement) -> torch.Tensor:
    trainer = Trainer(recipe(arm, placement, dropout=0.2), DATA, FP32)
    seen: list[torch.Tensor] = []

    def keep(_: nn.Module, args: tuple[torch.Tensor]) -> None:
        seen.append(args[0])

    trainer.model.register_forward_pre_hook(keep)
    for _ in range(3):
        trainer.advance()
    return torch.stack(seen)


def test_arms_of_one_seed_see_the_same_batches():
    batches = batches_of("layernorm", "pre")
    assert torch.equal(batches_of("batchnorm", "post"), batches)
    assert torch.equal(batches_of("none", "none"), batches)
    assert not torch.equal(batches[0], batches[1])


@pytest.mark.parametrize("stop", [1, 5, 8])
@pytest.mark.parametrize(
    ("run", "runtime"),
    [
        (recipe("layernorm", "pre", dropout=0.3), FP32),
        (recipe("batchnorm", "post"), FP32),
        (recipe("rmsnorm", "peri", precision="bf16"), BF16),
        (recipe(feedback="fa", tied_head=False), FP32),
        (recipe(feedback="dfa", tied_head=False), FP32),
        (recipe("rmsnorm", norm_backward="projected", decays="all"), FP32),
    ],
    ids=["dropout", "batchnorm", "bf16", "fa", "dfa", "surrogate"],
)
def test_an_interrupted_run_ends_with_the_same_bits(tmp_path, run, runtime, stop):
    whole, _ = go(run, tmp_path / "whole", runtime=runtime)
    with pytest.raises(Interrupted):
        go(run, tmp_path / "parts", stop, runtime)
    torch.rand(5)
    resumed, said = go(run, tmp_path / "parts", runtime=runtime)
    done = (stop - 1) // EVERY * EVERY
    assert said == ([f"continuing from step {done}"] if done else [])
    assert_same(resumed, whole)


def test_a_finished_run_started_again_trains_no_step(tmp_path):
    whole, _ = go(recipe(), tmp_path)
    again, said = go(recipe(), tmp_path, stop=11)
    assert said == ["continuing from step 11"]
    assert_same(again, whole)


def test_a_loss_above_the_bound_is_a_divergence(tmp_path):
    end, said = go(recipe(loss_bound=0.01), tmp_path)
    assert (end.diverged_at, end.val_loss) == (1, None)
    assert [row["step"] for row in end.curve] == [1]
    assert said == ["diverged at step 1: the loss is not finite or above the bound"]


def test_a_validation_loss_that_is_not_finite_is_a_divergence(tmp_path):
    end, _ = go(recipe(steps=1, warmup_steps=0, learning_rate=1e38), tmp_path)
    assert (end.diverged_at, end.val_loss) == (1, None)
    assert [row["val_loss"] for row in end.curve] == [None]


@pytest.mark.parametrize(
    ("run", "steps_back"),
    [
        # a step whose loss diverges is not taken; a validation follows a step
        (recipe("none", "none", steps=200, learning_rate=100.0), 1),
        (recipe(steps=1, warmup_steps=0, learning_rate=1e38), 0),
    ],
    ids=["training", "validation"],
)
def test_a_diverged_run_started_again_says_the_same(tmp_path, run, steps_back):
    end, _ = go(run, tmp_path)
    again, said = go(run, tmp_path)
    assert (again.diverged_at, again.val_loss) == (end.diverged_at, None)
    assert str(again.curve) == str(end.curve)
    assert end.diverged_at is not None
    assert said[0] == f"continuing from step {end.diverged_at - steps_back}"


def test_no_clipping_is_clipping_at_infinity(tmp_path):
    off, _ = go(recipe(grad_clip=0.0), tmp_path / "off")
    high, _ = go(recipe(grad_clip=1e30), tmp_path / "high")
    low, _ = go(recipe(grad_clip=0.01, weight_decay=0.1), tmp_path / "low")
    assert_same(off, high)
    assert off.val_loss != low.val_loss


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_shorter_than_a_window_is_named(tmp_path, split):
    short = {"train": DATA.train, "val": DATA.val} | {split: DATA.train[:8]}
    data = Dataset(**short, chars=DATA.chars)
    with pytest.raises(
        DatasetError, match=f"the {split} split has 8 tokens; windows of block_size 8"
    ):
        go(recipe(), tmp_path, data=data)


def test_a_window_and_its_target_are_enough(tmp_path):
    end, _ = go(recipe(), tmp_path, data=Dataset(DATA.train[:9], DATA.val[:9], DATA.chars))
    assert end.val_loss is not None
