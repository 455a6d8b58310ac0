"""From blocks and models to shapes: against scipy, by hand; what is missing is left out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from depth_evidence import frame_of_losses, frame_of_rates, losses, rate
from hypothesis import given
from hypothesis import strategies as st
from recall_recipes import by
from scipy import stats

from normscope.io.csvfile import write_csv
from normscope.statistics.summary import select
from normscope.studies.depth.measures import MEASURES, RELATIVE
from normscope.studies.depth.tabulate import (
    MODEL,
    RATES,
    SHAPE,
    by_block,
    by_layer,
    by_shape,
    rates,
    sensitivity,
    trainability,
    warm_ups,
)

LEVEL = 0.9
HEAD = {
    "arm": "layernorm",
    "placement": "pre",
    "residual": True,
    "init": "gpt2",
    "depth": 4,
    "state": "start",
}
NAN = math.nan


def blocks(columns: Mapping[str, Sequence[float]], seed: int = 1, **changes) -> list[dict]:
    """Rows of blocks.csv of a model: values of each measure from block 0 on."""
    n = max(len(values) for values in columns.values())
    rows = []
    for i in range(n):
        signals = {measure: values[i] for measure, values in columns.items()}
        rows.append(HEAD | {"seed": seed, "block": i} | signals | changes)
    return rows


def frame(rows: Sequence[dict]) -> pd.DataFrame:
    return pd.DataFrame(list(rows)).reindex(columns=[*HEAD, "seed", "block", *MEASURES])


def interval(values: Any) -> tuple[float, float, float]:
    bounds = stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    return float(np.mean(values)), float(bounds.low), float(bounds.high)


SIZE_OF = "activation_rms"
SIZE = {1: [1.0, 2.0], 2: [1.5, 2.5], 3: [0.8, 9.0]}
ANGLE = {1: [80.0, -1.0], 2: [90.0, 0.0], 3: [85.0, 3.0]}


def test_a_size_by_block_is_averaged_in_logarithms_and_an_angle_as_it_is():
    rows = []
    for seed in (1, 2, 3):
        rows += blocks({"gradient": SIZE[seed], "angle_mlp": ANGLE[seed]}, seed)
    estimates = by(by_block(frame(rows), LEVEL), "measure", "block")
    names = ("gradient", "angle_mlp", RELATIVE)
    assert list(estimates) == [(name, block) for block in (0, 1) for name in names]
    for block in (0, 1):
        row = estimates["gradient", block]
        expected = np.exp(interval(np.log([SIZE[s][block] for s in (1, 2, 3)])))
        assert [row[k] for k in ("mean", "low", "high")] == pytest.approx(list(expected))
        assert row["n"] == 3
        row = estimates["angle_mlp", block]
        expected = interval([ANGLE[s][block] for s in (1, 2, 3)])
        assert [row[k] for k in ("mean", "low", "high")] == pytest.approx(list(expected))


def test_a_gradient_beside_that_at_the_last_block_is_of_the_same_model():
    """2/1 and 12/4; the mean of each alone would give 24^(1/2) / 2."""
    rows = blocks({"gradient": [NAN, 2.0, 1.0]}, 1) + blocks({"gradient": [NAN, 12.0, 4.0]}, 2)
    estimates = by(by_block(frame(rows), LEVEL), "measure", "block")
    assert (RELATIVE, 0) not in estimates
    assert estimates[RELATIVE, 1]["mean"] == pytest.approx(math.sqrt(6))
    low, high = np.exp(interval(np.log([2.0, 3.0]))[1:])
    assert (estimates[RELATIVE, 1]["low"], estimates[RELATIVE, 1]["high"]) == pytest.approx(
        (low, high)
    )
    assert estimates[RELATIVE, 2]["mean"] == pytest.approx(1)


def test_where_the_last_blocks_gradient_is_missing_or_0_nothing_is_beside_it():
    for last in (NAN, 0.0):
        estimates = by_block(frame(blocks({"gradient": [NAN, 2.0, last]})), LEVEL)
        assert RELATIVE not in set(estimates["measure"])


@pytest.mark.parametrize("bad", [0.0, NAN, math.inf, -1.0])
def test_a_size_that_has_no_logarithm_is_left_out(bad):
    rows = [row for seed, v in enumerate([2.0, bad, 8.0]) for row in blocks({SIZE_OF: [v]}, seed)]
    (row,) = by_block(frame(rows), LEVEL).to_dict("records")
    assert (row["n"], row["mean"]) == (2, pytest.approx(4.0))


def test_a_singular_value_of_0_is_a_number():
    rows = [row for seed, v in enumerate([0.0, 0.5]) for row in blocks({"smallest": [v]}, seed)]
    (row,) = by_block(frame(rows), LEVEL).to_dict("records")
    assert (row["n"], row["mean"]) == (2, 0.25)


def test_what_no_model_has_has_no_row():
    rows = blocks({"gradient": [NAN, 0.0], "activation_rms": [1.0, 2.0]})
    estimates = by_block(frame(rows), LEVEL)
    assert estimates["measure"].tolist() == ["activation_rms"] * 2
    assert estimates[["low", "high"]].isna().all(axis=None)  # of one seed
    assert estimates["n"].tolist() == [1, 1]


@pytest.mark.parametrize(
    "changes",
    [{"arm": "rmsnorm"}, {"placement": "post"}, {"residual": False}, {"init": "xavier"},
     {"depth": 5}, {"state": "trained"}],
    ids=lambda c: next(iter(c)),
)  # fmt: skip
def test_models_that_differ_in_more_than_their_seed_are_apart(changes):
    rows = blocks({"gradient": [NAN, 2.0, 2.0]}) + blocks({"gradient": [NAN, 8.0, 2.0]}, **changes)
    estimates = by_block(frame(rows), LEVEL)
    of_first = estimates[(estimates["block"] == 1) & (estimates["measure"] == "gradient")]
    assert of_first["mean"].tolist() == pytest.approx([2.0, 8.0])
    of_models = rates(frame(rows))
    assert len(of_models) == 2
    assert len(by_shape(of_models, LEVEL)) == 2  # of what the gradient keeps
    key = next(iter(changes))
    assert list(of_models[key]) == [HEAD[key], changes[key]]


def test_rates_are_factors_per_block_without_the_first():
    """Of a gradient 3 times as large each block towards the input, a stream 2 times as output."""
    columns = {
        "activation_rms": [99.0, 1.0, 2.0, 4.0, 8.0],
        "gradient": [NAN, 1e9, 9.0, 3.0, 1.0],
        "gradient_parameters": [NAN, 5.0, 6.0, 7.0, 0.25],
        "smallest": [NAN, 0.0, NAN, 0.6, 0.5],
        "largest": [NAN, 77.0, NAN, 3.0, 1.2],
        "branch": [NAN, 1.0, NAN, 2.5, 0.8],  # 2 of 2.5, 0.5 of 0.8
        "lost": [NAN, 0.0, NAN, 2.25, 2.0],
    }
    (row,) = rates(frame(blocks(columns))).to_dict("records")
    assert row["gradient_rate"] == pytest.approx(3)
    assert row["gradient_kept"] == pytest.approx(9)
    assert row["stream_rate"] == pytest.approx(2)
    assert row["stream_growth"] == pytest.approx(8)
    assert row["last_gradient"] == 0.25
    assert (row["smallest"], row["largest"], row["lost"]) == (0.5, 3.0, 2.0)
    assert row["from_identity"] == pytest.approx(0.8)
    assert [row[k] for k in MODEL] == [*HEAD.values(), 1]


def test_a_layer_is_a_block_or_what_a_block_is_made_of():
    """A gradient of 1/2, ..., 2^-8 towards the input: two sublayers of 2^-1/2, four matrices."""
    models = rates(frame(blocks({"gradient": [NAN, *(2.0**i for i in range(8))]})))
    assert models["gradient_near"].item() == pytest.approx(2.0**-6)
    factors = by_layer(models).set_index("layer")["factor"].to_dict()
    expected = {"block": 0.5, "sublayer": math.sqrt(0.5), "matrix": 0.5**0.25}
    assert factors == pytest.approx(expected)
    shallow = rates(frame(blocks({"gradient": [NAN, 9.0, *[1.0] * 6]})))
    assert math.isnan(shallow["gradient_near"].item())  # the first block is no part of it


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=9))
def test_a_rate_is_the_slope_of_least_squares_in_the_logarithm(values):
    columns = {"gradient": [NAN, 1.0, *values], "activation_rms": [1.0, *values, values[-1]]}
    (row,) = rates(frame(blocks(columns))).to_dict("records")
    fit = stats.linregress(np.arange(len(values)), np.log(values))
    assert row["gradient_rate"] == pytest.approx(math.exp(-fit.slope), rel=1e-9)
    of_stream = stats.linregress(np.arange(len(values) + 1), np.log([*values, values[-1]]))
    assert row["stream_rate"] == pytest.approx(math.exp(of_stream.slope), rel=1e-9)


def test_rows_in_another_order_give_the_same_rates():
    columns = {"activation_rms": [9.0, 1.0, 2.0, 4.0], "gradient": [NAN, 5.0, 3.0, 1.0]}
    rows = blocks(columns)
    expected, reordered = rates(frame(rows)), rates(frame(rows[::-1]))
    pd.testing.assert_frame_equal(reordered, expected)


def test_a_gradient_that_vanishes_has_no_rate_but_what_is_kept_is_0():
    columns = {"gradient": [NAN, 0.0, 0.0, 1e-200, 1.0], "activation_rms": [1.0] * 5}
    (row,) = rates(frame(blocks(columns))).to_dict("records")
    assert math.isnan(row["gradient_rate"])
    assert row["gradient_kept"] == 0
    assert row["stream_rate"] == pytest.approx(1)


@pytest.mark.parametrize("depth", [1, 2])
def test_of_few_blocks_there_is_no_rate(depth):
    """No gradient beside the first block's, or only one."""
    columns = {"gradient": [NAN, 2.0, 1.0][: depth + 1], "activation_rms": [1.0] * (depth + 1)}
    (row,) = rates(frame(blocks(columns, depth=depth))).to_dict("records")
    assert math.isnan(row["gradient_rate"])
    assert math.isnan(row["gradient_kept"]) == (depth == 1)
    assert math.isnan(row["stream_rate"]) == (depth == 1)
    assert math.isnan(row["smallest"])


