"""The recall test in tables of the page: what they show."""

import math
from typing import Any

import pandas as pd
import pytest
from page_recipes import shown

from normscope.studies.recall.pages import factor_table

NAN = math.nan


def effect(contrast: str = "gain: yes − no", response: str = "ln loss", **changes: Any) -> dict:
    """An effect of 10 seeds whose joint interval is above 0."""
    bounds = {"effect": 0.5, "low": 0.25, "high": 0.75, "joint_low": 0.1, "joint_high": 0.9}
    return {"response": response, "contrast": contrast, "n": 10} | bounds | changes


SIGNED = "+0.500 [+0.250, +0.750]"
BELOW = {"effect": -0.5, "low": -0.75, "high": -0.25, "joint_low": -0.9, "joint_high": -0.1}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        (BELOW, "−0.500 [−0.750, −0.250]*"),
        ({"joint_low": 0.0}, SIGNED),
        ({"n": 6}, f"{SIGNED}*"),
        ({"n": 5}, SIGNED),
        ({"n": 1, "low": NAN, "high": NAN, "joint_low": NAN, "joint_high": NAN}, "+0.500"),
    ],
)
def test_an_effect_has_a_star_if_its_joint_interval_excludes_0_with_enough_seeds(changes, reads):
    (row,) = shown(factor_table(pd.DataFrame([effect(**changes)])))
    assert row["ln loss"] == reads
