"""Signals by depth, trainings and LayerNorm from scratch in tables."""

import math
from typing import Any

import pandas as pd
from page_recipes import config, shown

from normscope.studies.depth.pages import rate_table, section
from normscope.studies.textbook.pages import scratch_table
from normscope.studies.textbook.pages import section as textbook_section

NAN = math.nan
SHAPE = {"arm": "layernorm", "placement": "pre", "residual": True, "init": "gpt2", "depth": 12}


def rate(measure: str, mean: float, n: int = 6, **changes: Any) -> dict[str, Any]:
    """A row of by_shape.csv."""
    bounds = {"low": NAN, "high": NAN} if n < 2 else {"low": mean / 2, "high": mean * 2}
    return {**SHAPE, "state": "start", "measure": measure, "n": n, "mean": mean, **bounds} | changes


def test_a_network_has_its_rates_with_intervals_and_dashes():
    rows = [
        rate("gradient_rate", 0.5, n=2),
        rate("smallest", 0.00001),
        rate("last_gradient", 7.0),  # in no column
        rate("stream_rate", 1.5, n=1, residual=False, depth=4),
    ]
    deep, shallow = shown(rate_table(pd.DataFrame(rows)))
    dashes = ("gradient, second to last", "stream per block", "stream, last to first", "largest")
    assert deep == {
        **{"norm": "LayerNorm", "placement": "pre", "residual": "yes", "start": "gpt2"},
        **{"blocks": "12", "state": "start", "n": "2–6"},
        **{"gradient per block": "0.500 [0.250, 1.00]"},
        **{"least singular value": "1.00e-05 [5.00e-06, 2.00e-05]"},
        **dict.fromkeys([*dashes, "farthest from 1, over norm of J", "lost a token"], "–"),
    }
    assert (shallow["residual"], shallow["blocks"], shallow["n"]) == ("no", "4", "1")
    assert shallow["stream per block"] == "1.50"


def test_a_section_has_the_losses_of_schedules_its_sizes_and_numbers():
    schedule = SHAPE | {"learning_rate": 0.001, "warmup_steps": 40, "steps": 600, "n": 2}
    losses = {"failed": 2, "diverged": 1, "mean": 4.0, "low": 3.9, "high": 4.1, "unigram": 3.3}
    tables = {
        "by_shape": pd.DataFrame([rate("smallest", 0.5), rate("last_gradient", 7.0)]),
        "trainability": pd.DataFrame([schedule | losses]),
    }
    whole = config()
    part = section(whole.depth, tables, whole.settings)
    assert len(part.tables["rates"].rows) == 1
    (row,) = part.tables["trainability"].texts()
    assert row[:8] == "LayerNorm pre yes gpt2 12 0.001 40 600".split()
    assert row[8:] == ["2, 1 diverged", "2", "4.000", "[3.900, 4.100]", "−0.700"]
    assert part.words["kept"] == "learning rate 0.001 with 200 steps of warm-up (gpt2)"
    assert part.words["seeds"] == 6


def test_the_class_from_scratch_is_beside_torchs():
    columns = "d ratio theory error_forward error_backward error_ours finite".split()
    rows = [[1, NAN, 0.0, NAN, NAN, 0.0, False], [4, 0.866, 0.866, 0.134, 0.25, 1e-16, True]]
    scratch = pd.DataFrame(rows, columns=columns)
    assert scratch_table(scratch).texts() == [
        ["1", "–", "0.0000", "–", "–", "< 0.000001", "no"],
        ["4", "0.8660", "0.8660", "0.134", "0.250", "< 0.000001", "yes"],
    ]
    whole = config()
    part = textbook_section(whole.textbook, {"scratch": scratch}, whole.settings)
    assert list(part.tables) == ["scratch"]