def test_by_shape_has_geometric_means_of_sizes():
    values = {1: 1.0, 2: 2.0, 3: 4.0}
    rows = [rate(seed=s, **dict.fromkeys(RATES, v)) for s, v in values.items()]
    estimates = by(by_shape(frame_of_rates(rows), LEVEL), "measure")
    assert list(estimates) == list(RATES)
    for measure, row in estimates.items():
        logs = measure not in ("smallest", "from_identity", "lost")
        expected = interval(np.log([1.0, 2.0, 4.0]) if logs else [1.0, 2.0, 4.0])
        expected = np.exp(expected) if logs else expected
        assert [row[k] for k in ("mean", "low", "high")] == pytest.approx(list(expected))
        assert row["n"] == 3


@pytest.mark.parametrize("bad", [NAN, 0.0, math.inf])
def test_by_shape_leaves_out_what_has_no_logarithm(bad):
    rows = [rate(seed=s, gradient_kept=v) for s, v in enumerate([3.0, bad, 12.0])]
    estimate = by(by_shape(frame_of_rates(rows), LEVEL), "measure")["gradient_kept"]
    assert (estimate["n"], estimate["mean"]) == (2, pytest.approx(6))


def test_trainability_is_a_mean_of_capped_losses_and_a_count_of_failures():
    """A model that diverged counts as one that knows nothing: ln 65."""
    table = frame_of_losses(
        losses([2.0, 2.2, 3.29]),
        losses([3.0, None, 9.5], learning_rate=0.003),
        losses([1.5], depth=4),
    )
    made = by(trainability(table, LEVEL), "depth", "learning_rate", "warmup_steps")
    row = made[12, 0.001, 40]
    assert (row["n"], row["failed"], row["diverged"], row["unigram"]) == (3, 1, 0, 3.3)
    assert [row[k] for k in ("mean", "low", "high")] == pytest.approx(interval([2.0, 2.2, 3.29]))
    row = made[12, 0.003, 40]
    assert (row["n"], row["failed"], row["diverged"]) == (3, 2, 1)
    assert row["mean"] == pytest.approx(np.mean([3.0, math.log(65), math.log(65)]))
    row = made[4, 0.001, 40]
    assert (row["n"], row["failed"], row["mean"]) == (1, 0, 1.5)
    assert math.isnan(row["low"])


