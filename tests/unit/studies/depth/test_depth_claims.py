"""The tutorial on depth: verdicts of its statements about planted networks and losses."""

from typing import Any

import pytest
from depth_evidence import UNIGRAM, Row, losses, near, rates_of, tables
from statements import claim_on, verdict

XAVIER = {"init": "xavier"}
PLAIN = XAVIER | {"arm": "none", "placement": "none", "residual": False}
POST: dict[str, Any] = {"placement": "post"}


def around(measure: str, value: float, **network) -> list[Row]:
    """Six seeds of a network."""
    return rates_of(measure, near(value), **network)


@pytest.mark.parametrize(
    ("key", "networks", "reads"),
    [
        # the tutorial's layer is a sublayer, of which a block has two
        ("decay_rate", around("gradient_rate", 0.8**2, **PLAIN), "holds"),
        ("decay_rate", around("gradient_rate", 0.8, **PLAIN), "fails"),
        ("vanishes", around("gradient_near", 0.05, **PLAIN), "holds"),
        ("vanishes", around("gradient_near", 0.2, **PLAIN), "fails"),
        ("vanishes", around("gradient_near", 0.05, **PLAIN | {"depth": 9}), "no data"),
        (  # the shallowest network of 10 blocks or more decides
            "vanishes",
            around("gradient_near", 0.05, **PLAIN)
            + around("gradient_near", 0.2, **PLAIN | {"depth": 48}),
            "holds",
        ),
        ("stays", around("gradient_kept", 30.0, **XAVIER), "holds"),
        ("stays", around("gradient_kept", 0.4, **XAVIER), "fails"),
        (  # the deepest network decides
            "stays",
            around("gradient_kept", 1.0, **XAVIER)
            + around("gradient_kept", 0.4, **XAVIER | {"depth": 48}),
            "fails",
        ),
        # post-norm has no identity path
        ("stays", around("gradient_kept", 0.1, **XAVIER | POST), "no data"),
        ("healthy_range", around("stream_growth", 1.5, **XAVIER), "holds"),
        (  # neither GPT-2's start nor peri-norm decides
            "healthy_range",
            around("stream_growth", 4.0, **XAVIER)
            + around("stream_growth", 1.5)
            + around("stream_growth", 1.5, **XAVIER | {"placement": "peri"}),
            "fails",
        ),
        # a single singular value beyond Weyl's bound refutes it
        ("identity_path", rates_of("from_identity", [0.5, 0.999, 0.7]), "holds"),
        ("identity_path", rates_of("from_identity", [0.5, 1.001, 0.7]), "fails"),
        (
            "identity_path",
            rates_of("from_identity", [0.5])
            + rates_of("from_identity", [9.0], **POST)
            + rates_of("from_identity", [9.0], residual=False),
            "holds",
        ),
    ],
)
def test_a_statement_about_signals_is_decided_by_its_network(key, networks, reads):
    assert verdict(key, tables(networks)) == reads


def test_gradients_of_post_norm_are_compared_by_seed_and_xaviers_start_decides():
    def gradients(post: float, **changes) -> list[Row]:
        pre = around("last_gradient", 1.0, **changes)
        return pre + around("last_gradient", post, **POST | changes)

    claim = claim_on("post_large_gradients", tables(gradients(0.5) + gradients(3.0, **XAVIER)))
    effects = {name: case.effect for name, case in claim.cases.items()}
    assert claim.verdict == "holds"
    assert effects == pytest.approx({"12 blocks": 0.5, "12 blocks, Xavier's start": 3})


GOOD = near(2.4)
STUCK = near(UNIGRAM, spread=1e-4)
WORSE = [v + 0.3 + 0.01 * (-1) ** i for i, v in enumerate(GOOD)]  # by unequal differences
SLIGHTLY = [v + 0.01 + 0.001 * i for i, v in enumerate(GOOD)]  # less than the margin
FAR = [*near(3.7)[:5], None]  # the divergence counts as ln 65


@pytest.mark.parametrize(
    ("key", "other"), [("trainable", {"residual": False}), ("pre_beats_post", POST)]
)
@pytest.mark.parametrize(
    ("pre", "worse", "reads"),
    [
        (GOOD, WORSE, "holds"),
        (WORSE, GOOD, "fails"),
        (GOOD, SLIGHTLY, "fails"),
        (GOOD, FAR, "holds"),
    ],
)
def test_losses_of_100_blocks_are_compared_by_seed(key, other, pre, worse, reads):
    deep, shallow = (
        tables([], losses(pre, depth=depth), losses(worse, depth=depth, **other))
        for depth in (104, 99)
    )
    assert verdict(key, deep) == reads
    assert "no data" in verdict(key, shallow)


def by_rate(slow: list, fast: list, warmup_steps: int = 0, **changes) -> list[Row]:
    at = {"warmup_steps": warmup_steps} | changes
    return losses(slow, learning_rate=0.001, **at) + losses(fast, learning_rate=0.005, **at)


@pytest.mark.parametrize(
    ("pre", "post", "reads"),
    [
        (SLIGHTLY, by_rate(GOOD, WORSE, **POST), "holds"),
        (WORSE, by_rate(GOOD, SLIGHTLY, **POST), "fails"),
        (SLIGHTLY, by_rate(STUCK, STUCK, **POST), "where nothing is learned"),
    ],
)
def test_sensitivity_is_compared_by_seed_without_warm_up(pre, post, reads):
    with_it = by_rate(GOOD, WORSE, 40) + by_rate(GOOD, SLIGHTLY, 40, **POST)
    planted = tables([], by_rate(GOOD, pre), post, with_it)
    assert reads in verdict("pre_less_sensitive", planted)


@pytest.mark.parametrize(
    ("without", "with_it", "pre", "reads"),
    [
        (WORSE, GOOD, GOOD, "holds"),
        (GOOD, WORSE, GOOD, "fails"),
        (WORSE, GOOD, WORSE, "fails"),  # pre-norm gains as much
        (SLIGHTLY, GOOD, GOOD, "fails"),
    ],
)
def test_warm_up_is_judged_at_the_best_rates_by_its_gain_over_that_of_pre_norm(
    without, with_it, pre, reads
):
    """The fast rate is best with a warm-up, the slow one without: neither gains at one rate."""

    def trained(without: list, with_it: list, **changes) -> list[Row]:
        none = by_rate(without, STUCK, **changes)
        another = by_rate(WORSE, WORSE, 20, **changes)
        return none + another + by_rate(STUCK, with_it, 200, **changes)

    planted = tables([], trained(without, with_it, **POST), trained(pre, GOOD))
    assert verdict("post_warm_up", planted) == reads


@pytest.mark.parametrize(("learned", "reads"), [(0, "holds"), (1, "undecided")])
def test_failures_are_compared_by_seed_exactly(learned, reads):
    """If all six fail in post-norm, p is 2/64; if five do, it is 2/32."""
    at = {"learning_rate": 0.01, "warmup_steps": 0}
    some = [*GOOD[:learned], *STUCK[learned:]]
    claim = claim_on("post_fails", tables([], losses(GOOD, **at), losses(some, **POST, **at)))
    assert claim.verdict.startswith(reads)
    (case,) = claim.deciding.values()
    assert (case.effect, case.n) == (pytest.approx(1 - learned / 6), 6)
    assert case.p_holds == pytest.approx(2.0 ** -(6 - learned))
