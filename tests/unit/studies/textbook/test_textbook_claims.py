"""The tutorial's statements on norms, each decided by one counterexample."""

from collections.abc import Sequence

import pandas as pd
import pytest
from statements import claim_on, verdict

from normscope.studies.textbook import tutorial
from normscope.studies.textbook.claims import COUNTS
from normscope.studies.textbook.tables import TABLES


def affine(**stds: Sequence[float | None]) -> dict[str, pd.DataFrame]:
    """Layers with their std after the norm, one value per seed."""
    rows = [
        {"layer": layer, "seed": seed, "std_before": 0.999, "std_after": std, "mean_after": 0.02}
        for layer, values in stds.items()
        for seed, std in enumerate(values)
    ]
    return {"textbook.affine": pd.DataFrame(rows, columns=TABLES["affine"].names)}


def test_tokens_are_standard_if_they_are_in_every_norm():
    far = claim_on("standard", affine(a=[0.9, 1.1], b=[1.7, 1.9]))
    assert (far.verdict, far.cases[""].effect) == ("fails", pytest.approx(0.8))
    assert "after them 1.80 where it is furthest off (b)" in far.finding.corrected
    assert verdict("standard", affine(a=[1.001, 0.999], b=[1.005, None])) == "holds"
    assert verdict("standard", affine()) == "no data"


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
    reads = verdict("statistics", {"textbook.sharing": pd.DataFrame(rows)})
    assert reads == ("fails" if wrong else "holds")


@pytest.mark.parametrize(
    ("key", "reads", "effect"),
    [
        # at d = 2 the tutorial's output is sqrt(1/2) of torch's
        ("class", "fails", 1 - 0.5**0.5),
        # one of 100 features has (d - 1) / d of the energy
        ("dominates", "fails", 0.99),
        # 1 - exp(a^2) / exp(2 a^2) at a = 1, with means all the same
        ("undo", "fails", 0.632),
        ("statistics", "holds", None),
    ],
)
def test_the_measured_tables_decide_as_the_formulas_say(key, reads, effect):
    rows = {
        "scratch": tutorial.scratch()[1:],
        "sharing": tutorial.sharing(),
        "wild_summary": tutorial.wild()[1],
        "undo": tutorial.undo(tokens=1 << 10),
    }
    tables = {f"textbook.{name}": pd.DataFrame(table) for name, table in rows.items()}
    claim = claim_on(key, tables)
    assert claim.verdict == reads
    if effect is not None:
        assert claim.cases[""].effect == pytest.approx(effect, rel=0.05)