def test_sensitivity_is_the_mean_over_rates_less_the_best():
    """As Wortsman et al. 2023: a divergence counts as ln V, here that of 65 characters."""
    slow, fast = {"warmup_steps": 0}, {"warmup_steps": 0, "learning_rate": 0.003}
    table = frame_of_losses(
        losses([2.0, 2.5], **slow),
        losses([2.6, 2.1], **fast),
        losses([2.9, None], **fast | {"learning_rate": 0.01}),
        losses([1.0, 1.0], depth=4),  # at one rate
    )
    made = by(sensitivity(table), "depth", "warmup_steps", "seed")
    assert list(made) == [(12, 0, 0), (12, 0, 1)]
    first, second = made[12, 0, 0], made[12, 0, 1]
    assert first["sensitivity"] == pytest.approx(0.6 / 3 + 0.9 / 3)
    assert second["sensitivity"] == pytest.approx((0.4 + math.log(65) - 2.1) / 3)
    assert [(r["rates"], r["failures"]) for r in (first, second)] == [(3, 0), (3, 1)]


def test_a_warm_up_gains_what_the_longest_one_takes_off_the_loss_without():
    table = frame_of_losses(
        losses([3.0, None], warmup_steps=0),
        losses([2.0, 2.5], warmup_steps=200),
        losses([9.0, 9.0], warmup_steps=20),
        losses([1.0], warmup_steps=0, depth=4),  # without a warm-up beside it
        losses([1.0, 1.0], warmup_steps=20, depth=5),
        losses([1.0, 1.0], warmup_steps=200, depth=5),  # nothing without
    )
    gained = {(12, 0): 1.0, (12, 1): math.log(65) - 2.5}
    for at in (f"{table['learning_rate'][0]:g}", "tuned"):  # of one rate it is the best
        made = by(select(warm_ups(table), rate=at), "depth", "seed")
        assert {key: row["gained"] for key, row in made.items()} == pytest.approx(gained)


