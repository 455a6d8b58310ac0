"""The tutorial on residual connections: planted values under which each statement has a verdict."""

import dataclasses
import math
import re

import pytest
from depth_evidence import (
    ENTRIES,
    FEW,
    LEVEL,
    SEEDS,
    UNCLEAR,
    evidence,
    losses,
    near,
    rates_of,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.ledger.claim import together
from normscope.studies.depth import claims as c
from normscope.studies.depth.claims import words
from normscope.words import significant_or_tiny

# a claim, its measure, whether with residual connections, values under which it holds and fails
CASES = [
    (c.decays_by_published_rate, "gradient_rate", False, 0.8, 0.5),
    (c.decays_by_published_rate, "gradient_rate", False, 0.79, 0.97),
    (c.vanishes_without_residuals, "gradient_kept", False, 0.05, 0.2),
    (c.vanishes_without_residuals, "gradient_kept", False, 1e-250, 30.0),
    (c.stays_with_residuals, "gradient_kept", True, 1.0, 3.0),
    (c.stays_with_residuals, "gradient_kept", True, 0.75, 0.2),
    (c.identity_passes_all, "smallest", True, 0.8, 0.2),
    (c.stays_healthy, "stream_growth", True, 1.5, 4.0),
]
CASE = pytest.mark.parametrize(("claim", "measure", "residual", "good", "bad"), CASES)
CLAIMS = [c.decays_by_published_rate, c.vanishes_without_residuals, c.stays_with_residuals,
          c.identity_passes_all, c.stays_healthy]  # fmt: skip


@CASE
def test_a_claim_holds_and_fails_by_its_values(claim, measure, residual, good, bad):
    for value, verdict in ((good, "holds"), (bad, "fails")):
        found = claim(evidence(rates_of(measure, near(value), residual=residual)))
        assert found.verdict == verdict
        assert significant_or_tiny(value)[:3] in found.corrected


@CASE
def test_a_claim_is_of_networks_with_residuals_or_without(claim, measure, residual, good, bad):
    other = rates_of(measure, near(bad), residual=not residual)
    assert claim(evidence(other)).verdict == "no data"
    own = rates_of(measure, near(good), residual=residual)
    assert claim(evidence(own + other)).verdict == "holds"


@CASE
def test_few_seeds_and_wide_intervals_decide_nothing(claim, measure, residual, good, bad):
    few = rates_of(measure, near(good)[:5], residual=residual)
    assert claim(evidence(few)).verdict == FEW
    wide = rates_of(measure, [good, bad] * 3, residual=residual)
    assert claim(evidence(wide)).verdict == UNCLEAR
    one = claim(evidence(rates_of(measure, [good], residual=residual)))
    assert one.verdict == "undecided: 1 seed, 6 needed"
    assert "[" not in one.corrected


def beyond(key: str, by: float) -> float:
    """A value so far outside what a statement asks for, in proportion; below 0 inside."""
    entry = ENTRIES[key]
    if entry.direction == "within":
        assert isinstance(entry.margin, float)
        return entry.limit * entry.margin * (1 + by)
    return entry.limit * (1 + by if entry.direction == "less" else 1 - by)


@CASE
def test_six_seeds_decide_only_if_all_agree_in_sign(claim, measure, residual, good, bad):
    """One that is beyond the bound by little leaves 2 of 64 flips to each side."""
    key = claim(evidence()).key
    for by, verdict, p in ((-1e-3, "holds", 1 / 64), (1e-3, UNCLEAR, 2 / 64)):
        values = [*near(good)[:5], beyond(key, by)]
        found = claim(evidence(rates_of(measure, values, residual=residual)))
        (case,) = found.cases.values()
        assert (found.verdict, case.p_holds, case.smallest) == (verdict, p, 1 / 64)
        assert (case.n, case.unit) == (6, "model")


@CASE
def test_a_claim_is_tested_by_the_ledgers_entry(claim, measure, residual, good, bad):
    """Where the bound is moved, so that bad is good, it holds; and its words have the number."""
    entry = claim(evidence()).entry
    e = evidence(rates_of(measure, near(bad), residual=residual))
    assert claim(e).verdict == "fails"
    bound = {"less": bad * 2, "greater": bad / 2, "within": bad}[entry.direction]
    moved = entry.model_copy(update={"bound": bound, "criterion": "about {bound:g}"})
    key = claim(e).key
    found = claim(dataclasses.replace(e, entries={**ENTRIES, key: moved}))
    assert found.verdict == "holds"
    assert found.test == f"about {bound:g}"


@CASE
def test_networks_of_two_placements_are_judged_apart(claim, measure, residual, good, bad):
    rows = rates_of(measure, near(good), residual=residual)
    rows += rates_of(measure, near(bad), residual=residual, placement="post")
    found = claim(evidence(rows))
    assert found.verdict == (
        "depends: holds for pre-norm, 12 blocks; fails for post-norm, 12 blocks"
    )


@CASE
def test_two_starts_are_judged_apart(claim, measure, residual, good, bad):
    rows = rates_of(measure, near(good), residual=residual)
    rows += rates_of(measure, near(bad), residual=residual, init="xavier")
    named = "fails for pre-norm, Xavier's start, 12 blocks"
    assert claim(evidence(rows)).verdict == f"depends: holds for pre-norm, 12 blocks; {named}"


@CASE
def test_other_norms_say_nothing_of_the_tutorials(claim, measure, residual, good, bad):
    rows = rates_of(measure, near(bad), residual=residual, arm="batchnorm")
    assert claim(evidence(rows)).verdict == "no data"
    rows += rates_of(measure, near(good), residual=residual)
    assert claim(evidence(rows)).verdict == "holds"


@pytest.mark.parametrize("claim", CLAIMS)
def test_of_nothing_there_is_nothing(claim):
    found = claim(evidence())
    assert found.verdict == "no data"
    assert not re.search(r"nan|\d\.\d", found.corrected)


@pytest.mark.parametrize("claim", CLAIMS)
def test_nothing_is_said_of_values_that_are_missing(claim):
    rows = [
        row
        for measure in ("gradient_rate", "gradient_kept", "smallest", "largest", "stream_growth")
        for residual in (True, False)
        for row in rates_of(measure, [math.nan] * SEEDS, residual=residual)
    ]
    assert claim(evidence(rows)).verdict == "no data"


@CASE
def test_the_deepest_network_is_judged_but_of_vanishing(claim, measure, residual, good, bad):
    """From 10 blocks on, the shallowest; fewer say nothing."""
    rows = [
        row
        for depth, value in ((4, bad), (12, good), (48, bad))
        for row in rates_of(measure, near(value), residual=residual, depth=depth)
    ]
    found = claim(evidence(rows))
    if claim is c.vanishes_without_residuals:
        assert found.verdict == "holds"
        assert "12 blocks" in found.corrected
        shallow = rates_of(measure, near(good), residual=residual, depth=9)
        assert claim(evidence(shallow)).verdict == "no data"
        ten = rates_of(measure, near(good), residual=residual, depth=10)
        assert claim(evidence(ten)).verdict == "holds"
    else:
        assert found.verdict == "fails"
        assert "48 blocks" in found.corrected


@pytest.mark.parametrize(
    ("claim", "measure", "good", "bad"),
    [(case[0], case[1], case[3], case[4]) for case in CASES if case[2]],
)
def test_trained_networks_are_judged_beside_those_at_the_start(claim, measure, good, bad):
    rows = rates_of(measure, near(good)) + rates_of(measure, near(bad), state="trained")
    named = "holds for pre-norm, 12 blocks; fails for pre-norm, 12 blocks, trained"
    assert claim(evidence(rows)).verdict == f"depends: {named}"


def test_without_residuals_only_the_start_is_judged():
    for claim in (c.decays_by_published_rate, c.vanishes_without_residuals):
        rows = rates_of("gradient_rate", near(0.8), residual=False, state="trained")
        rows += rates_of("gradient_kept", near(0.05), residual=False, state="trained")
        assert claim(evidence(rows)).verdict == "no data"


@pytest.mark.parametrize("value", [0.0, math.inf])
@pytest.mark.parametrize(
    ("case", "at"),
    [
        (CASES[2], {0.0: "holds", math.inf: "fails"}),
        (CASES[4], {0.0: "fails", math.inf: "fails"}),
        (CASES[7], {0.0: "holds", math.inf: "fails"}),
    ],
    ids=["vanishes", "stays", "healthy"],
)
def test_a_factor_of_0_or_without_bound_is_judged_too(case, at, value):
    """A gradient of which nothing is left is the most that the tutorial's statement asks for."""
    claim, measure, residual = case[:3]
    found = claim(evidence(rates_of(measure, [value] * SEEDS, residual=residual)))
    assert found.verdict == at[value] or found.verdict.startswith("undecided")


@pytest.mark.parametrize("value", [0.0, math.inf])
def test_of_two_seeds_one_without_a_finite_logarithm_has_a_finite_interval(value):
    rows = rates_of("gradient_kept", [value, 0.05], residual=False)
    found = c.vanishes_without_residuals(evidence(rows))
    (case,) = found.cases.values()
    assert 0 <= case.low < case.effect < case.high < math.inf
    assert found.verdict == "undecided: 2 seeds, 6 needed"


def test_no_norm_is_judged_but_says_nothing_of_layer_norms_healthy_range():
    none = {"arm": "none", "placement": "none"}
    rows = rates_of("gradient_kept", near(3.0), **none) + rates_of("smallest", near(0.9), **none)
    rows += rates_of("stream_growth", near(9.0), **none)
    e = evidence(rows)
    assert c.stays_with_residuals(e).verdict == "fails"
    assert "no norm, 12 blocks: 3.00 [" in c.stays_with_residuals(e).corrected
    assert c.identity_passes_all(e).verdict == "holds"
    assert c.stays_healthy(e).verdict == "no data"


def test_a_lost_direction_is_0_and_fails_the_identity_path():
    rows = rates_of("smallest", [0.0] * SEEDS) + rates_of("largest", near(7.0), placement="post")
    found = c.identity_passes_all(evidence(rows))
    assert found.verdict == "fails"
    assert "least: pre-norm, 12 blocks: 0 [0, 0]." in found.corrected
    assert "Largest: post-norm, 12 blocks: 7.00 [" in found.corrected


@pytest.mark.parametrize(("value", "verdict"), [(0.74, "fails"), (0.77, "holds"), (0.83, "holds"),
                                                (0.87, "fails")])  # fmt: skip
def test_0_8_stands_for_what_is_within_6_percent_of_it(value, verdict):
    found = c.decays_by_published_rate(
        evidence(rates_of("gradient_rate", near(value, spread=1e-4), residual=False))
    )
    assert found.verdict == verdict
    assert "within 6% of 0.8" in found.test


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=8))
def test_words_are_a_mean_with_students_interval(values):
    if len(set(values)) == 1:
        values = [*values, values[0] * 2]
    found = words(values, LEVEL)
    bounds = map(float, stats.ttest_1samp(values, 0).confidence_interval(LEVEL))
    mean, low, high = (significant_or_tiny(v) for v in (sum(values) / len(values), *bounds))
    assert found == f"{mean} [{low}, {high}]"


