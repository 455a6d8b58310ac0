"""From blocks and models to shapes, compared with scipy and by hand."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_recipes import by
from scipy import stats

from normscope.statistics.outcome import with_outcome
from normscope.statistics.summary import select
from normscope.studies.depth.tables import RATES, RELATIVE, TABLES
from normscope.studies.depth.tabulate import (
    advantages,
    by_block,
    by_shape,
    over_rates,
    rates,
    trainability,
    warm_ups,
)

UNIGRAM, CHARACTERS = 3.3, 65
SEEDS = 6
SHAPE = {"arm": "layernorm", "placement": "pre", "residual": True, "init": "gpt2", "depth": 12}
SCHEDULE = {"learning_rate": 0.001, "warmup_steps": 40, "steps": 600, "unigram": UNIGRAM}
Row = dict[str, Any]
LEVEL = 0.9
MODEL = SHAPE | {"depth": 4, "state": "start"}
NAN = math.nan
BOUNDS = ["mean", "low", "high"]


def near(value: float, spread: float = 0.01, n: int = SEEDS) -> list[float]:
    """Values around one, in proportion."""
    return [value * (1 + spread * (i - (n - 1) / 2)) for i in range(n)]


def rates_of(measure: str, values: Sequence[float], **changes: Any) -> list[Row]:
    """Rows of rates.csv: a measure of seeds 0, 1, ... of one network."""
    model = SHAPE | {"state": "start"} | changes
    return [model | {"seed": seed, measure: value} for seed, value in enumerate(values)]


def frame_of_rates(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=TABLES["rates"].names)


def losses(values: Sequence[float | None], **changes: Any) -> list[Row]:
    """Rows of losses.csv of seeds 0, 1, ...; None is a divergence."""
    return [
        SHAPE
        | SCHEDULE
        | {"seed": seed, "val_loss": value, "diverged_at": 9 if value is None else None}
        | changes
        for seed, value in enumerate(values)
    ]


def frame_of_losses(*parts: Sequence[Row]) -> pd.DataFrame:
    table = pd.DataFrame(
        [row for part in parts for row in part], columns=TABLES["losses"].names
    ).astype({"val_loss": float, "diverged_at": "Int64"})
    return with_outcome(table, CHARACTERS, UNIGRAM)


def blocks(*models: Mapping[str, Any], **changes: Any) -> pd.DataFrame:
    """Rows of blocks.csv: the values of each measure from block 0 on, one model per seed."""
    parts = [
        pd.DataFrame({**MODEL, "seed": seed, **columns, **changes}).assign(
            block=lambda table: range(len(table))
        )
        for seed, columns in enumerate(models, 1)
    ]
    return pd.concat(parts, ignore_index=True).reindex(columns=TABLES["blocks"].names)


def interval(values: Any) -> list[float]:
    bounds = stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    return [float(np.mean(values)), float(bounds.low), float(bounds.high)]


def geometric(values: Any) -> list[float]:
    return list(np.exp(interval(np.log(values))))


def test_sizes_by_block_are_averaged_in_logarithms_and_angles_are_not():
    """A gradient is compared with that at the last block of the same model: 2/1 and 12/4."""
    table = blocks(
        {"gradient": [NAN, 2.0, 1.0], "angle_mlp": [NAN, 80.0, -1.0]},
        {"gradient": [NAN, 12.0, 4.0], "angle_mlp": [NAN, 90.0, 3.0]},
    )
    estimates = by(by_block(table.iloc[::-1], LEVEL), "measure", "block")
    expected = {
        ("gradient", 1): geometric([2.0, 12.0]),
        ("gradient", 2): geometric([1.0, 4.0]),
        ("angle_mlp", 1): interval([80.0, 90.0]),
        ("angle_mlp", 2): interval([-1.0, 3.0]),
        (RELATIVE, 1): geometric([2.0, 3.0]),
        (RELATIVE, 2): [1.0, 1.0, 1.0],
    }
    assert estimates.keys() == expected.keys()
    for key, bounds in expected.items():
        assert [estimates[key][end] for end in BOUNDS] == pytest.approx(bounds)
        assert estimates[key]["n"] == 2


def test_rates_are_factors_per_block_without_the_first():
    """The gradient triples per block towards the input, and the stream doubles to the output."""
    columns = {
        "activation_rms": [99.0, 1.0, 2.0, 4.0, 8.0],
        "gradient": [NAN, 1e9, 9.0, 3.0, 1.0],
        "gradient_parameters": [NAN, 5.0, 6.0, 7.0, 0.25],
        "smallest": [NAN, 0.0, NAN, 0.6, 0.5],
        "largest": [NAN, 77.0, NAN, 3.0, 1.2],
        "branch": [NAN, 1.0, NAN, 2.5, 0.8],  # 2 of 2.5, 0.5 of 0.8
        "lost": [NAN, 0.0, NAN, 2.25, 2.0],
    }
    (row,) = rates(blocks(columns).iloc[::-1]).to_dict("records")
    expected = {
        "gradient_rate": 3,
        "gradient_kept": 9,
        "gradient_near": NAN,
        "stream_rate": 2,
        "stream_growth": 8,
        "stream_step": 2,
        "last_gradient": 0.25,
        # ln 9, ln 3 and 0, and ln 6, ln 7 and ln 1/4
        "later_gradient_spread": math.log(3) * math.sqrt(2 / 3),
        "later_parameter_spread": np.std(np.log([6.0, 7.0, 0.25])),
        "block_gradient": math.sqrt(25 + 36 + 49 + 1 / 16),
        "gradient_change": NAN,
        "smallest": 0.5,
        "largest": 3.0,
        "from_identity": 0.8,
        "lost": 2.0,
    }
    assert row == pytest.approx(MODEL | {"seed": 1} | expected, nan_ok=True)


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=9))
def test_a_rate_is_the_slope_of_least_squares_in_the_logarithm(values):
    columns = {"gradient": [NAN, 1.0, *values], "activation_rms": [1.0, *values, values[-1]]}
    (row,) = rates(blocks(columns)).to_dict("records")
    fit = stats.linregress(np.arange(len(values)), np.log(values))
    assert row["gradient_rate"] == pytest.approx(math.exp(-fit.slope), rel=1e-9)
    of_stream = stats.linregress(np.arange(len(values) + 1), np.log([*values, values[-1]]))
    assert row["stream_rate"] == pytest.approx(math.exp(of_stream.slope), rel=1e-9)


def test_gradients_that_fall_by_a_factor_per_block_spread_as_equal_steps_do():
    """The standard deviation of n equal steps of ln r is ln r times sqrt((n^2 - 1) / 12)."""
    falling = [NAN, 1e9, *(3.0**i for i in range(5))]
    (row,) = rates(blocks({"gradient": falling, "gradient_parameters": falling})).to_dict("records")
    expected = math.log(3) * math.sqrt((5**2 - 1) / 12)
    assert row["later_gradient_spread"] == pytest.approx(expected)
    assert row["later_parameter_spread"] == pytest.approx(expected)


def test_a_gradient_changes_by_the_factor_between_start_and_training_in_either_direction():
    """Their norms are 5 and 50, and 5 and 1/2; very small ones do not underflow."""
    tiny = [NAN, 3e-300, 4e-300]
    table = pd.concat(
        [
            blocks(*({"gradient_parameters": [NAN, 3.0, 4.0]} for _ in range(2))),
            blocks(
                {"gradient_parameters": [NAN, 30.0, 40.0]},
                {"gradient_parameters": [NAN, 0.3, 0.4]},
                {"gradient_parameters": [NAN, 1.0, 1.0]},  # was not probed at the start
                state="trained",
            ),
            blocks({"gradient_parameters": tiny}, placement="post"),
        ],
        ignore_index=True,
    )
    made = rates(table)
    assert made["block_gradient"].tolist() == pytest.approx(
        [5, 5, 50, 0.5, math.sqrt(2), 5e-300], rel=1e-12, abs=0
    )
    expected = [NAN, NAN, math.log(10), math.log(10), NAN, NAN]
    assert made["gradient_change"].tolist() == pytest.approx(expected, nan_ok=True)


def test_by_shape_has_geometric_means_of_sizes():
    values = [1.0, 2.0, 4.0]
    rows = [row for measure in RATES for row in rates_of(measure, values)]
    models = frame_of_rates(rows).groupby([*SHAPE, "state", "seed"]).first().reset_index()
    estimates = by(by_shape(models, LEVEL), "measure")
    assert list(estimates) == list(RATES)
    for measure, row in estimates.items():
        is_linear = measure in ("smallest", "from_identity", "lost", "gradient_change")
        expected = interval(values) if is_linear else geometric(values)
        assert [row["n"], *(row[end] for end in BOUNDS)] == pytest.approx([3, *expected])


def test_trainability_is_a_mean_of_capped_losses_and_a_count_of_failures():
    """A model that diverged counts as a uniform predictor: ln 65."""
    table = frame_of_losses(
        losses([2.0, 2.2, 3.29]),
        losses([3.0, None, 9.5], learning_rate=0.003),
        losses([1.5], depth=4),
    )
    made = trainability(table, LEVEL)
    assert made[["depth", "learning_rate"]].values.tolist() == [
        [12, 0.001],
        [12, 0.003],
        [4, 0.001],
    ]
    counts = ["n", "failed", "diverged", "unigram"]
    assert made[counts].values.tolist() == [[3, 1, 0, 3.3], [3, 2, 1, 3.3], [1, 0, 0, 3.3]]
    bounds = [interval(v) for v in ([2.0, 2.2, 3.29], [3.0, math.log(65), math.log(65)])]
    np.testing.assert_allclose(made[BOUNDS], [*bounds, [1.5, NAN, NAN]])


def test_an_advantage_is_the_mean_over_rates_minus_the_loss_at_one():
    """The largest is the sensitivity of Wortsman et al. 2023; a divergence counts as ln 65."""

    def at(rate: float, values: Sequence[float | None]) -> list[dict]:
        return losses(values, warmup_steps=0, learning_rate=rate)

    table = frame_of_losses(
        at(0.001, [2.0, 2.5]),
        at(0.003, [2.6, 2.1]),
        at(0.01, [2.9, None]),
        losses([1.0, 1.0], depth=4),  # at one rate
    )
    counts = over_rates(table)[["depth", "seed", "rates", "failures"]]
    assert counts.values.tolist() == [[12, 0, 3, 0], [12, 1, 3, 1]]
    made = advantages(table).set_index(["seed", "learning_rate"])
    mean = (4.6 + math.log(65)) / 3
    expected = [0.5, -0.1, -0.4, mean - 2.5, mean - 2.1, mean - math.log(65)]
    np.testing.assert_allclose(made.sort_index()["advantage"], expected)
    assert list(made["failures"].groupby("seed").unique().map(list)) == [[0], [1]]


def test_placements_and_warm_ups_are_compared_at_the_rates_that_all_of_them_share():
    """A rate that the pilot chose for one of them alone would count as a further rate of it."""
    cells = [{"placement": p, "warmup_steps": w} for p in ("pre", "post") for w in (0, 200)]
    shared = [losses([2.0], learning_rate=rate, **cell) for cell in cells for rate in (0.001, 0.01)]
    table = frame_of_losses(*shared, losses([None], learning_rate=0.03, **cells[1]))
    assert over_rates(table)[["rates", "failures"]].values.tolist() == [[2, 0]] * 4
    assert set(advantages(table)["learning_rate"]) == {0.001, 0.01}
    other = losses([2.0], learning_rate=0.03, depth=5)  # another network has rates of its own
    assert over_rates(frame_of_losses(*shared, other))["rates"].tolist() == [2] * 4


def test_a_warm_up_gains_the_loss_without_it_minus_that_with_the_longest():
    table = frame_of_losses(
        losses([3.0, None], warmup_steps=0),
        losses([2.0, 2.5], warmup_steps=200),
        losses([9.0, 9.0], warmup_steps=20),
        losses([1.0], warmup_steps=0, depth=4),  # never with a warm-up
        losses([1.0, 1.0], warmup_steps=20, depth=5),
        losses([1.0, 1.0], warmup_steps=200, depth=5),  # never without
    )
    gained = [[12, 0, 1.0], [12, 1, math.log(65) - 2.5]]
    for at in ("0.001", "tuned"):  # a single rate is the best
        made = select(warm_ups(table), rate=at)
        np.testing.assert_allclose(made[["depth", "seed", "gained"]], gained)
