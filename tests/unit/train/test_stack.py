"""Stacks: every model ends where it would alone; one that diverged moves and is moved no more.

Alone is a loop around the model by itself, written out. Between the two are roundings, as sums run
in another order: some 1e-16 in float64 and 1e-7 in fp32, of numbers of about 1, which 11 steps of
AdamW carry on, a thousandfold where a gradient is nearly zero.
"""

import io
import math

import pytest
import torch
from recall_recipes import KINDS, recall_run
from recipes import recipe
from torch import Tensor, nn
from trainings import BF16, FP32, Alone, InFloat64, alone, averages, problem_of, state, to_end

from normscope.measure.windows import SplitLoss
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Placement
from normscope.studies.recall.recipe import RecallStack
from normscope.train.recipe import Stack
from normscope.train.runtime import Runtime
from normscope.train.trainer import Learner, Trainer

SEEDS = [1, 2, 3]
UNTIED = {"tied_head": False, "n_layer": 2}
PLACEMENTS: tuple[Placement, ...] = ("pre", "post", "peri")
PLACED: dict[str, Placement] = {arm: PLACEMENTS[i % len(PLACEMENTS)] for i, arm in enumerate(ARMS)}
PLACED["none"] = "none"
STACKS: dict[str, Stack | RecallStack] = {
    **{arm: recipe(arm, placement, seeds=SEEDS) for arm, placement in PLACED.items()},
    **{
        f"{arm} {rule}": recipe(arm, "peri", norm_backward=rule, seeds=SEEDS)
        for arm in ("layernorm", "rmsnorm_affine")
        for rule in ("center_scale", "projected", "straight_through")
    },
    "final surrogate": recipe(norm_backward="projected", surrogates_in="final", seeds=SEEDS),
    "fa": recipe(feedback="fa", seeds=SEEDS, **UNTIED),
    "fa, biased": recipe("rmsnorm", "post", feedback="fa", linear_bias=True, seeds=SEEDS, **UNTIED),
    "dfa": recipe(feedback="dfa", seeds=SEEDS, **UNTIED),
    "dfa, dropout": recipe("batchnorm", feedback="dfa", dropout=0.3, seeds=SEEDS, **UNTIED),
    "sigmoid": recipe(attention="sigmoid", seeds=SEEDS),
    "sigmoid, not causal": recipe(attention="sigmoid", causal=False, seeds=SEEDS),
    "dropout": recipe(dropout=0.3, seeds=SEEDS),
    "dropout, batchnorm": recipe("batchnorm", "post", dropout=0.3, seeds=SEEDS),
    "untied": recipe("dyt", linear_bias=True, decays="all", seeds=SEEDS, **UNTIED),
    "no residual": recipe(residual=False, init="xavier", n_layer=2, seeds=SEEDS),
    "unclipped": recipe(grad_clip=0.0, seeds=SEEDS),
    **{
        f"{kind} {arm}": recall_run(arm, kind, seeds=SEEDS)
        for kind in KINDS
        for arm in ("layernorm", "rmsnorm_bias", "manual_l2", "scalenorm", "batchnorm", "none")
    },
}
# BatchNorm takes away what these biases add before it, and its running mean keeps it.
# Their gradients are zero in theory and some 1e-17 in float64, of which a step of Adam at a rate of
# 0.01 makes 0.01 * 1e-17 / (1e-17 + 1e-8)
UNSEEN = ("in_proj_bias", "out_proj.bias", "mlp.2.bias", "after.bias", "running_mean")


def assert_ends_as(theirs: Alone, ours: Learner, tolerance: float) -> None:
    """In all parameters and buffers, and in the means of the curve."""
    assert ours.diverged_at == theirs.diverged_at
    trained, expected = ours.model.state_dict(), theirs.model.state_dict()
    unseen = UNSEEN if any(name.endswith("running_mean") for name in expected) else ()
    assert trained.keys() == expected.keys()
    for name, tensor in expected.items():
        bound = 1e-9 if name.endswith(unseen) else tolerance
        torch.testing.assert_close(trained[name], tensor, rtol=bound, atol=bound, msg=name)
    rows = [row for row in ours.curve if "grad_norm" in row]
    ends = [int(row["step"] or 0) for row in rows]
    for column, values in (("train_loss", theirs.losses), ("grad_norm", theirs.norms)):
        expected = averages(values, ends)
        assert [row[column] for row in rows] == pytest.approx(expected, rel=10 * tolerance)


