"""The tutorial on depth: planted networks and losses, and the verdict of every statement."""

import math

import pytest
from depth_evidence import SEEDS, UNIGRAM, Row, losses, near, rates_of, tables
from statements import FEW, claim_on, verdict

NONE = {"arm": "none", "placement": "none"}
# a statement, its measure, its deciding network, values of which it holds and fails
CASES = [
    # of a block, which has two sublayers
    ("decay_rate", "gradient_rate", NONE | {"residual": False}, 0.8**2, 0.8),
    ("decay_rate", "gradient_rate", NONE | {"residual": False}, 0.79**2, 0.97),
    ("vanishes", "gradient_near", NONE | {"residual": False}, 0.05, 0.2),
    ("stays", "gradient_kept", {}, 1.0, 0.4),
    ("stays", "gradient_kept", {}, 30.0, 0.2),
    ("healthy_range", "stream_growth", {}, 1.5, 4.0),
]
CASE = pytest.mark.parametrize(("key", "measure", "network", "good", "bad"), CASES)
POST = {"placement": "post"}


@CASE
def test_one_network_named_beforehand_decides_and_the_others_are_shown(
    key, measure, network, good, bad
):
    """Its start is Xavier's; the deepest is taken (vanishing: the shallowest of 10 or more)."""

    def at(value: float, **changes) -> list[Row]:
        return rates_of(measure, near(value), **network | {"init": "xavier"} | changes)

    for value, said in ((good, "holds"), (bad, "fails")):
        other = bad if value == good else good
        rows = at(value) + at(other, init="gpt2") + at(other, arm="batchnorm", placement="pre")
        rows += at(other, placement="peri", arm="layernorm")
        assert verdict(key, tables(rows)) == said
        cases = claim_on(key, tables(rows)).cases
        assert len(cases) == (6 if key == "decay_rate" else 3)  # BatchNorm is no case of it
    deeper = claim_on(key, tables(at(good) + at(bad, depth=48)))
    assert deeper.verdict == ("holds" if key == "vanishes" else "fails")
    assert verdict(key, tables(at(math.nan))) == "no data"
    assert FEW in verdict(key, tables(at(good)[:5]))


def test_shallow_networks_say_nothing_of_vanishing():
    shallow = NONE | {"residual": False, "init": "xavier", "depth": 9}
    assert (
        verdict("vanishes", tables(rates_of("gradient_near", near(0.05), **shallow))) == "no data"
    )


@pytest.mark.parametrize(("value", "reads"), [(0.0, "holds"), (math.inf, "fails")])
def test_a_factor_of_0_or_without_bound_is_judged_too(value, reads):
    plain = NONE | {"residual": False, "init": "xavier"}
    rows = rates_of("gradient_near", [value] * SEEDS, **plain)
    assert verdict("vanishes", tables(rows)) == reads


def test_a_gradient_stays_where_there_is_an_identity_path():
    """Post-norm has none, and its case is not asked for."""
    post = rates_of("gradient_kept", near(0.1), init="xavier", **POST)
    assert verdict("stays", tables(post)) == "no data"


@pytest.mark.parametrize(("farthest", "reads"), [(0.999, "holds"), (1.001, "fails")])
def test_one_singular_value_beyond_weyls_bound_would_refute_it(farthest, reads):
    rows = rates_of("from_identity", [0.5, farthest, 0.7])
    rows += rates_of("from_identity", [9.0], **POST)  # of which it is not
    rows += rates_of("from_identity", [9.0], residual=False)
    assert verdict("identity_path", tables(rows)) == reads


def test_post_norms_gradients_are_compared_by_seed_and_xaviers_start_decides():
    def gradients(post: list[float], **changes) -> list[Row]:
        rows = rates_of("last_gradient", post, placement="post", **changes)
        return rows + rates_of("last_gradient", near(1.0), **changes)

    rows = gradients(near(0.5)) + gradients(near(3.0), init="xavier")
    claim = claim_on("post_large_gradients", tables(rows))
    effects = {name: case.effect for name, case in claim.cases.items()}
    assert claim.verdict == "holds"
    assert effects == {
        "12 blocks": pytest.approx(0.5),
        "12 blocks, Xavier's start": pytest.approx(3),
    }
    trained = gradients(near(3.0), state="trained", init="xavier")
    assert verdict("post_large_gradients", tables(trained)) == "no data"


GOOD = near(2.4)
STUCK = near(UNIGRAM, spread=1e-4)
BETTER = [v + 0.3 + 0.01 * (-1) ** i for i, v in enumerate(GOOD)]  # no equal differences
DEEP = {"depth": 104}


