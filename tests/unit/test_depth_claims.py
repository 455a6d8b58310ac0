"""The tutorial on depth: planted networks and losses, and the verdict of every statement."""

import math

import pytest
from depth_evidence import SEEDS, UNIGRAM, Row, losses, near, rates_of, tables
from statements import CLAIMS, FEW, SELECTION, UNCLEAR, found, verdict

# a statement, its measure, whether with residual connections, values of which it holds and fails
CASES = [
    ("decay_rate", "gradient_rate", False, 0.8, 0.5),
    ("decay_rate", "gradient_rate", False, 0.79, 0.97),
    ("vanishes", "gradient_kept", False, 0.05, 0.2),
    ("stays", "gradient_kept", True, 1.0, 3.0),
    ("stays", "gradient_kept", True, 0.75, 0.2),
    ("identity_path", "smallest", True, 0.8, 0.2),
    ("healthy_range", "stream_growth", True, 1.5, 4.0),
]
CASE = pytest.mark.parametrize(("key", "measure", "residual", "good", "bad"), CASES)


def beyond(key: str, by: float) -> float:
    """A value so far outside what a statement asks for, in proportion; below 0 inside."""
    entry = CLAIMS.claims[key]
    if entry.direction == "within":
        assert isinstance(entry.margin, float)
        return entry.limit * entry.margin * (1 + by)
    return entry.limit * (1 + by if entry.direction == "less" else 1 - by)


@CASE
def test_six_seeds_decide_only_if_all_agree(key, measure, residual, good, bad):
    """One that is beyond the bound by little leaves 2 of 64 flips to each side."""

    def reads(values):
        (case,) = found(key, tables(rates_of(measure, values, residual=residual))).cases.values()
        return case

    assert reads(near(good)).reading() == "holds"
    assert reads(near(bad)).reading() == "fails"
    assert reads(near(good)[:5]).reading() == FEW
    for by, said, p in ((-1e-3, "holds", 1 / 64), (1e-3, UNCLEAR, 2 / 64)):
        case = reads([*near(good)[:5], beyond(key, by)])
        assert (case.reading(), case.p_holds, case.n, case.unit) == (said, p, 6, "model")


@CASE
def test_every_kind_of_network_is_judged_by_itself(key, measure, residual, good, bad):
    """At its deepest (vanishing: at the shallowest of 10 blocks or more); other norms are not."""

    def at(value: float, **changes) -> list[Row]:
        return rates_of(measure, near(value), residual=residual, **changes)

    rows = at(good) + at(bad, placement="post") + at(bad, init="xavier")
    rows += at(bad, arm="batchnorm") + at(bad, depth=4)
    rows += rates_of(measure, near(bad), residual=not residual, placement="peri")
    said = "fails for pre-norm, Xavier's start, 12 blocks, post-norm, 12 blocks"
    assert set(verdict(key, tables(rows)).split("; ")) >= {"depends: holds for pre-norm, 12 blocks"}
    cases = found(key, tables(rows)).cases
    assert {name for name, case in cases.items() if case.reading() == "fails"} == {
        "pre-norm, Xavier's start, 12 blocks",
        "post-norm, 12 blocks",
    }, said
    deeper = found(key, tables(at(good) + at(bad, depth=48))).cases
    assert list(deeper) == ["pre-norm, 12 blocks" if key == "vanishes" else "pre-norm, 48 blocks"]
    assert verdict(key, tables(at(math.nan))) == verdict(key, tables()) == "no data"


def test_trained_networks_stand_beside_those_at_the_start():
    rows = rates_of("gradient_kept", near(1.0)) + rates_of(
        "gradient_kept", near(3), state="trained"
    )
    cases = found("stays", tables(rows)).cases
    reads = {name: case.reading() for name, case in cases.items()}
    assert reads == {"pre-norm, 12 blocks": "holds", "pre-norm, 12 blocks, trained": "fails"}
    none = {"arm": "none", "placement": "none"}
    assert list(found("stays", tables(rates_of("gradient_kept", near(3.0), **none))).cases) == [
        "no norm, 12 blocks"
    ]
    growth = rates_of("stream_growth", near(9.0), **none)
    assert verdict("healthy_range", tables(growth)) == "no data"  # of LayerNorm


def test_shallow_networks_say_nothing_of_vanishing():
    rows = rates_of("gradient_kept", near(0.05), residual=False, depth=9)
    assert verdict("vanishes", tables(rows)) == "no data"


@pytest.mark.parametrize(("value", "reads"), [(0.0, "holds"), (math.inf, "fails")])
def test_a_factor_of_0_or_without_bound_is_judged_too(value, reads):
    rows = rates_of("gradient_kept", [value] * SEEDS, residual=False)
    assert verdict("vanishes", tables(rows)) == reads


@pytest.mark.parametrize(("largest", "reads"), [(10.0, "fails"), (20.0, "no data")])
def test_a_lost_direction_is_0_where_that_is_known(largest, reads):
    """Below 3% of the largest a value counts as 0: of 20 that may be 0.6, above the bound."""
    rows = rates_of("smallest", [0.0] * SEEDS)
    rows = [row | {"largest": largest} for row in rows]
    claim = found("identity_path", tables(rows))
    assert (claim.verdict, list(claim.cases)) == (reads, ["pre-norm, 12 blocks"])


GOOD, BAD = near(2.4), [v + 0.3 for v in near(2.4)]
STUCK = near(UNIGRAM - 0.05, spread=1e-4)
COMPARED = pytest.mark.parametrize(
    ("key", "worse"),
    [("trainable", {"residual": False}), ("pre_beats_post", {"placement": "post"})],
)
POST = {"placement": "post"}