def in_step_and_alone(
    stack: Stack | RecallStack, *, exact: bool, runtime: Runtime = FP32
) -> list[tuple[Learner, Alone]]:
    problem = problem_of(stack)
    problem = InFloat64(problem) if exact else problem
    trainer = Trainer(problem, stack.seeds, runtime)
    to_end(trainer)
    return [
        (learner, alone(problem, learner.seed, runtime=runtime)) for learner in trainer.learners
    ]


def apart(learners: list[Learner]) -> float:
    """The smallest distance between the weights of two models."""
    vectors = [nn.utils.parameters_to_vector(x.model.parameters()).detach() for x in learners]
    return min(float((a - b).norm()) for i, a in enumerate(vectors) for b in vectors[:i])


@pytest.mark.parametrize("name", STACKS)
def test_every_model_ends_where_it_would_alone(name):
    pairs = in_step_and_alone(STACKS[name], exact=True)
    for ours, theirs in pairs:
        assert len(theirs.losses) == 11
        assert_ends_as(theirs, ours, 1e-12)
        assert ours.val_loss is not None
    assert apart([ours for ours, _ in pairs]) > 0.1


@pytest.mark.parametrize(
    "name", ["layernorm", "rmsnorm_affine projected", "dfa", "dropout", "recall layernorm"]
)
def test_in_fp32_it_does_so_to_its_roundings(name):
    """But for BatchNorm's: a gradient that is zero in theory is as large as Adam's eps, 1e-8."""
    for ours, theirs in in_step_and_alone(STACKS[name], exact=False):
        assert_ends_as(theirs, ours, 1e-5)


@pytest.mark.parametrize("changes", [{}, {"feedback": "dfa", "dropout": 0.3, **UNTIED}])
def test_under_autocast_it_does_so_to_those_of_bf16(changes):
    """8 bits: every product is off by up to 0.4%, and a weight moves by 0.06 in all."""
    stack = recipe(precision="bf16", seeds=SEEDS, **changes)
    for ours, theirs in in_step_and_alone(stack, exact=False, runtime=BF16):
        for name, tensor in theirs.model.state_dict().items():
            torch.testing.assert_close(ours.model.state_dict()[name], tensor, rtol=0, atol=0.03)
        ends = [int(row["step"] or 0) for row in ours.curve]
        losses = [row["train_loss"] for row in ours.curve]
        assert losses == pytest.approx(averages(theirs.losses, ends), rel=0.01)


# not higher: training is chaotic where it is wild, and rounding grows
WILD = {"learning_rate": 0.1, "min_lr": 0.1, "warmup_steps": 0, "seeds": SEEDS}


@pytest.mark.parametrize("changes", [{}, {"arm": "batchnorm", "dropout": 0.2}])
def test_a_model_that_diverges_stays_where_it_would_alone(changes, monkeypatch):
    """Running statistics too, which the forward passes of the others would move."""
    monkeypatch.setattr(InFloat64, "evaluate", lambda *_: SplitLoss(0.0))  # in training alone
    free = InFloat64(problem_of(recipe(**changes, **WILD, loss_bound=1e9)))
    tops = {seed: max(alone(free, seed).losses) for seed in SEEDS}
    *_, second, first = sorted(tops, key=lambda seed: tops[seed])
    bound = (tops[first] + tops[second]) / 2  # one is beyond it, on the way
    pairs = in_step_and_alone(recipe(**changes, **WILD, loss_bound=bound), exact=True)
    for ours, theirs in pairs:
        assert (theirs.diverged_at is not None) == (ours.seed == first)
        assert theirs.diverged_at is None or 1 < theirs.diverged_at < 11
        assert_ends_as(theirs, ours, 1e-11)
        if ours.seed == first:
            assert ours.curve[-1] == {
                "step": theirs.diverged_at,
                "train_loss": pytest.approx(tops[first], rel=1e-9),
            }


