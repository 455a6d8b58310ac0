"""Training a Transformer: nanoGPT's recipe to its roundings, divergence as a result."""

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
from normscope.train.trainer import Learner, Trainer, clip, learning_rate, make_optimizer, share


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
    stack = recipe("derf", "peri", linear_bias=True, weight_decay=0.1, decays=decays)
    models = [Transformer(stack.model, stack.norm, stack.placement, 6) for _ in range(2)]
    stacked, _ = share(models)
    for p in stacked.values():
        nn.init.uniform_(p, 1.0, 2.0)
    before = {name: p.detach().clone() for name, p in models[1].named_parameters()}
    optimizer = make_optimizer(list(stacked.values()), stack.training)
    optimizer.step([torch.zeros_like(p) for p in optimizer.parameters], 0.5)
    after = {name: p.detach() for name, p in models[1].named_parameters()}
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
    kinds = {name.rpartition(".")[2] for name in every}
    assert kinds == {"weight", "bias", "gain", "alpha", "shift"}


@pytest.mark.parametrize("bound", [1e-3, 1.0, 1e9, math.inf])
def test_each_models_gradients_are_clipped_as_torch_clips_them(bound):
    """One of them is far below the others, one is zero."""
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
    assert [row["step"] for row in learner.curve] == ends
    assert [row["train_loss"] for row in learner.curve] == pytest.approx(
        averages(losses, ends), rel=1e-5
    )
    rates = [learning_rate(end - 1, t) for end in ends]
    assert [row["learning_rate"] for row in learner.curve] == rates


def test_curve_has_validation_losses_where_it_evaluates():
    (learner,) = trained(recipe()).learners
    assert [row["step"] for row in learner.curve if row["val_loss"] is not None] == [5, 10, 11]
    assert learner.val_loss is not None
    assert learner.curve[-1]["val_loss"] == learner.val_loss.mean


def assert_same(a: Trainer, b: Trainer) -> None:
    """To the bit."""
    assert a.step == b.step
    for i, (ours, theirs) in enumerate(zip(a.learners, b.learners, strict=True)):
        pairs = zip(state(a, i).values(), state(b, i).values(), strict=True)
        assert all(torch.equal(p, q) for p, q in pairs)
        assert (str(ours.curve), ours.val_loss) == (str(theirs.curve), theirs.val_loss)
        assert ours.diverged_at == theirs.diverged_at


@pytest.mark.parametrize("seeds", [[7], [7, 8, 9]])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_seeds_decide_every_bit(seeds, precision):
    stack = recipe("batchnorm", dropout=0.2, seeds=seeds, precision=precision)
    runtime = FP32 if precision == "fp32" else BF16
    first = trained(stack, runtime=runtime)
    torch.rand(3)
    assert_same(trained(stack, runtime=runtime), first)


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


def ended(trainer: Trainer) -> Learner:
    """The one model, which has diverged: it has no loss."""
    (learner,) = trainer.learners
    assert learner.val_loss is None
    return learner


def test_a_loss_above_the_bound_is_a_divergence_and_moves_nothing():
    trainer = Trainer(problem_of(recipe(loss_bound=0.01)), [1337], FP32)
    before = state(trainer)
    (loss,) = to_end(trainer)
    learner = ended(trainer)
    assert (learner.diverged_at, trainer.step) == (1, 0)
    assert learner.curve == [{"step": 1, "train_loss": loss}]
    assert all(torch.equal(before[name], t) for name, t in state(trainer).items())


def test_a_loss_that_is_not_finite_is_a_divergence_without_a_number():
    """A rate of 1e30 squares to infinity in fp32."""
    trainer = trained(recipe("none", "none", learning_rate=1e30, warmup_steps=0))
    assert (ended(trainer).diverged_at, trainer.step) == (2, 1)
    assert ended(trainer).curve == [{"step": 2, "train_loss": None}]


def test_a_validation_loss_that_is_not_finite_is_a_divergence():
    trainer = trained(recipe(steps=1, warmup_steps=0, learning_rate=1e38))
    assert ended(trainer).diverged_at == 1
    assert [row["val_loss"] for row in ended(trainer).curve] == [None]


def test_no_clipping_is_clipping_at_infinity():
    off, high = (trained(recipe(grad_clip=bound, seeds=[1, 2])) for bound in (0.0, 1e30))
    assert_same(off, high)


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_shorter_than_a_window_is_named(split):
    short = {"train": DATA.train, "val": DATA.val} | {split: DATA.train[:8]}
    with pytest.raises(
        DatasetError, match=f"the {split} split has 8 tokens; windows of block_size 8"
    ):
        problem_of(recipe(), Dataset(**short, chars=DATA.chars))


def test_a_window_and_its_target_are_enough():
    trainer = trained(recipe(), Dataset(DATA.train[:9], DATA.val[:9], DATA.chars))
    assert trainer.learners[0].val_loss is not None
