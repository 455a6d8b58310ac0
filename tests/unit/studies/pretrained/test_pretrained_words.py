"""What the statements on residual gain may not say: plausible tables that invite a false word."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from pretrained_claimed import (
    AT_CHANCE,
    CONSISTENT,
    DAMPENS,
    H25,
    INVERTS,
    LAST_BLOCK,
    NORM,
    NOW,
    cells,
    compared,
    evidence,
    frame,
    judged,
    published,
    row,
    verdict,
)
from scipy import stats

from normscope.studies.pretrained.statistics import by_model

# exact interval of 13 of 16
MOST_RIGHT = {"right": 13, "n": 16, "low": 0.5435, "high": 0.9595}
FEW = {"n": 1, "low": math.nan, "high": math.nan, "p": math.nan, "p_holm": math.nan, "reads": "–"}
FEW |= dict.fromkeys(("r", "r_low", "r_high", "r_p", "r_p_holm", "r_deviation"), math.nan)


def of_rmsnorm_alone():
    """No LayerNorm model anywhere."""
    models = [r for r in published() if r["norm"] == "RMSNorm"]
    none = compared(p=math.nan, smallest=math.nan, layernorm=0)
    return evidence(published=models, by_norm=frame([none], none))


@pytest.mark.parametrize("claim", [DAMPENS, CONSISTENT, NORM, INVERTS])
def test_without_a_layernorm_model_nothing_is_said_of_them(claim):
    assert verdict(claim, of_rmsnorm_alone()) == "no data"


def test_one_model_is_consistent_with_none():
    models = [r for r in published() if r["model"] != "pythia-6.9b"]
    assert verdict(CONSISTENT, evidence(published=models)) == "no data"


def test_nothing_from_hooks_contradicts_nothing():
    nothing = evidence(published=[r for r in published() if r["model"] != "pythia-6.9b"])
    assert verdict(LAST_BLOCK, nothing) == "no data"


def test_a_ratio_that_was_not_measured_is_no_comparison():
    """The published one is left."""
    gains = frame(cells("opt-125m", gain_hidden_states=math.nan), cells("")[0])
    line = row(LAST_BLOCK, evidence(sensitivity=gains))
    assert line[NOW] == "undecided: the published two are of other prompts"
    assert "opt-125m" not in line["corrected"]


@pytest.mark.parametrize(
    ("decided", "right", "low", "high"),  # exact intervals of 95%
    [(3, 0, 0.0, 0.708), (6, 3, 0.118, 0.882), (0, 0, math.nan, math.nan)],
)
def test_models_that_are_on_neither_side_of_1_do_not_make_h25_hold(decided, right, low, high):
    """13 of 16 by point estimates; of those whose interval leaves out 1 none or half."""
    accuracy = judged(**MOST_RIGHT, decided=decided, decided_right=right)
    accuracy |= {"decided_low": low, "decided_high": high}
    reads = verdict(H25, evidence(h25=frame([accuracy], AT_CHANCE)))
    assert reads == "several labs: not told apart from a coin"


def test_h25_in_the_sweep_is_told_where_it_is_right_for_every_model():
    """8 of 8 has the exact interval [0.63, 1], and is published beside 7 of 16."""
    sweep = judged(8, 8, 0.631, 1.0) | {"experiment": "sweep", "verdict": "VALIDATED"}
    both = frame([AT_CHANCE, sweep], AT_CHANCE)
    line = row(H25, evidence(h25=both))
    assert re.search("8 (of 8|models)", line["corrected"])
    assert line[NOW] == "several labs: not told apart from a coin; Pythia: better than a coin"


def test_holm_is_over_the_models_that_a_statement_is_of():
    """Eight published models at 1 and one here: of nine p the least is to be below 0.05/9."""
    z = stats.t.isf(0.02, 24)  # two-sided p 0.04
    logs = np.linspace(-1, 1, 25)
    logs = 0.01 * logs / logs.std(ddof=1) + 0.01 * z / 5
    measured = observations("measured", "bloom-3b", logs)
    first = ["gpt2-xl", "gpt2-large", "gpt2-medium", "pythia-6.9b", "gpt-j-6b", "a", "b", "c"]
    at_one = [observations("gpt2", name, logs - logs.mean()) for name in first]
    models = by_model(pd.concat([*at_one, measured]), 0.95, 99)
    assert models.iloc[-1]["p"] == pytest.approx(0.04)
    rms = [r for r in published() if r["norm"] == "RMSNorm"]
    planted = evidence(published=[*models.to_dict("records"), *rms])
    assert verdict(DAMPENS, planted) == "not shown: not all are told apart from 1"
    alone = evidence(published=[*models.to_dict("records")[-1:], *rms])
    assert verdict(DAMPENS, alone) == "rejected"


def observations(study: str, name: str, logs: np.ndarray) -> pd.DataFrame:
    entropy = np.cos(np.arange(25))
    table = pd.DataFrame({"gain": np.exp(logs), "entropy": entropy, "words": [3, 4, 5, 6, 7] * 5})
    key = {"experiment": study, "model": name, "family": name, "norm": "LayerNorm"}
    return table.assign(**key, dtype="fp32", category="Novel", prompt=[f"p{i}" for i in range(25)])
