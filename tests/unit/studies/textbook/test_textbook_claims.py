"""The tutorial on norms: right, wrong and empty tables, each decided by one counterexample."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import pytest
from statements import claim_on, verdict

from normscope.studies.textbook import tutorial as textbook
from normscope.studies.textbook.tutorial import AFFINE

NAN = math.nan
SHARED = {
    ("layernorm", "training"): {"same_token": 4},
    ("batchnorm", "training"): {"same_window": 3, "other_windows": 8},
    ("batchnorm", "evaluation"): {},
}
WHERE = ("itself", "same_token", "same_window", "other_windows", "elsewhere")


def tables(**planted: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {f"textbook.{name}": table for name, table in planted.items()}


@pytest.mark.parametrize(("errors", "reads"), [([NAN, 1e-15], "holds"), ([0.293, 1e-15], "fails")])
def test_the_class_is_a_layer_norm_if_it_gives_what_torchs_gives(errors, reads):
    scratch = pd.DataFrame({"d": [2, 768], "error_forward": errors})
    assert verdict("class", tables(scratch=scratch)) == reads


@pytest.mark.parametrize(("share", "reads"), [(0.986, "fails"), (0.3, "holds")])
def test_a_feature_dominates_by_its_share_after_the_norm(share, reads):
    wild = pd.DataFrame({"vector": ["outlier", "outlier_normalized"], "share": [0.993, share]})
    claim = claim_on("dominates", tables(wild_summary=wild))
    assert (claim.verdict, claim.cases[""].effect) == (reads, share)


@pytest.mark.parametrize(("r2", "reads"), [(1.0, "holds"), (0.9, "fails")])
def test_gain_and_bias_undo_if_nothing_is_lost(r2, reads):
    """Of tokens whose means are the same."""
    undo = pd.DataFrame({"sd_ln_scale": [0, 0.3, 0.3], "sd_mean": [0, 0, 1], "r2": [1, r2, 0.1]})
    claim = claim_on("undo", tables(undo=undo))
    assert (claim.verdict, claim.cases[""].effect) == (reads, pytest.approx(1 - r2))


def affine(stds: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Layers with their std after the norm, a value a seed."""
    rows = [
        {"layer": layer, "seed": seed, "std_before": 0.999, "std_after": std, "mean_after": 0.02}
        for layer, values in stds.items()
        for seed, std in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["seed", *AFFINE])


def test_tokens_are_standard_if_they_are_in_every_norm():
    far = claim_on("standard", tables(affine=affine({"a": [0.9, 1.1], "b": [1.7, 1.9]})))
    assert (far.verdict, far.cases[""].effect) == ("fails", pytest.approx(0.8))
    assert "after them 1.80 where it is furthest off (b)" in far.finding.corrected
    near = affine({"a": [1.001, 0.999], "b": [1.005, NAN]})
    assert verdict("standard", tables(affine=near)) == "holds"
    assert verdict("standard", tables(affine=affine({}))) == "no data"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        ("layernorm", {"same_window": 1}),
        ("layernorm", {"other_windows": 1}),
        ("layernorm", {"same_token": 0}),
        ("batchnorm", {"other_windows": 0}),
        ("batchnorm", {"same_window": 0}),
        ("batchnorm", {"same_token": 2}),
    ],
)
def test_statistics_are_within_a_token_or_across_tokens(wrong):
    rows = []
    for (arm, mode), counts in SHARED.items():
        counted = dict.fromkeys(WHERE, 0) | {"itself": 1} | counts
        changes = wrong[1] if wrong and (arm, mode) == (wrong[0], "training") else {}
        rows.append({"arm": arm, "mode": mode} | counted | changes)
    reads = verdict("statistics", tables(sharing=pd.DataFrame(rows)))
    assert reads == ("fails" if wrong else "holds")


@pytest.mark.parametrize(
    ("bn", "ln", "failed", "reads"),
    [
        (0.5, 0.2, 0, "holds"),
        (0.2, 0.5, 0, "fails"),
        (0.5, 0.2, 1, "undecided: LayerNorm learns nothing at batch size 1"),
    ],
)
def test_batch_norm_needs_a_batch_and_layer_norm_none(bn, ln, failed, reads):
    noise = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01]
    rows = [
        {"arm": arm, "placement": "pre", "batch_size": size, "seed": seed, "diverged_at": NAN}
        | {"excess": (size == 1) * excess + e * (arm == "batchnorm"), "failed": failed}
        for arm, excess in (("batchnorm", bn), ("layernorm", ln))
        for size in (1, 32)
        for seed, e in enumerate(noise)
    ]
    assert verdict("batch_size", {"main.batches": pd.DataFrame(rows)}) == reads


def test_the_tables_as_they_are_measured_read_as_the_formulas_have_it():
    """Bessel's factor, one counterexample each; of torch and numpy, not of this package's norm."""
    measured = tables(
        scratch=pd.DataFrame(textbook.scratch()),
        sharing=pd.DataFrame(textbook.sharing()),
        wild_summary=pd.DataFrame(textbook.wild()[1]),
        undo=pd.DataFrame(textbook.undo(tokens=1 << 10)),
    )
    expected = {"class": "fails", "dominates": "fails", "undo": "fails"}
    expected |= {"statistics": "holds"}
    assert {key: verdict(key, measured) for key in expected} == expected