@COMPARED
def test_losses_are_compared_by_seed_at_the_deepest_both_have(key, worse):
    def case(other: list, one: list = GOOD):
        parts = [losses(one), losses(other, **worse), losses(GOOD, depth=48)]
        return found(key, tables([], *parts, losses(GOOD, depth=4), losses(GOOD, depth=4, **worse)))

    holds = case(BAD).cases["12 blocks"]
    assert (holds.reading(), holds.p_holds, holds.effect) == ("holds", 1 / 64, pytest.approx(0.3))
    assert case(GOOD, BAD).cases["12 blocks"].reading() == "fails"
    assert case(BAD[:5]).cases["12 blocks"].reading() == FEW
    assert case([*BAD[:5], None]).cases["12 blocks"].reading() == SELECTION
    stuck = case([v + 0.1 for v in STUCK], STUCK).cases["12 blocks"]
    assert stuck.reading() == "undecided: nothing is learned either way"
    assert verdict(key, tables([], losses(GOOD))) == "no data"


@pytest.mark.parametrize(("depth", "n"), [(99, 2), (100, 1)])
def test_fewer_than_100_layers_leave_it_open_whether_100_can_be_trained(depth, n):
    parts = losses(GOOD, depth=depth), losses(BAD, depth=depth, residual=False)
    cases = found("trainable", tables([], *parts)).cases
    assert (len(cases), cases[f"{depth} blocks"].reading()) == (n, "holds")


def test_residuals_are_compared_at_one_schedule_and_placements_each_at_its_best():
    other = {"learning_rate": 0.003}
    plain = tables([], losses(GOOD), losses(BAD, residual=False, **other))
    assert verdict("trainable", plain) == "no data"
    best = losses(BAD, **POST, **other)
    post = tables([], losses(GOOD), losses([v + 1 for v in BAD], **POST), best)
    assert found("pre_beats_post", post).cases["12 blocks"].effect == pytest.approx(0.3)


def test_post_norms_gradients_are_compared_by_seed_for_each_start():
    def gradients(post: list[float], **changes) -> list[Row]:
        rows = rates_of("last_gradient", post, placement="post", **changes)
        return rows + rates_of("last_gradient", near(1.0), **changes)

    rows = gradients(near(3.0)) + gradients(near(0.5), init="xavier")
    cases = found("post_large_gradients", tables(rows)).cases
    assert {name: case.reading() for name, case in cases.items()} == {
        "12 blocks": "holds",
        "12 blocks, Xavier's start": "fails",
    }
    assert cases["12 blocks"].effect == pytest.approx(3)
    trained = gradients(near(3.0), state="trained")
    assert verdict("post_large_gradients", tables(trained)) == "no data"


def warm_up(without: list, with_it: list, **changes) -> list[list[Row]]:
    post = POST | changes
    return [losses(without, warmup_steps=0, **post), losses(with_it, **post)]


def test_warm_up_is_judged_at_each_depth_and_rate_against_the_longest():
    parts = [*warm_up(BAD, GOOD), *warm_up(GOOD, BAD, learning_rate=0.003)]
    parts += [losses(near(9.0), warmup_steps=20, **POST), *warm_up(BAD, GOOD, depth=4)]
    cases = found("post_warm_up", tables([], *parts)).cases
    assert {name: case.reading() for name, case in cases.items()} == {
        "12 blocks, rate 0.001": "holds",
        "12 blocks, rate 0.003": "fails",
        "4 blocks, rate 0.001": "holds",
    }
    assert cases["12 blocks, rate 0.001"].effect == pytest.approx(0.3)
    stuck = tables([], *warm_up([v + 0.02 for v in STUCK], STUCK))
    assert verdict("post_warm_up", stuck) == "undecided: nothing is learned with or without"
    alone = tables([], *warm_up(near(6.0), GOOD))  # learned with it alone
    assert verdict("post_warm_up", alone) == "holds"
    assert verdict("post_warm_up", tables([], losses(BAD, warmup_steps=0, **POST))) == "no data"


def by_rate(slow: list, fast: list, **changes) -> list[list[Row]]:
    at = {"warmup_steps": 0} | changes
    return [losses(slow, **at), losses(fast, **at | {"learning_rate": 0.003})]


def test_sensitivity_is_the_difference_between_the_best_and_the_worst_rate():
    flat = [v - 0.1 for v in GOOD]  # better by 0.1: a difference has no sign
    wide = [v + 0.5 for v in GOOD]
    holds = found(
        "pre_less_sensitive", tables([], *by_rate(GOOD, flat), *by_rate(GOOD, wide, **POST))
    )
    (case,) = holds.cases.values()
    assert (holds.verdict, case.effect, case.p_holds) == ("holds", pytest.approx(0.4), 1 / 64)
    fails = tables([], *by_rate(GOOD, wide), *by_rate(GOOD, flat, **POST))
    assert verdict("pre_less_sensitive", fails) == "fails"
    lost = tables([], *by_rate(GOOD, flat), *by_rate(GOOD, [*wide[:5], None], **POST))
    assert verdict("pre_less_sensitive", lost) == SELECTION
    stuck = tables([], *by_rate(GOOD, wide), *by_rate(STUCK, STUCK, **POST))
    assert verdict("pre_less_sensitive", stuck).startswith("undecided: where nothing is learned")
    one_rate = tables([], losses(GOOD, warmup_steps=0), losses(GOOD, warmup_steps=0, **POST))
    assert verdict("pre_less_sensitive", one_rate) == "no data"
