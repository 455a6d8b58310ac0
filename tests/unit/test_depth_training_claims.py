"""The tutorial on what can be trained: planted losses under which each statement has a verdict."""

import re

import pytest
from depth_evidence import (
    DIVERGED,
    FEW,
    LEVEL,
    SEEDS,
    UNCLEAR,
    UNIGRAM,
    Row,
    evidence,
    losses,
    near,
    rates_of,
)

from normscope.studies.depth import training_claims as t
from normscope.studies.depth.claims import words

NOTHING = "undecided: nothing is learned with or without"
COMPARED = pytest.mark.parametrize(
    ("claim", "worse"),
    [
        (t.residuals_make_depth_trainable, {"residual": False}),
        (t.pre_norm_is_better_when_deep, {"placement": "post"}),
    ],
)
GOOD, BAD = near(2.4), [v + 0.3 for v in near(2.4)]


@COMPARED
def test_a_comparison_of_losses_holds_and_fails_by_seed(claim, worse):
    holds = claim(evidence([], losses(GOOD), losses(BAD, **worse)))
    fails = claim(evidence([], losses(BAD), losses(GOOD, **worse)))
    assert (holds.verdict, fails.verdict) == ("holds at 12 blocks", "fails at 12 blocks")
    assert "12 blocks: 2.70 [" in holds.corrected
    assert "against 2.40 [" in holds.corrected
    assert f"character frequencies alone: {UNIGRAM:.3f}" in holds.corrected


@COMPARED
def test_seeds_are_pairs(claim, worse):
    """Seeds differ by much more than what a twin costs."""
    base = [2.0, 2.5, 3.0, 2.2, 2.7, 3.1]
    cost = [0.05, 0.051, 0.049, 0.05, 0.052, 0.05]
    other = losses([b + d for b, d in zip(base, cost, strict=True)], **worse)
    assert claim(evidence([], losses(base), other)).verdict == "holds at 12 blocks"
    assert claim(evidence([], losses(base), other[::-1])).verdict == "holds at 12 blocks"


@COMPARED
def test_a_comparison_is_left_open_for_a_reason(claim, worse):
    few = evidence([], losses(GOOD[:5]), losses(BAD, **worse))
    assert claim(few).verdict == FEW
    mixed = [g + d for g, d in zip(GOOD, [0.1, -0.1] * 3, strict=True)]
    assert claim(evidence([], losses(GOOD), losses(mixed, **worse))).verdict == UNCLEAR
    for one, other in ((GOOD, [*BAD[:5], None]), ([*GOOD[:5], None], BAD), (GOOD, [None] * 6)):
        found = claim(evidence([], losses(one), losses(other, **worse)))
        assert found.verdict == DIVERGED
        assert "nan" not in found.corrected


@COMPARED
def test_a_comparison_without_its_other_side_has_no_data(claim, worse):
    for e in (
        evidence(),
        evidence([], losses(GOOD)),
        evidence([], losses(BAD, **worse)),
        evidence([], losses(GOOD, depth=4), losses(BAD, depth=12, **worse)),
        evidence([], losses(GOOD), losses(BAD, arm="batchnorm", **worse)),
        evidence([], losses(GOOD), losses(BAD, init="xavier", **worse)),
    ):
        found = claim(e)
        assert found.verdict == "no data"
        assert "nan" not in found.corrected
        assert "None" not in found.corrected


@pytest.mark.parametrize("other", [{"learning_rate": 0.003}, {"warmup_steps": 0}])
def test_residuals_are_compared_at_one_schedule_and_placements_each_at_its_best(other):
    plain = evidence([], losses(GOOD), losses(BAD, residual=False, **other))
    assert t.residuals_make_depth_trainable(plain).verdict == "no data"
    worse, best = [v + 0.1 for v in BAD], losses(BAD, placement="post", **other)
    post = evidence([], losses(GOOD), losses(worse, placement="post"), best)
    found = t.pre_norm_is_better_when_deep(post)
    assert found.verdict == "holds at 12 blocks"
    assert words(BAD, LEVEL) in found.corrected


@COMPARED
def test_the_deepest_depth_that_both_have_is_compared(claim, worse):
    parts = [losses(BAD, depth=4), losses(GOOD, depth=4, **worse)]
    parts += [losses(GOOD), losses(BAD, **worse), losses(BAD, depth=24)]
    found = claim(evidence([], *parts))
    assert found.verdict == "holds at 12 blocks"
    assert found.corrected.startswith("12 blocks: ")


