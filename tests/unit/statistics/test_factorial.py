"""Effects of a crossed design against marginal means and scipy's intervals; seeds are blocks."""

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_recipes import by
from scipy import stats

from normscope.statistics.factorial import contrasts, effects

FACTORS = {
    "center": ["no", "yes"],
    "radius": ["sqrt(d)", "1", "learned"],
    "gain": ["no", "yes"],
    "bias": ["no", "yes"],
}

Levels = dict[str, str]


def crossed(
    response: Callable[[Levels, int], float], seeds: int = 2, factors: dict = FACTORS
) -> pd.DataFrame:
    """A row per cell and seed, shuffled."""
    rows = []
    for seed in range(seeds):
        for cell in itertools.product(*factors.values()):
            levels = dict(zip(factors, cell, strict=True))
            rows.append({"seed": seed, **levels, "y": response(levels, seed)})
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


def effects_by_contrast(
    runs: pd.DataFrame, factors: dict = FACTORS, level: float = 0.95
) -> dict[str, dict]:
    """The row of each contrast."""
    return by(effects(runs, factors, "y", level), "contrast")


def test_every_main_effect_and_every_pair_is_compared_with_the_first_levels():
    two = {"center": FACTORS["center"], "radius": FACTORS["radius"]}
    assert [(str(c), c.kind) for c in contrasts(two)] == [
        ("center: yes − no", "main effect"),
        ("radius: 1 − sqrt(d)", "main effect"),
        ("radius: learned − sqrt(d)", "main effect"),
        ("center: yes − no x radius: 1 − sqrt(d)", "interaction"),
        ("center: yes − no x radius: learned − sqrt(d)", "interaction"),
    ]
    assert len(list(contrasts(FACTORS))) == 5 + 9


def by_marginal_means(y: np.ndarray, contrast: str) -> float:
    """The contrast from the marginal means of an array with one axis per factor of FACTORS."""
    axes, index = [], []
    for part in contrast.split(" x "):
        name, _, levels = part.partition(": ")
        axes.append(list(FACTORS).index(name))
        index.append(FACTORS[name].index(levels.split(" − ")[0]))
    mean = y.mean(axis=tuple(i for i in range(y.ndim) if i not in axes))
    if len(axes) == 1:
        return mean[index[0]] - mean[0]
    i, j = index
    return (mean[i, j] - mean[0, j]) - (mean[i, 0] - mean[0, 0])


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6))
def test_any_response_has_the_effects_of_its_marginal_means_and_scipys_intervals(seed):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((3, 2, 3, 2, 2))
    runs = crossed(lambda c, s: y[s][tuple(FACTORS[f].index(c[f]) for f in FACTORS)], seeds=3)
    for contrast, row in effects_by_contrast(runs, level=0.9).items():
        values = [by_marginal_means(block, contrast) for block in y]
        assert row["n"] == 3
        assert row["effect"] == pytest.approx(np.mean(values), abs=1e-12)
        test = stats.ttest_1samp(values, 0)
        for level, names in ((0.9, ("low", "high")), (1 - 0.1 / 14, ("joint_low", "joint_high"))):
            interval = test.confidence_interval(level)
            assert (row[names[0]], row[names[1]]) == pytest.approx(
                (interval.low, interval.high), abs=1e-9
            )
        assert row["alpha"] == pytest.approx(0.1 / 14)


@pytest.mark.parametrize("lost", ["row", "nan", "inf"])
def test_a_seed_with_a_cell_missing_is_left_out_and_n_says_so(lost):
    noise = np.random.default_rng(0).standard_normal(3 * 24).tolist()
    runs = crossed(lambda c, s: noise.pop() + 10 * s * (c["bias"] == "yes"), seeds=3)
    hit = runs.index[runs["seed"] == 1][5]
    whole = effects_by_contrast(runs[runs["seed"] != 1])
    runs = (
        runs.drop(index=hit)
        if lost == "row"
        else runs.assign(y=runs["y"].where(runs.index != hit, float(lost)))
    )
    table = effects_by_contrast(runs)
    assert {row["n"] for row in table.values()} == {2}
    assert table == whole
