"""From models to arms, batches and gains of the main study: against scipy and by hand."""

import math

import pandas as pd
import pytest
from scipy import stats

from normscope.statistics.outcome import with_outcome
from normscope.statistics.tuning import chosen
from normscope.studies.main import tabulate as aggregate
from normscope.studies.main.recipe import Cell

CEILING = math.log(65)
KEY = {"protocol": "small", "placement": "pre"}
BASELINE = Cell("small", "layernorm", "pre", 0.001)


def runs() -> pd.DataFrame:
    """Three arms at one rate; one diverged at seed 3, one has a single seed."""
    loss = {
        "layernorm": {1: 1.90, 2: 1.95, 3: 1.88, 4: 1.93},
        "rmsnorm": {1: 1.92, 2: 1.96, 3: math.nan, 4: 1.99},
        "dyt": {1: 2.0, 2: 2.2, 3: 2.1, 4: 2.05},
        "derf": {2: 1.9},
    }
    table = pd.DataFrame(
        {
            **KEY,
            "arm": arm,
            "learning_rate": 0.001,
            "seed": seed,
            "val_loss": value,
            "best_val_loss": value - seed / 10,
            "diverged_at": 7.0 if math.isnan(value) else math.nan,
        }
        for arm, seeds in loss.items()
        for seed, value in seeds.items()
    )
    return with_outcome(table, 65, 3.3)


def compared(table: pd.DataFrame | None = None) -> dict[str, dict]:
    """The row of each arm."""
    table = runs() if table is None else table
    picked = chosen(table, aggregate.COMPARED, by="capped_loss")
    arms = aggregate.compare(table, picked, BASELINE, 0.95)
    return {row["arm"]: row for row in arms.to_dict("records")}


def test_arms_are_compared_with_the_baseline_seed_by_seed():
    """What diverged counts as knowing nothing."""
    rows, values = compared(), runs().pivot_table("capped_loss", "seed", "arm")
    assert values.loc[3, "rmsnorm"] == CEILING
    for arm in ("rmsnorm", "dyt"):
        # Bonferroni over the two comparisons with more than one pair
        expected = stats.ttest_rel(values[arm], values["layernorm"])
        low, high = expected.confidence_interval(1 - 0.05 / 2)
        row = rows[arm]
        assert row["pairs"] == 4
        assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high))


def test_arms_have_the_interval_of_their_own_models():
    row = compared()["rmsnorm"]
    own = stats.ttest_1samp([1.92, 1.96, CEILING, 1.99], 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((own.low, own.high))
    assert (row["n"], row["diverged"], row["failed"]) == (4, 1, 1)
    best = stats.ttest_1samp([1.82, 1.76, 1.59], 0).confidence_interval(0.95)
    assert (row["best_low"], row["best_high"]) == pytest.approx((best.low, best.high))
    assert row["best"] == pytest.approx((1.82 + 1.76 + 1.59) / 3)


def test_one_pair_has_a_difference_and_no_interval():
    row = compared()["derf"]
    assert row["difference"] == pytest.approx(1.9 - 1.95)
    assert math.isnan(row["difference_low"])


def test_the_baseline_is_not_compared_with_itself_and_protocols_are_apart():
    twice = pd.concat([runs(), runs().assign(protocol="large")])
    row = compared(twice)["layernorm"]
    assert row["pairs"] == 4
    assert math.isnan(row["difference"])
    assert compared(twice)["dyt"]["alpha"] == pytest.approx(0.05 / 2)


def test_a_rate_at_the_edge_of_those_tried_is_marked():
    """0.001 is best; of two rates each is at an edge, which says nothing."""
    rates = {0.001: 0.0, 0.003: 0.1, 0.01: 0.2, 0.0003: 0.3}
    tried = pd.concat(
        [
            runs().assign(learning_rate=rate, capped_loss=runs()["capped_loss"] + more)
            for rate, more in rates.items()
        ]
    )
    cases = {(0.001, 0.003, 0.0003): False, (0.001, 0.003, 0.01): True, (0.001, 0.003): False}
    for kept, at_edge in cases.items():
        row = compared(tried[tried["learning_rate"].isin(kept)])["dyt"]
        assert (row["rates"], row["rate"], row["at_edge"]) == (len(kept), 0.001, at_edge)


def test_a_smaller_batch_is_held_against_the_greatest_of_the_same_seed():
    sizes = {"small": 8, "batch_1": 1, "batch_16": 16, "other": 2}
    rows = [
        {**KEY, "protocol": name, "arm": arm, "seed": seed, "capped_loss": seed + 1 / size}
        for name, size in sizes.items()
        for arm in ("layernorm", "dyt")
        for seed in (1, 2)
        if arm == "layernorm" or name in ("other", "small")
    ]
    batches = aggregate.batches(pd.DataFrame(rows), [{k: sizes[k] for k in list(sizes)[:3]}])
    assert set(batches["arm"]) == {"layernorm"}  # dyt has one size
    excess = batches.set_index(["batch_size", "seed"])["excess"].to_dict()
    expected = {(s, seed): 1 / s - 1 / 16 for s in (1, 8, 16) for seed in (1, 2)}
    assert excess == pytest.approx(expected)


def gains() -> pd.DataFrame:
    """Two seeds, two positions, two blocks and a final norm."""
    log_gain = {
        1: [(math.nan, math.nan), (9.0, 0.2), (9.0, 0.4), (-9.0, -1.0)],
        2: [(math.nan, math.nan), (9.0, 0.1), (9.0, 0.6), (-9.0, -1.2)],
    }
    sites = ("embedding", "block_0", "block_1", "final_norm")
    return pd.DataFrame(
        {
            **KEY,
            "arm": "layernorm",
            "learning_rate": 0.001,
            "seed": seed,
            "site": site,
            "depth": depth,
            "position": position,
            "norm": math.exp(depth * seed),
            "log_gain": log_gain[seed][depth][position],
        }
        for seed in log_gain
        for depth, site in enumerate(sites)
        for position in (0, 1)
    )


def test_gains_are_geometric_and_leave_out_the_first_position():
    table = aggregate.by_arm(gains(), 0.95)
    (row,) = table.to_dict("records")
    assert row["n"] == 2
    # two blocks: the later one is the last
    for part, values in (("first", [0.2, 0.1]), ("later", [0.4, 0.6]), ("last", [0.4, 0.6])):
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        logs = [math.log(row[part + end]) for end in ("", "_low", "_high")]
        assert logs == pytest.approx([sum(values) / 2, expected.low, expected.high])


def test_depths_keep_the_first_position_apart():
    table = aggregate.by_depth(gains(), 0.95)
    first, later = (table[table["positions"] == p].sort_values("depth") for p in ("first", "later"))
    assert later["log_gain"].tolist()[1:] == pytest.approx([0.15, 0.5, -1.1])
    assert first["log_gain"].tolist()[1:] == pytest.approx([9, 9, -9])
    assert later["log_norm"].tolist() == pytest.approx([0, 1.5, 3, 4.5])
    own = stats.ttest_1samp([0.2, 0.1], 0).confidence_interval(0.95)
    assert later["log_gain_low"].tolist()[1] == pytest.approx(own.low)
