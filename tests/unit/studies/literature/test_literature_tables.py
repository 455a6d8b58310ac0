"""From models to what statements compare: by hand, and against power laws."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_recipes import by

from normscope.studies.literature.tabulate import differences, growth, slopes

NAN = math.nan
KEY = {"protocol": "small", "arm": "layernorm", "placement": "pre", "learning_rate": 0.003}


def model(**values: Any) -> dict[str, Any]:
    """A row of runs.csv."""
    return KEY | {"seed": 1, "failed": 0, "pilot_loss": NAN} | values


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
    found = differences(pd.DataFrame(rows[::-1]), "rmsnorm", "pre")
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
    found = differences(pd.DataFrame(rows), "rmsnorm", "pre")
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
    table = slopes(pd.DataFrame(rows))
    assert len(table) == 4
    np.testing.assert_allclose(table["change_slope"], change, atol=1e-9)
    np.testing.assert_allclose(table["gradient_slope"], -gradient, atol=1e-9)


def test_scales_grow_from_the_first_recorded_step_and_from_step_100_on():
    sigmas = {10: 0.5, 50: 0.1, 100: 2.0, 110: NAN, 400: 6.0}
    rows = [model(step=step, sigma=sigma, logit_sd=step) for step, sigma in sigmas.items()]
    rows += [model(seed=2, step=step, sigma=1.0, logit_sd=1.0) for step in (50, 100)]
    rows += [model(seed=3, step=step, sigma=NAN, logit_sd=NAN) for step in (100, 400)]
    table = pd.DataFrame(rows)
    found = by(growth(table), "seed")
    assert found[1]["sigma_growth"] == pytest.approx(math.log(6.0 / 0.5))
    assert found[1]["late_sigma_growth"] == pytest.approx(math.log(3))
    assert found[1]["logit_scale"] == pytest.approx(math.log(400))
    assert found[2]["sigma_growth"] == 0
    assert math.isnan(found[2]["late_sigma_growth"])  # no later step
    assert set(found) == {1, 2}  # nothing was recorded for the third
    assert growth(table.drop(columns=["sigma", "logit_sd"])).empty
