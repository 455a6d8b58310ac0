"""Training a Transformer: nanoGPT's recipe up to rounding; divergence is a result."""

import math

import pytest
import torch
from recipes import DATA, recipe
from torch import nn
from torch.nn import functional as F
from trainings import BF16, FP32, averages, problem_of, state, to_end, trained

from normscope.io.dataset import Dataset, DatasetError
from normscope.nn.model import Transformer
from normscope.nn.recipe import Placement
from normscope.train.trainer import Trainer, clip, learning_rate


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


@pytest.mark.parametrize("bound", [1e-3, 1.0, 1e9, math.inf])
def test_the_gradients_of_each_model_are_clipped_as_by_torch(bound):
    g = torch.Generator().manual_seed(0)
    scales = torch.tensor([1.0, 1e-4, 0.0, 30.0])
    stacked = [
        scales.view(4, *[1] * len(shape)) * torch.randn(4, *shape, generator=g)
        for shape in ((5, 3), (7,), (), (2, 3, 4))
    ]
    models = [[nn.Parameter(torch.zeros_like(part[i])) for part in stacked] for i in range(4)]
    norms = []
    for i, model in enumerate(models):
        for p, part in zip(model, stacked, strict=True):
            p.grad = part[i].clone()
        norms.append(nn.utils.clip_grad_norm_(model, bound))
    torch.testing.assert_close(clip(stacked, bound), torch.stack(norms))
    for i, model in enumerate(models):
        torch.testing.assert_close([part[i] for part in stacked], [p.grad for p in model])


def test_training_equals_nanogpts_loop():
    stack = recipe()
    t, (seed,) = stack.training, stack.seeds
    torch.manual_seed(seed)
    model = Transformer(stack.model, stack.norm, stack.placement, DATA.vocab_size)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        betas=(0.9, 0.99),
        fused=False,
    )
    tokens = torch.from_numpy(DATA.train.astype("int64"))
    g = torch.Generator().manual_seed(seed)
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
    trainer = Trainer(problem_of(stack), [seed], FP32)
    assert to_end(trainer) == pytest.approx(losses, rel=1e-5)
    for name, p in model.state_dict().items():
        torch.testing.assert_close(state(trainer)[name], p, rtol=1e-4, atol=1e-6)
    ends = [3, 5, 6, 9, 10, 11]  # a row each 3 steps and at each evaluation
    (learner,) = trainer.learners
    curve = {name: [row[name] for row in learner.curve] for name in learner.curve[0]}
    assert curve["step"] == ends
    assert curve["train_loss"] == pytest.approx(averages(losses, ends), rel=1e-5)
    assert curve["learning_rate"] == [learning_rate(end - 1, t) for end in ends]
    evaluated = [end for end, loss in zip(ends, curve["val_loss"], strict=True) if loss is not None]
    assert evaluated == [5, 10, 11]
    assert learner.val_loss is not None
    assert curve["val_loss"][-1] == learner.val_loss.mean


@pytest.mark.parametrize("seeds", [[7], [7, 8, 9]])
@pytest.mark.parametrize("runtime", [FP32, BF16])
def test_seeds_determine_every_bit(seeds, runtime):
    stack = recipe("batchnorm", dropout=0.2, seeds=seeds, precision=runtime.precision)
    first = trained(stack, runtime=runtime)
    torch.rand(3)
    second = trained(stack, runtime=runtime)
    torch.testing.assert_close(second.state(), first.state(), rtol=0, atol=0)


def batches_of(arm: str, placement: Placement) -> torch.Tensor:
    trainer = Trainer(problem_of(recipe(arm, placement, dropout=0.2)), [1337], FP32)
    seen: list[torch.Tensor] = []

    def keep(_: nn.Module, args: tuple[torch.Tensor]) -> None:
        seen.append(args[0])

    trainer.learners[0].model.register_forward_pre_hook(keep)
    for _ in range(3):
        trainer.advance()
    return torch.stack(seen)


def test_arms_of_one_seed_see_the_same_batches():
    batches = batches_of("layernorm", "pre")
    assert torch.equal(batches_of("batchnorm", "post"), batches)
    assert torch.equal(batches_of("none", "none"), batches)
    assert not torch.equal(batches[0], batches[1])


def test_a_loss_above_the_bound_is_a_divergence_and_moves_nothing():
    trainer = Trainer(problem_of(recipe(loss_bound=0.01)), [1337], FP32)
    before = state(trainer)
    (loss,) = to_end(trainer)
    (learner,) = trainer.learners
    assert (learner.diverged_at, learner.val_loss, trainer.step) == (1, None, 0)
    assert learner.curve == [{"step": 1, "train_loss": loss}]
    torch.testing.assert_close(state(trainer), before, rtol=0, atol=0)


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


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_must_be_longer_than_a_window(split):
    tokens = {"train": DATA.train, "val": DATA.val}
    with pytest.raises(
        DatasetError, match=f"the {split} split has 8 tokens; windows of block_size"
    ):
        problem_of(recipe(), Dataset(**tokens | {split: DATA.train[:8]}, chars=DATA.chars))
    trainer = trained(recipe(), Dataset(**tokens | {split: DATA.train[:9]}, chars=DATA.chars))
    assert trainer.learners[0].val_loss is not None
