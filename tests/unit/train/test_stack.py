"""Stacks: every model ends where it would alone, and a diverged model does not move.

The reference is a loop around one model, written out. The two differ by rounding, because sums run
in another order: about 1e-16 in float64 and 1e-7 in fp32, for numbers of about 1. 11 steps of AdamW
amplify it, a thousandfold where a gradient is nearly zero.
"""

import math
from itertools import combinations

import pytest
import torch
from recall_recipes import recall_run
from recipes import recipe
from torch import nn
from trainings import BF16, FP32, Alone, InFloat64, alone, averages, problem_of, state, to_end

from normscope.measure.windows import SplitLoss
from normscope.studies.recall.recipe import RecallStack
from normscope.train.recipe import Stack
from normscope.train.runtime import Runtime
from normscope.train.trainer import Learner, Trainer

SEEDS = [1, 2, 3]
UNTIED = {"tied_head": False, "n_layer": 2}
STACKS: dict[str, Stack | RecallStack] = {
    "layernorm": recipe(seeds=SEEDS),
    "scalenorm, all decay": recipe("scalenorm", "post", decays="all", seeds=SEEDS),
    "manual_l2_logits, peri": recipe("manual_l2_logits", "peri", seeds=SEEDS),
    "derf_scaled, clipped": recipe("derf_scaled", "peri", grad_clip=0.1, seeds=SEEDS),
    "none, unclipped": recipe("none", "none", grad_clip=0.0, seeds=SEEDS),
    "dyt_attention, sgd": recipe("dyt_attention", optimizer="sgd", momentum=0.8, seeds=SEEDS),
    "rmsnorm projected": recipe("rmsnorm_affine", "peri", norm_backward="projected", seeds=SEEDS),
    "final surrogate": recipe(norm_backward="center_scale", surrogates_in="final", seeds=SEEDS),
    "fa, biased": recipe("rmsnorm", "post", feedback="fa", linear_bias=True, seeds=SEEDS, **UNTIED),
    "dfa, dropout": recipe("batchnorm", feedback="dfa", dropout=0.3, seeds=SEEDS, **UNTIED),
    "sigmoid, not causal": recipe(attention="sigmoid", causal=False, seeds=SEEDS),
    "no residual": recipe(residual=False, init="xavier", n_layer=2, seeds=SEEDS),
    "lns": recipe("rmsnorm", "lns", n_layer=3, seeds=SEEDS),
    "mix": recipe("layernorm", "mix", n_layer=2, seeds=SEEDS),
    "hybrid, batchnorm": recipe("batchnorm_plain", "hybrid", seeds=SEEDS),
    "deepnorm": recipe("layernorm", "deepnorm", n_layer=2, seeds=SEEDS),
    "qk by head": recipe("rmsnorm", qk_norm="head", embedding_norm=True, seeds=SEEDS),
    "qk over all": recipe("scalenorm", qk_norm="all", final_norm=False, seeds=SEEDS),
    "muon, untied": recipe("dyt", optimizer="muon", linear_bias=True, seeds=SEEDS, **UNTIED),
    "recall": recall_run("layernorm", seeds=SEEDS),
    "copy": recall_run("batchnorm", "copy", seeds=SEEDS),
}
# BatchNorm removes what these biases add; only its running mean contains it. Their gradients are
# zero in theory and about 1e-17 in float64, from which a step of Adam at a rate of 0.01 makes
# 0.01 * 1e-17 / (1e-17 + 1e-8).
UNSEEN = ("in_proj_bias", "out_proj.bias", "mlp.2.bias", "after.bias", "running_mean")


def assert_ends_as(reference: Alone, ours: Learner, tolerance: float) -> None:
    """In all parameters and buffers, and in the means of the curve."""
    assert ours.diverged_at == reference.diverged_at
    trained, expected = ours.model.state_dict(), reference.model.state_dict()
    unseen = UNSEEN if any(name.endswith("running_mean") for name in expected) else ()
    assert trained.keys() == expected.keys()
    for name, tensor in expected.items():
        bound = 1e-9 if name.endswith(unseen) else tolerance
        torch.testing.assert_close(trained[name], tensor, rtol=bound, atol=bound, msg=name)
    rows = [row for row in ours.curve if "grad_norm" in row]
    ends = [int(row["step"] or 0) for row in rows]
    for column, values in (("train_loss", reference.losses), ("grad_norm", reference.norms)):
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