@pytest.mark.parametrize("depth", [99, 100, 128])
def test_what_is_said_of_100_layers_is_true(depth):
    e = evidence([], losses(GOOD, depth=depth), losses(BAD, depth=depth, residual=False))
    found = t.residuals_make_depth_trainable(e)
    assert ("100 layers were not trained" in found.corrected) == (depth < 100)


def gradients(post: list[float], pre: list[float], **changes) -> list[Row]:
    rows = rates_of("last_gradient", post, placement="post", **changes)
    return rows + rates_of("last_gradient", pre, **changes)


def test_post_norms_gradients_are_compared_seed_by_seed_for_each_start():
    claim = t.post_norm_starts_with_large_gradients
    large, small = near(3.0), near(1.0)
    found = claim(evidence(gradients(large, small) + gradients(large, small, init="xavier")))
    assert found.verdict == "holds"
    assert "12 blocks, GPT-2's start: 3.00 [" in found.corrected
    assert "12 blocks, Xavier's start: 3.00 [" in found.corrected
    assert claim(evidence(gradients(small, large))).verdict == "fails"
    both = gradients(large, small) + gradients(small, large, init="xavier")
    assert claim(evidence(both)).verdict == (
        "depends: holds for 12 blocks, GPT-2's start; fails for 12 blocks, Xavier's start"
    )
    scattered = [v * f for v, f in zip(small, [1.5, 0.6] * 3, strict=True)]
    assert claim(evidence(gradients(scattered, small))).verdict == UNCLEAR
    assert claim(evidence(gradients(large[:5], small))).verdict == FEW


@pytest.mark.parametrize("n", [2, SEEDS])
def test_gradients_of_which_nothing_is_left_break_no_table(n):
    """Post-norm's are infinitely larger in one seed, and as large in the others."""
    rows = gradients(near(1.0, n), [0.0, *near(1.0, n)[1:]])
    found = t.post_norm_starts_with_large_gradients(evidence(rows))
    assert found.verdict.startswith("undecided")
    assert not re.search("nan|inf", found.corrected)


def test_post_norms_gradients_without_pre_norms_have_no_data():
    claim = t.post_norm_starts_with_large_gradients
    for rows in ([], gradients(near(3.0), []), gradients([], near(3.0)),
                 gradients(near(3.0), near(1.0), residual=False),
                 gradients(near(3.0), near(1.0), state="trained")):  # fmt: skip
        found = claim(evidence(rows))
        assert (found.verdict, found.corrected) == ("no data", "–")


def test_post_norms_gradients_are_compared_at_one_depth():
    rows = rates_of("last_gradient", near(9.0), placement="post", depth=48)
    rows += gradients(near(0.5), near(1.0))
    found = t.post_norm_starts_with_large_gradients(evidence(rows))
    assert found.verdict == "fails"
    assert found.corrected.startswith("12 blocks, GPT-2's start: 0.500 [")


def warm_up(without: list, with_it: list, **changes) -> list[list[Row]]:
    post = {"placement": "post"} | changes
    return [losses(without, warmup_steps=0, **post), losses(with_it, **post)]


def test_warm_up_is_needed_where_without_it_the_loss_is_higher():
    claim = t.post_norm_needs_warm_up
    found = claim(evidence([], *warm_up(BAD, GOOD)))
    assert found.verdict == "holds"
    assert "12 blocks at 0.001: 0.300 [" in found.corrected
    assert claim(evidence([], *warm_up(GOOD, BAD))).verdict == "fails"
    assert claim(evidence([], *warm_up(GOOD[:5], BAD))).verdict == FEW
    for one, other in (([*BAD[:5], None], GOOD), (BAD, [*GOOD[:5], None]), ([None] * 6, GOOD)):
        assert claim(evidence([], *warm_up(one, other))).verdict == DIVERGED


def test_warm_up_is_judged_at_each_depth_and_rate():
    parts = warm_up(BAD, GOOD) + warm_up(GOOD, BAD, learning_rate=0.003)
    found = t.post_norm_needs_warm_up(evidence([], *parts, *warm_up(BAD, GOOD, depth=4)))
    assert found.verdict == (
        "depends: holds for 4 blocks at 0.001, 12 blocks at 0.001; fails for 12 blocks at 0.003"
    )


