"""From models to the tables of the main study: against scipy, power laws and by hand."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.outcome import with_outcome
from normscope.statistics.tuning import choose
from normscope.studies.cells import Cell
from normscope.studies.main import tabulate as aggregate

CEILING = math.log(65)
NAN = math.nan
KEY = {"protocol": "small", "placement": "pre"}
BASELINE = Cell("small", "layernorm", "pre", 0.001)


def runs() -> pd.DataFrame:
    """Three arms at one rate; one diverged at seed 3, one has a single seed."""
    losses = {
        "layernorm": {1: 1.90, 2: 1.95, 3: 1.88, 4: 1.93},
        "rmsnorm": {1: 1.92, 2: 1.96, 3: math.nan, 4: 1.99},
        "dyt": {1: 2.0, 2: 2.2, 3: 2.1, 4: 2.05},
        "derf": {2: 1.9},
    }
    rows = [(arm, seed, loss) for arm, seeds in losses.items() for seed, loss in seeds.items()]
    table = pd.DataFrame(rows, columns=["arm", "seed", "val_loss"])
    table = table.assign(**KEY, learning_rate=0.001)
    table["best_val_loss"] = table["val_loss"] - table["seed"] / 10
    table["diverged_at"] = table["val_loss"].isna().map({True: 7.0, False: math.nan})
    return with_outcome(table, 65, 3.3)


def compared(table: pd.DataFrame) -> dict[str, dict]:
    """The row of each arm."""
    picked = choose(table, aggregate.COMPARED, by="capped_loss")
    arms = aggregate.compare(table, picked, BASELINE, 0.95)
    return {row["arm"]: row for row in arms.to_dict("records")}


def test_arms_are_compared_with_the_baseline_seed_by_seed():
    """What diverged counts as knowing nothing."""
    rows, values = compared(runs()), runs().pivot_table("capped_loss", "seed", "arm")
    assert values.loc[3, "rmsnorm"] == CEILING
    for arm in ("rmsnorm", "dyt"):
        # Bonferroni over the two comparisons with more than one pair
        expected = stats.ttest_rel(values[arm], values["layernorm"])
        low, high = expected.confidence_interval(1 - 0.05 / 2)
        row = rows[arm]
        assert row["pairs"] == 4
        assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high))


def test_arms_have_the_interval_over_their_models():
    row = compared(runs())["rmsnorm"]
    interval = stats.ttest_1samp([1.92, 1.96, CEILING, 1.99], 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert (row["n"], row["diverged"], row["failed"]) == (4, 1, 1)
    best = stats.ttest_1samp([1.82, 1.76, 1.59], 0).confidence_interval(0.95)
    assert (row["best_low"], row["best_high"]) == pytest.approx((best.low, best.high))
    assert row["best"] == pytest.approx((1.82 + 1.76 + 1.59) / 3)


def test_the_rate_is_the_one_of_most_seeds_and_the_number_of_tried_ones_is_known():
    other = runs().assign(learning_rate=0.003, capped_loss=runs()["capped_loss"] + 0.1)
    row = compared(pd.concat([runs(), other]))["dyt"]
    assert (row["rates"], row["rate"], row["at_edge"]) == (2, 0.001, False)


def test_a_smaller_batch_is_compared_with_the_greatest_of_the_same_seed():
    sizes = {"small": 8, "batch_1": 1, "batch_16": 16, "other": 2}
    rows = [
        {**KEY, "protocol": name, "arm": arm, "seed": seed, "capped_loss": seed + 1 / size}
        for name, size in sizes.items()
        for arm in ("layernorm", "dyt")
        for seed in (1, 2)
        if arm == "layernorm" or name in ("other", "small")
    ]
    family = {name: sizes[name] for name in ("small", "batch_1", "batch_16")}
    batches = aggregate.batches(pd.DataFrame(rows), [family])
    assert set(batches["arm"]) == {"layernorm"}  # dyt has one size
    excess = batches.set_index(["batch_size", "seed"])["excess"].to_dict()
    expected = {(s, seed): 1 / s - 1 / 16 for s in (1, 8, 16) for seed in (1, 2)}
    assert excess == pytest.approx(expected)


def gains() -> pd.DataFrame:
    """Two seeds, two positions, two blocks and a final norm."""
    log_gain = {1: [math.nan, 0.2, 0.4, -1.0], 2: [math.nan, 0.1, 0.6, -1.2]}
    at_first = [math.nan, 9.0, 9.0, -9.0]
    sites = ("embedding", "block_0", "block_1", "final_norm")
    rows = [
        (seed, site, depth, position, math.exp(depth * seed), values[depth])
        for seed, later in log_gain.items()
        for depth, site in enumerate(sites)
        for position, values in enumerate((at_first, later))
    ]
    columns = ["seed", "site", "depth", "position", "norm", "log_gain"]
    return pd.DataFrame(rows, columns=columns).assign(**KEY, arm="layernorm", learning_rate=0.001)


def test_gains_are_geometric_and_leave_out_the_first_position():
    table = aggregate.by_arm(gains(), 0.95)
    (row,) = table.to_dict("records")
    assert row["n"] == 2
    # two blocks: the later one is the last
    for part, values in (("first", [0.2, 0.1]), ("later", [0.4, 0.6]), ("last", [0.4, 0.6])):
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        logs = [math.log(row[part + end]) for end in ("", "_low", "_high")]
        assert logs == pytest.approx([sum(values) / 2, expected.low, expected.high])


CELL = {"protocol": "small", "arm": "layernorm", "placement": "pre", "learning_rate": 0.003}


def model(**values: Any) -> dict[str, Any]:
    """A row of runs.csv."""
    return CELL | {"seed": 1, "failed": 0, "pilot_loss": NAN} | values


def test_a_loss_is_compared_with_the_same_seed_and_protocol_where_there_is_a_partner():
    losses = {
        ("small", "rmsnorm", "pre", 1): 2.0,
        ("small", "rmsnorm", "pre", 2): 2.2,
        ("small", "layernorm", "pre", 1): 2.5,
        ("small", "layernorm", "pre", 2): 2.6,
        ("small", "layernorm", "pre", 3): 9.0,  # this seed has no RMSNorm
        ("small", "layernorm", "post", 1): 3.0,  # this placement has none either
        ("small", "none", "none", 1): 3.3,
        ("deep", "layernorm", "pre", 1): 7.0,
        ("deep", "rmsnorm", "pre", 1): 8.0,
        ("deep", "rmsnorm", "post", 1): 8.5,
    }
    keys = ("protocol", "arm", "placement", "seed")
    rows = [
        dict(zip(keys, key, strict=True))
        | {"learning_rate": 0.01, "capped_loss": v, "failed": int(v > 8)}
        for key, v in losses.items()
    ]
    found = aggregate.differences(pd.DataFrame(rows[::-1]), "rmsnorm", "pre")
    rows = found.set_index(list(keys)).loc[list(losses)]
    of_arm = [0, 0, 0.5, 0.4, NAN, NAN, NAN, -1, 0, 0]
    of_placement = [0, 0, 0, 0, 0, 0.5, NAN, 0, 0, 0.5]
    np.testing.assert_allclose(rows["above_arm"], of_arm, atol=1e-12)
    np.testing.assert_allclose(rows["above_placement"], of_placement, atol=1e-12)


@given(*[st.floats(-3, 3)] * 4)
def test_above_both_is_what_the_effects_of_arm_and_placement_do_not_add_up_to(a, b, c, d):
    """Losses are sums of both effects and an interaction; a sign that is exchanged is found.

    The baseline has none in either factor. The second seed lacks one of the four models.
    """
    losses = {("rmsnorm", "pre"): a, ("layernorm", "pre"): a + b, ("rmsnorm", "post"): a + c}
    losses |= {("layernorm", "post"): a + b + c + d}
    rows = [
        model(arm=arm, placement=placement, seed=seed, capped_loss=seed + loss)
        for (arm, placement), loss in losses.items()
        for seed in (1, 2)
        if (arm, placement, seed) != ("rmsnorm", "post", 2)
    ]
    found = aggregate.differences(pd.DataFrame(rows), "rmsnorm", "pre")
    found = found.set_index(["arm", "placement", "seed"])
    both = found["above_both"]
    assert both["layernorm", "post", 1] == pytest.approx(d, abs=1e-9)
    assert math.isnan(both["layernorm", "post", 2])
    others = [both["rmsnorm", "pre", 1], both["layernorm", "pre", 1], both["rmsnorm", "post", 1]]
    assert others == pytest.approx([0, 0, 0], abs=1e-9)


@given(*[st.floats(-3, 3)] * 2, *[st.floats(1e-6, 1e3)] * 2)
def test_a_power_of_the_depth_has_its_exponent_as_slope(change, gradient, a, b):
    """Whatever its factor, which differs between the networks of a seed and of another."""
    rows = [
        {"arm": "layernorm", "placement": placement, "depth": depth, "seed": seed}
        | {"output_change": a * seed * depth**change, "last_gradient": b * depth**-gradient}
        for placement in ("pre", "post")
        for depth in (6, 12, 48)
        for seed in (1, 2)
    ]
    table = aggregate.slopes(pd.DataFrame(rows))
    assert len(table) == 4
    np.testing.assert_allclose(table["change_slope"], change, atol=1e-9)
    np.testing.assert_allclose(table["gradient_slope"], -gradient, atol=1e-9)