@pytest.mark.parametrize(
    ("key", "worse"), [("trainable", {"residual": False}), ("pre_beats_post", POST)]
)
def test_losses_of_100_blocks_are_compared_by_seed(key, worse):
    def judged(one: list, other: list, depth: int = 104) -> str:
        parts = losses(one, depth=depth), losses(other, depth=depth, **worse)
        return verdict(key, tables([], *parts))

    assert judged(GOOD, BETTER) == "holds"
    assert judged(BETTER, GOOD) == "fails"
    # less than what counts
    assert judged(GOOD, [v + 0.01 - 0.001 * i for i, v in enumerate(GOOD)]) == "fails"
    assert FEW in judged(GOOD, BETTER[:5])
    far = [v + 1.2 for v in BETTER[:5]]
    assert judged(GOOD, [*far, None]) == "holds"  # a divergence is an outcome: ln 65
    assert judged(GOOD, STUCK) == "holds"
    assert judged(GOOD, BETTER, depth=99) in ("no data", "undecided: no data")


def test_each_side_is_at_the_setting_that_the_other_seeds_choose():
    """One seed's lucky rate is not its own: the others have 0.003 the better one."""
    slow = [1.0, *[v + 0.5 for v in BETTER[1:]]]
    plain = {"residual": False} | DEEP
    parts = losses(slow, **plain), losses(BETTER, learning_rate=0.003, **plain)
    claim = claim_on("trainable", tables([], losses(GOOD, **DEEP), *parts))
    (case,) = claim.cases.values()
    assert case.effect == pytest.approx(sum(b - a for a, b in zip(GOOD, BETTER, strict=True)) / 6)


def by_rate(slow: list, fast: list, **changes) -> list[list[Row]]:
    at = {"warmup_steps": 0} | changes
    return [losses(slow, **at), losses(fast, **at | {"learning_rate": 0.003})]


def test_sensitivity_is_compared_by_seed_without_warm_up():
    flat, wide = [v + 0.01 for v in GOOD], [v + 0.5 + 0.02 * i for i, v in enumerate(GOOD)]

    def judged(pre: list, post: list) -> str:
        parts = *by_rate(GOOD, pre), *by_rate(GOOD, post, **POST)
        warm = *by_rate(GOOD, post, warmup_steps=60), *by_rate(GOOD, pre, **POST, warmup_steps=60)
        return verdict("pre_less_sensitive", tables([], *parts, *warm))

    assert judged(flat, wide) == "holds"
    assert judged(wide, flat) == "fails"
    assert judged(flat, [*wide[:5], None]) == "holds"
    stuck = tables([], *by_rate(GOOD, wide), *by_rate(STUCK, STUCK, **POST))
    assert "where nothing is learned" in verdict("pre_less_sensitive", stuck)
    one_rate = tables([], losses(GOOD, warmup_steps=0), losses(GOOD, warmup_steps=0, **POST))
    assert verdict("pre_less_sensitive", one_rate) == "no data"


def test_warm_up_is_judged_at_the_best_rates_by_what_it_gives_beyond_pre_norm():
    """With a warm-up the fast rate is best, without it the slow one: at one rate none gains."""
    slow, fast = {"learning_rate": 0.001}, {"learning_rate": 0.005}

    def trained(without: list, with_it: list, **changes) -> list[list[Row]]:
        return [
            losses(without, warmup_steps=0, **slow, **changes),
            losses(STUCK, warmup_steps=0, **fast, **changes),
            losses(STUCK, warmup_steps=200, **slow, **changes),
            losses(with_it, warmup_steps=200, **fast, **changes),
            losses(BETTER, warmup_steps=20, **fast, **changes),  # another warm-up
        ]

    def judged(without: list, with_it: list, pre: list = GOOD) -> str:
        parts = *trained(without, with_it, **POST), *trained(pre, GOOD)
        return verdict("post_warm_up", tables([], *parts))

    assert judged(BETTER, GOOD) == "holds"
    assert judged(GOOD, BETTER) == judged(BETTER, GOOD, pre=BETTER) == "fails"
    assert judged([v + 0.01 + 0.001 * i for i, v in enumerate(GOOD)], GOOD) == "fails"  # too little
    alone = [losses(STUCK, warmup_steps=0, **slow, **changes) for changes in ({}, POST)]
    assert verdict("post_warm_up", tables([], *alone)) == "no data"


@pytest.mark.parametrize(("learned", "reads"), [(0, "holds"), (1, "undecided"), (6, "undecided")])
def test_failures_are_compared_by_seed_exactly(learned, reads):
    """All six fail in post-norm: a p of 2/64, of five of 2/32."""
    at = {"learning_rate": 0.01, "warmup_steps": 0}
    some = [*GOOD[:learned], *STUCK[learned:]]
    parts = losses(GOOD, **at), losses(some, **POST, **at), losses(some, **at | {"depth": 4})
    claim = claim_on("post_fails", tables([], *parts))
    assert claim.verdict.startswith(reads)
    (case,) = claim.deciding.values()
    assert (case.effect, case.n) == (pytest.approx(1 - learned / 6), 6)
    assert case.p_holds == pytest.approx(2.0 ** -(6 - learned))