def test_the_longest_warm_up_is_compared_with_none():
    parts = [*warm_up(BAD, GOOD), losses(near(9.0), warmup_steps=20, placement="post")]
    found = t.post_norm_needs_warm_up(evidence([], *parts))
    assert "12 blocks at 0.001: 0.300 [" in found.corrected


def test_without_learning_nothing_is_said_of_warm_up():
    flat = near(UNIGRAM, spread=1e-4)
    found = t.post_norm_needs_warm_up(evidence([], *warm_up([v + 0.02 for v in flat], flat)))
    assert found.verdict == NOTHING


@pytest.mark.parametrize("lost", [6.0, 12.0])
def test_where_only_warm_up_lets_it_learn_it_is_needed(lost):
    """Without it the loss is far above that of character frequencies; with it it is 2.4."""
    found = t.post_norm_needs_warm_up(evidence([], *warm_up(near(lost), GOOD)))
    assert found.verdict == "holds"


def test_warm_up_without_its_other_side_has_no_data():
    for parts in (
        [],
        warm_up(BAD, [])[:1],
        warm_up([], GOOD)[1:],
        [losses(BAD, warmup_steps=0), losses(GOOD)],  # pre-norm
        warm_up(BAD, GOOD, residual=False),
        warm_up(BAD, GOOD, init="xavier"),
    ):
        found = t.post_norm_needs_warm_up(evidence([], *parts))
        assert found.verdict == "no data"
        assert found.corrected == "loss without, less that with: –"


def by_rate(slow: list, fast: list, **changes) -> list[list[Row]]:
    """Losses without warm-up at 0.001 and 0.003."""
    at = {"warmup_steps": 0} | changes
    return [losses(slow, **at), losses(fast, **at | {"learning_rate": 0.003})]


POST = {"placement": "post"}
SPREAD = [v + d for v, d in zip(GOOD, near(0.5), strict=True)]


def test_sensitivity_is_the_difference_between_the_best_and_the_worst_rate():
    claim = t.pre_norm_is_less_sensitive
    flat = [v - 0.1 for v in GOOD]  # better by 0.1: a difference has no sign
    found = claim(evidence([], *by_rate(GOOD, flat), *by_rate(GOOD, SPREAD, **POST)))
    assert found.verdict == "holds"
    assert found.corrected.startswith("12 blocks, pre: 0.100 [0.100, 0.100]; post: 0.500 [")
    found = claim(evidence([], *by_rate(GOOD, SPREAD), *by_rate(GOOD, flat, **POST)))
    assert found.verdict == "fails"
    few = claim(evidence([], *by_rate(GOOD[:5], flat[:5]), *by_rate(GOOD, SPREAD, **POST)))
    assert few.verdict == FEW


def test_sensitivity_without_learning_is_no_robustness():
    stuck = near(UNIGRAM, spread=1e-4)
    found = t.pre_norm_is_less_sensitive(
        evidence([], *by_rate(GOOD, SPREAD), *by_rate(stuck, stuck, **POST))
    )
    assert found.verdict.startswith("undecided: where nothing is learned")


@pytest.mark.parametrize("lost", [1, SEEDS])
def test_a_divergence_at_a_rate_is_no_robustness(lost):
    """Post-norm at the higher rate: the others are a selection, and none is no difference."""
    fast = [*GOOD[lost:], *[None] * lost]
    found = t.pre_norm_is_less_sensitive(
        evidence([], *by_rate(GOOD, SPREAD), *by_rate(GOOD, fast, **POST))
    )
    assert found.verdict.startswith("undecided: runs diverged")


def test_one_rate_says_nothing_of_sensitivity():
    parts = [losses(GOOD, warmup_steps=0), losses(GOOD, warmup_steps=0, **POST)]
    assert t.pre_norm_is_less_sensitive(evidence([], *parts)).verdict == "no data"


def test_sensitivity_without_its_other_side_has_no_data():
    for parts in (
        [],
        by_rate(GOOD, SPREAD),
        by_rate(GOOD, SPREAD, **POST),
        [*by_rate(GOOD, SPREAD, depth=4), *by_rate(GOOD, SPREAD, **POST)],
        [*by_rate(GOOD, SPREAD, warmup_steps=40), *by_rate(GOOD, SPREAD, **POST)],
    ):
        found = t.pre_norm_is_less_sensitive(evidence([], *parts))
        assert found.verdict == "no data"
        assert not re.search("nan|None", found.corrected)