def test_a_warm_up_is_tuned_apart_from_none():
    """Without it the slow rate is best over the other seeds, with it the fast one."""
    slow, fast = {"learning_rate": 0.001}, {"learning_rate": 0.01}
    table = frame_of_losses(
        *(losses([v] * 2, warmup_steps=0, **at) for v, at in ((3.0, slow), (3.5, fast))),
        *(losses([v] * 2, warmup_steps=200, **at) for v, at in ((2.5, slow), (2.0, fast))),
    )
    made = warm_ups(table).groupby("rate")["gained"].first()
    assert made.to_dict() == pytest.approx({"0.001": 0.5, "0.01": 1.5, "tuned": 1.0})


@pytest.mark.parametrize("table", [by_block, by_shape, trainability])
def test_tables_of_nothing_have_their_columns(table, tmp_path):
    empty: dict[Any, pd.DataFrame] = {
        by_block: frame([]),
        by_shape: frame_of_rates([]),
        trainability: frame_of_losses(),
    }
    made = table(empty[table], LEVEL)
    assert made.empty
    assert set(SHAPE) <= set(made.columns)
    assert rates(frame([])).empty
    assert sensitivity(frame_of_losses()).empty
    write_csv(tmp_path / "empty.csv", made)
    assert list(pd.read_csv(tmp_path / "empty.csv").columns) == list(made.columns)
