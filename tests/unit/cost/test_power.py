"""What would decide the open statements, by hand."""

import math
from typing import Any

import pytest
import yaml
from processes import ROOT

from normscope.config import load
from normscope.cost.power import power_table, seconds_a_model
from normscope.cost.projection import Costs
from normscope.cost.reference import Reference

CONFIG = load(yaml.safe_load((ROOT / "config.yaml").read_text()))
JACOBIAN = CONFIG.studies["jacobian"]
JOBS = list(JACOBIAN.jobs())
# every job takes 30 s, whatever its size: measured
COSTS = Costs(Reference(machine="m", round_s=1, start_s=1, jobs=[]), dict.fromkeys(JOBS, 30.0), 1.0)


def claim(**changes: Any) -> dict[str, Any]:
    numbers = {"n": 12, "effect": 0.1, "spread": 0.2, "units_needed": 44.0, "models_a_unit": 6}
    return {"key": "costs", "verdict": "undecided", "reason": "p is 0.2"} | numbers | changes


def test_a_model_costs_its_share_of_the_jobs_of_its_study():
    models = sum(len(stack.seeds) for stack in JACOBIAN.trainings().values())
    assert seconds_a_model(JACOBIAN, COSTS) == pytest.approx(30 * len(JOBS) / models)


def test_open_statements_take_the_seeds_that_are_missing_at_all_their_settings():
    """32 seeds more, of 6 models each."""
    claims = [claim(), claim(key="held", verdict="holds"), claim(key="facts", units_needed=None)]
    claims.append(claim(key="enough", n=50))
    table = power_table(
        {"claims": claims}, {"costs": "jacobian", "enough": "jacobian"}, CONFIG, COSTS
    )
    assert list(table["statement"]) == ["costs", "facts", "enough"]
    assert table["minutes"][0] == pytest.approx(32 * 6 * seconds_a_model(JACOBIAN, COSTS) / 60)
    assert math.isnan(table["needed"][1])
    assert math.isnan(table["minutes"][1])
    assert table["minutes"][2] == 0
