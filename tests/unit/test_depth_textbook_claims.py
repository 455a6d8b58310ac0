"""The tutorial on norms: right, wrong and empty tables, and what is said of each."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
from depth_evidence import ENTRIES

from normscope.io.csvfile import write_csv
from normscope.studies.textbook import claims as t
from normscope.studies.textbook import probe as textbook
from normscope.studies.textbook.probe import AFFINE

NAN = math.nan
SCRATCH = [
    {"d": 1, "ratio": NAN, "error_forward": NAN},
    {"d": 2, "ratio": math.sqrt(1 / 2), "error_forward": 0.293},
    {"d": 768, "ratio": math.sqrt(767 / 768), "error_forward": 0.00065},
]
SHARED = {
    ("layernorm", "training"): {"same_token": 4},
    ("batchnorm", "training"): {"same_window": 3, "other_windows": 8},
    ("batchnorm", "evaluation"): {},
}
WHERE = ("itself", "same_token", "same_window", "other_windows", "elsewhere")
Tables = dict[str, pd.DataFrame]


def affine(stds: Mapping[str, Sequence[float]], recovered: float = 0.4, **changes) -> pd.DataFrame:
    """Layers with their std after the norm, a value a seed."""
    rows = [
        {"layer": layer, "index": i, "seed": seed, "std_before": 0.999, "std_after": std,
         "mean_after": 0.02, "recovered": recovered} | changes
        for i, (layer, values) in enumerate(stds.items())
        for seed, std in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["seed", *AFFINE])


def sharing(**changes: Mapping[str, float]) -> pd.DataFrame:
    """Counts by arm and mode, ``batchnorm_training``."""
    rows = []
    for (arm, mode), counts in SHARED.items():
        counted = dict.fromkeys(WHERE, 0.0) | {"itself": 1.0} | counts
        rows.append({"arm": arm, "mode": mode} | counted | changes.get(f"{arm}_{mode}", {}))
    return pd.DataFrame(rows)


def batches(bn: Sequence[float], ln: Sequence[float]) -> pd.DataFrame:
    rows = []
    for i, (b, v) in enumerate(zip(bn, ln, strict=True)):
        rows.append({"tokens": 2**i, "arm": "batchnorm", "mean": b, "theory": 0.5,
                     "error": "Expected more than 1 value" if math.isnan(b) else NAN})  # fmt: skip
        rows.append({"tokens": 2**i, "arm": "layernorm", "mean": v, "theory": 0.0, "error": NAN})
    return pd.DataFrame(rows)


def wild(after: float) -> pd.DataFrame:
    shares = {"outlier": 0.993, "outlier_normalized": after}
    return pd.DataFrame([{"vector": name, "share": share} for name, share in shares.items()])


def undo(*r2: float) -> pd.DataFrame:
    rows = [{"sd_ln_scale": 0.3 * i, "sd_mean": 0.0, "r2": v} for i, v in enumerate(r2)]
    return pd.DataFrame([*rows, {"sd_ln_scale": 9.0, "sd_mean": 1.0, "r2": 0.111}])


def tables(**changes: pd.DataFrame) -> Tables:
    return {
        "scratch": pd.DataFrame(SCRATCH),
        "affine": affine({"blocks.0": [0.9, 1.1], "final_norm": [1.7, 1.9]}),
        "wild_summary": wild(0.986),
        "undo": undo(1.0, 0.9),
        "sharing": sharing(),
        "batches": batches([NAN, 0.9, 0.1], [0.0, 0.0, 0.0]),
    } | changes


def test_the_class_is_a_layer_norm_if_it_gives_what_torchs_gives():
    found = t.is_layer_norm(tables(), ENTRIES)
    assert found.verdict == "fails"
    assert "0.7071 at d = 2; 0.9993 at d = 768" in found.corrected
    assert "up to 0.293, 0.000650 at d = 768" in found.corrected
    same = pd.DataFrame(SCRATCH).assign(error_forward=[NAN, 1e-15, 1e-12])
    assert t.is_layer_norm(tables(scratch=same), ENTRIES).verdict == "holds"
    one = pd.DataFrame(SCRATCH).assign(error_forward=[NAN, 1e-15, 1e-8])
    assert t.is_layer_norm(tables(scratch=one), ENTRIES).verdict == "fails"


def test_tokens_are_standard_if_they_are_in_every_norm():
    found = t.tokens_are_standard(tables(), ENTRIES)
    assert found.verdict == "fails"
    assert "after them 1.80 where it is furthest off (final_norm)" in found.corrected
    assert "over 2 trained models" in found.corrected
    assert "before gain and bias 0.999 to 0.999" in found.corrected
    assert "off by up to 0.0200" in found.corrected
    good = affine({"a": [1.001, 0.999], "b": [1.005, 1.003]})
    assert t.tokens_are_standard(tables(affine=good), ENTRIES).verdict == "holds"
    low = affine({"a": [1.0, 1.0], "b": [0.98, 0.98]})
    found = t.tokens_are_standard(tables(affine=low), ENTRIES)
    assert found.verdict == "fails"
    assert "0.980 where it is furthest off (b)" in found.corrected


def test_a_feature_dominates_by_its_share_after_the_norm():
    found = t.no_feature_dominates(tables(), ENTRIES)
    assert found.verdict == "fails"
    assert "99.3% before, 98.6% after" in found.corrected
    assert t.no_feature_dominates(tables(wild_summary=wild(0.3)), ENTRIES).verdict == "holds"


def test_gain_and_bias_undo_if_nothing_is_lost():
    found = t.affine_undoes(tables(), ENTRIES)
    assert found.verdict == "fails"
    assert "1.00 at 0; 0.900 at 0.3" in found.corrected
    assert "0.111" not in found.corrected  # of tokens whose means differ too
    assert "trained models 0.400 to 0.400" in found.corrected
    assert t.affine_undoes(tables(undo=undo(1.0, 1.0)), ENTRIES).verdict == "holds"


@pytest.mark.parametrize(
    "wrong",
    [
        {"layernorm_training": {"same_window": 1.0}},
        {"layernorm_training": {"other_windows": 1.0}},
        {"layernorm_training": {"same_token": 0.0}},
        {"batchnorm_training": {"other_windows": 0.0}},
        {"batchnorm_training": {"same_window": 0.0}},
        {"batchnorm_training": {"same_token": 2.0}},
    ],
)
def test_statistics_are_within_a_token_or_across_tokens(wrong):
    found = t.shares_statistics(tables(), ENTRIES)
    assert found.verdict == "holds"
    assert re.search(r"itself and 4(\.0)? others of its token", found.corrected)
    assert re.search(r"itself, 3(\.0)? of its channel in its window and 8", found.corrected)
    assert t.shares_statistics(tables(sharing=sharing(**wrong)), ENTRIES).verdict == "fails"


def test_batch_norm_needs_a_batch_and_layer_norm_none():
    found = t.works_alone(tables(), ENTRIES)
    assert found.verdict == "holds"
    assert "at 1: 'Expected more than 1 value'; 0.900 at 2, 0.100 at 4" in found.corrected
    assert "LayerNorm: at most 0 at every size" in found.corrected
    for bn, ln in (([NAN, 0.1, 0.2], [0.0] * 3), ([NAN, 0.9, 0.1], [0.0, 0.1, 0.0])):
        found = t.works_alone(tables(batches=batches(bn, ln)), ENTRIES)
        assert found.verdict == "fails"
        assert f"at most {max(ln):g}" in found.corrected


def empty(tmp_path, *columns: str) -> pd.DataFrame:
    """As it is read from a file."""
    write_csv(tmp_path / "empty.csv", pd.DataFrame(columns=list(columns)))
    return pd.read_csv(tmp_path / "empty.csv")


def test_trained_models_without_token_statistics_say_nothing(tmp_path):
    """A baseline of BatchNorm: the table of its norms has no row."""
    nothing = tables(affine=empty(tmp_path, "seed", *AFFINE))
    found = t.tokens_are_standard(nothing, ENTRIES)
    assert (found.verdict, found.corrected) == ("no data", "–")
    found = t.affine_undoes(nothing, ENTRIES)
    assert found.verdict == "fails"
    assert "trained" not in found.corrected


CLAIMS = [t.is_layer_norm, t.tokens_are_standard, t.no_feature_dominates, t.affine_undoes,
          t.shares_statistics, t.works_alone]  # fmt: skip


def test_models_that_diverged_have_no_numbers():
    lost = affine({"a": [NAN, 1.0]}, recovered=NAN)
    lost.loc[0, ["std_before", "mean_after"]] = NAN
    found = t.tokens_are_standard(tables(affine=lost), ENTRIES)
    assert found.verdict == "holds"
    assert "over 1 trained models" in found.corrected
    assert "nan" not in t.affine_undoes(tables(affine=lost), ENTRIES).corrected


def test_the_tables_as_they_are_measured_read_as_the_formulas_have_it(tmp_path):
    """Bessel's factor, one counterexample each; of torch and numpy, not of this package's norm."""
    measured: dict[str, Any] = {
        "scratch": textbook.scratch(),
        "sharing": textbook.sharing(),
        "batches": textbook.batches(0.95, sizes=(1, 2, 64), draws=5),
        "wild_summary": textbook.wild()[1],
        "undo": textbook.undo(tokens=1 << 10),
    }
    found = tables()
    for name, rows in measured.items():
        write_csv(tmp_path / "t.csv", pd.DataFrame(rows))
        found[name] = pd.read_csv(tmp_path / "t.csv")
    said = {claim: claim(found, ENTRIES) for claim in CLAIMS}
    assert {claim.verdict for claim in said.values()} == {"holds", "fails"}
    assert said[t.is_layer_norm].verdict == "fails"
    assert f"{math.sqrt(1 / 2):.4f} at d = 2" in said[t.is_layer_norm].corrected
    for claim in (t.shares_statistics, t.works_alone):
        assert said[claim].verdict == "holds"
    for claim in (t.no_feature_dominates, t.affine_undoes):
        assert said[claim].verdict == "fails"
    assert not any(re.search(r"\bnan\b", claim.corrected) for claim in said.values())