@pytest.fixture(autouse=True)
def no_rounding(monkeypatch):
    """torch's Muon rounds to bf16; without that it is in float64."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)


@pytest.mark.parametrize("name", STACKS)
def test_every_model_ends_where_it_would_alone(name):
    pairs = in_step_and_alone(STACKS[name], exact=True)
    for ours, reference in pairs:
        assert len(reference.losses) == 11
        assert_ends_as(reference, ours, 1e-12)
        assert ours.val_loss is not None
    weights = [nn.utils.parameters_to_vector(x.model.parameters()).detach() for x, _ in pairs]
    assert min(float((a - b).norm()) for a, b in combinations(weights, 2)) > 0.1


@pytest.mark.parametrize("name", ["layernorm", "rmsnorm projected", "recall"])
def test_in_fp32_it_does_so_up_to_rounding(name):
    """Not with BatchNorm: a gradient that is zero in theory is as large as Adam's eps, 1e-8."""
    for ours, reference in in_step_and_alone(STACKS[name], exact=False):
        assert_ends_as(reference, ours, 1e-5)


@pytest.mark.parametrize("changes", [{"feedback": "dfa", "dropout": 0.3, **UNTIED}])
def test_under_autocast_it_does_so_up_to_the_rounding_of_bf16(changes):
    """8 bits: every product is off by up to 0.4%, and a weight moves by 0.06 in all."""
    stack = recipe(precision="bf16", seeds=SEEDS, **changes)
    for ours, reference in in_step_and_alone(stack, exact=False, runtime=BF16):
        tensors = reference.model.state_dict()
        torch.testing.assert_close(dict(ours.model.state_dict()), dict(tensors), rtol=0, atol=0.03)
        ends = [int(row["step"] or 0) for row in ours.curve]
        losses = [row["train_loss"] for row in ours.curve]
        assert losses == pytest.approx(averages(reference.losses, ends), rel=0.01)


# not higher: there training is chaotic, and rounding grows
WILD = {"learning_rate": 0.1, "min_lr": 0.1, "warmup_steps": 0, "seeds": SEEDS}


@pytest.mark.parametrize("changes", [{}, {"arm": "batchnorm", "dropout": 0.2}])
def test_a_model_that_diverges_stays_where_it_would_alone(changes, monkeypatch):
    """So do its running statistics, which the forward passes of the stack would move."""
    monkeypatch.setattr(InFloat64, "evaluate", lambda *_: SplitLoss(0.0))  # only in training
    free = InFloat64(problem_of(recipe(**changes, **WILD, loss_bound=1e9)))
    tops = {seed: max(alone(free, seed).losses) for seed in SEEDS}
    *_, second, first = sorted(tops, key=lambda seed: tops[seed])
    bound = (tops[first] + tops[second]) / 2  # exceeded by one of them, before its last step
    pairs = in_step_and_alone(recipe(**changes, **WILD, loss_bound=bound), exact=True)
    for ours, reference in pairs:
        assert (reference.diverged_at is not None) == (ours.seed == first)
        assert reference.diverged_at is None or 1 < reference.diverged_at < 11
        assert_ends_as(reference, ours, 1e-11)
        if ours.seed == first:
            assert ours.curve[-1] == {
                "step": reference.diverged_at,
                "train_loss": pytest.approx(tops[first], rel=1e-9),
            }


def poisoned(trainer: Trainer, i: int) -> None:
    with torch.no_grad():
        next(trainer.learners[i].model.parameters())[0] = math.nan


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_a_nan_stays_in_its_model_which_stops_moving(arm):
    problem = InFloat64(problem_of(recipe(arm, "post", seeds=SEEDS)))
    trainer = Trainer(problem, SEEDS, FP32)
    poisoned(trainer, 1)
    trainer.advance()
    before = state(trainer, 1)
    to_end(trainer)
    torch.testing.assert_close(state(trainer, 1), before, rtol=0, atol=0, equal_nan=True)
    diverged = trainer.learners[1]
    assert (diverged.diverged_at, diverged.val_loss) == (1, None)
    assert diverged.curve == [{"step": 1, "train_loss": None}]
    for i in (0, 2):
        assert_ends_as(alone(problem, SEEDS[i]), trainer.learners[i], 1e-12)
