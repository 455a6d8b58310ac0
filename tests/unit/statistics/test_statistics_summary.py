"""Summaries, agreement, outcomes and power."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import entropy

from normscope.statistics.agreement import agreement, agreements
from normscope.statistics.estimate import estimate
from normscope.statistics.levels import ALPHA, FEWEST
from normscope.statistics.outcome import unigram_loss, with_outcome
from normscope.statistics.power import POWER, detectable
from normscope.statistics.summary import describe, select, summarize

LEVEL = 0.9
NAN = math.nan


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=6, unique=True))
def test_a_mean_has_students_interval_and_a_geometric_one_that_of_logarithms(values):
    low, high = stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    plain = describe([*values, NAN, math.inf], LEVEL)
    assert list(plain) == ["n", "mean", "low", "high"]
    assert list(plain.values()) == pytest.approx(
        [len(values), sum(values) / len(values), low, high]
    )
    logs = [math.log(v) for v in values]
    bounds = stats.ttest_1samp(logs, 0).confidence_interval(LEVEL)
    geometric = describe([*values, 0.0, -1.0], LEVEL, geometric=True)
    expected = [math.exp(v) for v in (sum(logs) / len(logs), *bounds)]
    assert list(geometric.values()) == pytest.approx([len(values), *expected])


def test_one_value_has_no_interval_and_none_has_no_mean():
    one = describe([2.0], LEVEL)
    assert (one["n"], one["mean"]) == (1, 2.0)
    assert math.isnan(one["low"])
    assert math.isnan(one["high"])
    assert describe([NAN], LEVEL) == {"n": 0}


def test_groups_are_in_the_order_of_the_table_and_none_is_lost():
    table = pd.DataFrame({"arm": ["b", "b", "a"], "x": [1.0, 4.0, NAN], "y": [1.0, 3.0, 5.0]})
    rows = summarize(table, ["arm"], ["x", "y"], LEVEL, geometric=["x"])
    assert list(rows) == ["arm", "measure", "n", "mean", "low", "high"]
    kept = rows[["arm", "measure", "n"]].values.tolist()
    assert kept == [["b", "x", 2], ["b", "y", 2], ["a", "x", 0], ["a", "y", 1]]
    assert rows["mean"].tolist()[:2] == pytest.approx([2, 2])
    assert rows["mean"].isna().tolist() == [False, False, True, False]


def test_rows_are_selected_by_values():
    table = pd.DataFrame(
        {"arm": ["a", "b", "a"], "depth": [1, 1, 2], "residual": [True, True, False]}
    )
    assert select(table, arm="a", residual=False)["depth"].tolist() == [2]
    assert select(table[:0], arm="a").empty
    assert len(select(table)) == 3


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.nan], [1.0, math.inf]])
def test_no_value_and_no_finite_value_are_errors(values):
    with pytest.raises(ValueError, match="finite"):
        estimate(values, 0.95)


def test_of_fewer_than_six_seeds_no_exact_test_reaches_5_percent():
    assert stats.binomtest(FEWEST, FEWEST).pvalue < ALPHA
    assert stats.binomtest(FEWEST - 1, FEWEST - 1).pvalue > ALPHA


@pytest.mark.parametrize(
    ("was", "now", "spread", "word"),
    [
        (2.0, 2.019, 0.001, "agrees"),
        (2.0, 1.981, NAN, "agrees"),
        (2.0, 2.03, 0.01, "differs"),  # its seeds lie closer than that
        (2.0, 2.03, NAN, "differs"),
        (2.0, 2.5, 0.2, "within its seeds"),
        (2.0, 2.7, 0.2, "differs"),
        (NAN, NAN, 0.01, "agrees"),  # it diverges here as there
        (NAN, 2.0, 0.5, "differs"),
        (2.0, NAN, 0.5, "differs"),
    ],
)
def test_a_model_that_is_trained_again(was: float, now: float, spread: float, word: str) -> None:
    assert agreement(was, now, spread) == word


def losses(**seeds: float) -> pd.DataFrame:
    """metrics.csv of models, by ``s`` and their seed."""
    return pd.DataFrame({"seed": [int(s[1:]) for s in seeds], "val_loss": list(seeds.values())})


def test_models_of_a_job_are_compared_seed_by_seed():
    was = losses(s1=2.0, s2=2.01, s3=2.02)
    assert agreements(was, losses(s3=2.02, s2=2.06, s1=2.0)) == {
        **{1: "agrees", 2: "differs", 3: "agrees"},
    }
    # the seeds of the cell end on two plateaus
    apart = losses(s1=2.0, s2=2.0, s3=1.0)
    assert agreements(apart, losses(s1=1.0, s2=2.0, s3=1.0))[1] == "within its seeds"


def test_a_model_in_only_one_table_is_missing():
    assert agreements(losses(s1=2.0, s2=2.0), losses(s2=2.0, s3=2.0)) == {
        **{1: "missing", 2: "agrees", 3: "missing"},
    }
    assert set(agreements(losses(s1=2.0).iloc[:0], losses(s1=2.0)).values()) == {"missing"}


V, UNIGRAM = 65, 3.3


@pytest.mark.parametrize(
    ("loss", "diverged_at", "capped", "failed"),
    [
        (2.0, math.nan, 2.0, 0),
        (3.26, math.nan, 3.26, 1),
        (7.5, math.nan, math.log(V), 1),
        (2.0, 40, math.log(V), 1),
        (math.nan, 40, math.log(V), 1),
    ],
)
def test_an_outcome(loss: float, diverged_at: float, capped: float, failed: int) -> None:
    row = pd.DataFrame({"val_loss": [loss], "diverged_at": [diverged_at]})
    (made,) = with_outcome(row, V, UNIGRAM).to_dict("records")
    assert made["capped_loss"] == pytest.approx(capped)
    assert made["failed"] == failed


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_the_unigram_loss_of_the_training_tokens_is_their_entropy(tokens):
    tokens = np.array([*tokens, *range(5)], dtype=np.uint16)
    expected = entropy(np.bincount(tokens))
    assert unigram_loss(tokens, tokens, 5) == pytest.approx(expected, rel=1e-12)


def test_a_character_that_training_lacks_counts_as_seen_once():
    """8 and 2 of 11, and 1 of 11."""
    train = np.array([0] * 8 + [1] * 2)
    assert unigram_loss(train, np.array([2]), 3) == pytest.approx(np.log(11))
    assert unigram_loss(train, np.array([0]), 3) == pytest.approx(np.log(11 / 8))


@pytest.mark.parametrize("n", [6, 12])
def test_the_difference_is_found_as_often_as_stated(n: int):
    sd = 0.02
    draws = np.random.default_rng(0).normal(detectable(n, sd), sd, (20_000, n))
    found = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05
    assert np.mean(found) == pytest.approx(POWER, abs=0.01)


def test_too_few_pairs_find_nothing():
    assert math.isnan(detectable(5, 0.02))
    assert math.isnan(detectable(6, math.nan))