def poisoned(trainer: Trainer, i: int) -> None:
    with torch.no_grad():
        next(trainer.learners[i].model.parameters())[0] = math.nan


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_a_nan_in_one_model_reaches_no_other_and_moves_nothing(arm):
    problem = InFloat64(problem_of(recipe(arm, "post", seeds=SEEDS)))
    trainer = Trainer(problem, SEEDS, FP32)
    poisoned(trainer, 1)
    trainer.advance()
    before = state(trainer, 1)
    to_end(trainer)
    for name, tensor in state(trainer, 1).items():
        assert torch.equal(tensor.nan_to_num(7), before[name].nan_to_num(7)), name
    diverged = trainer.learners[1]
    assert (diverged.diverged_at, diverged.val_loss) == (1, None)
    assert diverged.curve == [{"step": 1, "train_loss": None}]
    for i in (0, 2):
        assert_ends_as(alone(problem, SEEDS[i]), trainer.learners[i], 1e-12)


def test_a_validation_loss_above_the_bound_ends_one_model_alone():
    """After step 5, which it has taken; what comes later moves it no more."""
    problem = InFloat64(problem_of(recipe("batchnorm", seeds=SEEDS)))
    trainer = Trainer(problem, SEEDS, FP32)
    for _ in range(4):
        trainer.advance()
    with torch.no_grad():  # seen in evaluation alone
        statistics = dict(trainer.learners[1].model.named_buffers())
        statistics["final_norm.running_mean"].fill_(1e3)
    trainer.advance()
    before = state(trainer, 1)
    to_end(trainer)
    assert [learner.diverged_at for learner in trainer.learners] == [None, 5, None]
    assert [learner.curve[-1]["step"] for learner in trainer.learners] == [11, 5, 11]
    assert trainer.learners[1].curve[-1]["val_loss"] is None
    assert all(torch.equal(before[name], t) for name, t in state(trainer, 1).items())
    for i in (0, 2):
        assert_ends_as(alone(problem, SEEDS[i]), trainer.learners[i], 1e-12)


def test_a_step_returns_the_mean_loss_of_the_models_that_have_not_diverged():
    problem = problem_of(recipe(seeds=SEEDS))
    trainer = Trainer(problem, SEEDS, FP32)
    losses = [alone(problem, seed).losses for seed in SEEDS]
    assert trainer.advance() == pytest.approx(sum(own[0] for own in losses) / 3, rel=1e-6)
    poisoned(trainer, 0)
    assert math.isnan(trainer.advance())
    assert trainer.advance() == pytest.approx((losses[1][2] + losses[2][2]) / 2, rel=1e-6)
    poisoned(trainer, 1)
    poisoned(trainer, 2)
    trainer.advance()
    assert (trainer.done, trainer.step) == (True, 3)


def test_a_state_is_as_large_as_its_models():
    """fp32, and AdamW has two moments of each parameter; views of one memory are stored once."""
    trainer, buffer = Trainer(problem_of(recipe(seeds=SEEDS)), SEEDS, FP32), io.BytesIO()
    trainer.advance()
    torch.save(trainer.state(), buffer)
    models = [learner.model for learner in trainer.learners]
    entries = sum(p.numel() for model in models for p in model.parameters())
    buffers = sum(b.numel() for model in models for b in model.buffers())
    generators = 6 * 5056  # of 624 words each
    assert len(buffer.getvalue()) < 4 * (3 * entries + buffers) + generators + 50_000


def test_models_of_a_stack_share_no_memory():
    trainer = Trainer(problem_of(recipe("batchnorm", seeds=SEEDS)), SEEDS, FP32)
    to_end(trainer)
    before = [state(trainer, i) for i in range(3)]
    model = trainer.learners[1].model
    x = torch.zeros(3, 8, dtype=torch.long)
    model(x).square().sum().backward()
    with torch.no_grad():
        for p in model.parameters():
            assert p.grad is not None
            p.sub_(p.grad)

    def same(i: int) -> dict[str, bool]:
        now: dict[str, Tensor] = state(trainer, i)
        return {name: torch.equal(tensor, now[name]) for name, tensor in before[i].items()}

    assert all(same(0).values())
    assert all(same(2).values())
    assert not any(same(1).values())