def test_words_of_factors_are_geometric_and_of_what_is_there():
    logs = stats.ttest_1samp([0.0, math.log(4)], 0).confidence_interval(LEVEL)
    low, high = (significant_or_tiny(math.exp(v)) for v in logs)
    assert words([1.0, 4.0, math.nan], LEVEL, geometric=True) == f"2.00 [{low}, {high}]"
    assert words([4.0], LEVEL, geometric=True) == "4.00"
    assert words([], LEVEL) == "–"
    assert words([math.nan], LEVEL) == "–"
    assert words([-1.0, 1.0], 0.5).startswith("0 [−1.00, 1.00")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.5, "0.500"), (3e-250, "3.00e-250"), (2.5e7, "2.50e+07"), (9999.0, "9,999"),
     (0.000123, "0.000123"), (math.nan, "–")],
)  # fmt: skip
def test_numbers_of_all_sizes_are_words(value, said):
    assert significant_or_tiny(value) == said


def test_one_verdict_for_all_or_each_with_its_networks():
    assert together({}) == "no data"
    assert together({"a": "holds", "b": "holds"}) == "holds"
    mixed = {"a": "holds", "b": "fails", "c": "holds"}
    assert together(mixed) == "depends: holds for a, c; fails for b"


def test_trained_losses_are_of_the_tutorials_norm_and_of_what_is_asked():
    parts = [losses([2.0]), losses([3.0], placement="post"), losses([4.0], arm="batchnorm")]
    e = evidence([], *parts, losses([5.0], residual=False))
    assert e.trained()["val_loss"].tolist() == [2.0, 3.0, 5.0]
    assert e.trained(placement="post")["val_loss"].tolist() == [3.0]
    assert e.trained(placement="pre", residual=False)["val_loss"].tolist() == [5.0]
    assert e.trained(init="xavier").empty
