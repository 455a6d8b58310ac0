"""The tutorial's statements on norms: readings that one counterexample decides."""

import pandas as pd
import pytest
from normscope.studies.textbook.claims import COUNTS
from readings import finding

from normscope.studies.textbook import tutorial
from normscope.studies.textbook.tables import TABLES


def affine(**measures: float) -> dict[str, pd.DataFrame]:
    """A norm that is as it should be, and one of another seed that differs."""
    sound = {"mean_before": 0.0, "std_before": 1.0, "mean_after": 0.0, "std_after": 1.0}
    norm = {"layer": "a", "recovered": 1.0, **sound}
    rows = [norm | {"seed": 0}, norm | measures | {"seed": 1}]
    return {"textbook.affine": pd.DataFrame(rows, columns=TABLES["affine"].names)}


@pytest.mark.parametrize(
    ("key", "reading", "wrong"),
    [
        # a hundredth in the mean or in the standard deviation, on either side
        ("standard", "output", [{"mean_after": 0.011}, {"std_after": 1.011}, {"std_after": 0.989}]),
        ("standard", "before_affine", [{"mean_before": -0.011}, {"std_before": 0.989}]),
        ("undo", "inputs", [{"recovered": 0.98}]),
    ],
)
def test_one_norm_of_one_model_refutes(key, reading, wrong):
    slightly = {"mean_before": 0.005, "std_before": 0.995, "mean_after": 0.005, "std_after": 1.005}
    assert finding(key, reading, affine(**slightly, recovered=0.995)).answer == "holds"
    for measures in wrong:
        assert finding(key, reading, affine(**measures)).answer == "fails", measures


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {("layernorm", "same_window"): 1},
        {("layernorm", "other_windows"): 1},
        {("layernorm", "same_token"): 0},
        {("batchnorm", "other_windows"): 0},
        {("batchnorm", "same_window"): 0},
        {("batchnorm", "same_token"): 2},
    ],
)
def test_statistics_are_within_a_token_or_across_tokens(wrong):
    shared = {
        ("layernorm", "training"): {"same_token": 4},
        ("batchnorm", "training"): {"same_window": 3, "other_windows": 8},
        ("batchnorm", "evaluation"): {},
    }
    rows = []
    for (arm, mode), counts in shared.items():
        counted = dict.fromkeys(COUNTS, 0) | {"itself": 1} | counts
        if mode == "training":
            counted |= {name: n for (of, name), n in wrong.items() if of == arm}
        rows.append({"arm": arm, "mode": mode} | counted)
    found = finding("statistics", "training", {"textbook.sharing": pd.DataFrame(rows)})
    assert found.answer == ("fails" if wrong else "holds")


@pytest.mark.parametrize(
    ("key", "reading", "answer", "effect"),
    [
        # at d = 2 the tutorial's output is sqrt(1/2) of torch's, at d = 128 sqrt(127/128)
        ("class", "formula", "fails", 1 - 0.5**0.5),
        ("class", "in_practice", "holds", 1 - (127 / 128) ** 0.5),
        # one of 100 features has (d - 1) / d of the energy
        ("dominates", "feature", "fails", 0.99),
        # sqrt(2 - 2 E s) of four Gaussian tokens
        ("batch_size", "good_statistics", "holds", tutorial.batch_theory(4)),
        ("statistics", "training", "holds", None),
    ],
)
def test_the_measured_tables_decide_as_the_formulas_say(key, reading, answer, effect):
    rows = {
        "scratch": tutorial.scratch()[1:],
        "sharing": tutorial.sharing(),
        "wild_summary": tutorial.wild()[1],
        "undo": tutorial.undo(tokens=1 << 10),
        "batches": tutorial.batches(0.95, sizes=(4, 256)),
    }
    planted = {f"textbook.{name}": pd.DataFrame(table) for name, table in rows.items()}
    found = finding(key, reading, planted)
    assert found.answer == answer
    if effect is not None:
        assert found.cases[""].effect == pytest.approx(effect, rel=0.1, abs=1e-9)
