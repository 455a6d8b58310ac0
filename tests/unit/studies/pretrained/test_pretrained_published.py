"""The numbers of D'Elia 2026 (doi 10.5281/zenodo.18165365) come out of the data files."""

import math
from typing import Any

import pandas as pd
import pytest
from processes import ROOT
from recall_recipes import by
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from normscope.statistics.summary import select
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.measures import FIRST_STUDIES
from normscope.studies.pretrained.statistics import by_model, published_observations

DATA = ROOT / "data"
REFERENCES = pd.read_csv(DATA / "reference_gains.csv")
PROMPTS = pd.read_csv(DATA / "reference_prompts.csv")


@pytest.fixture(scope="module")
def observations() -> pd.DataFrame:
    return published_observations(PROMPTS, REFERENCES)


@pytest.fixture(scope="module")
def studies(observations) -> pd.DataFrame:
    return by_model(observations, 0.95, 199)


@pytest.fixture(scope="module")
def first(studies) -> dict[str, dict[str, Any]]:
    return by(studies[studies["experiment"].isin(FIRST_STUDIES)], "model")


@pytest.fixture(scope="module")
def models() -> pd.DataFrame:
    return h25.published_models(REFERENCES, 0.95)


@pytest.fixture(scope="module")
def accuracy(models) -> dict[str, dict[str, Any]]:
    """Of the penultimate block's gain."""
    table = h25.accuracy(models, 0.95)
    return by(table[table["metric"] == "gain_hidden_states"], "experiment")


def stated(metric: str) -> dict[Any, dict[str, Any]]:
    """What the source says, by experiment and model."""
    return by(REFERENCES[REFERENCES["metric"] == metric], "experiment", "model")


def test_the_two_files_agree_to_their_last_digits(studies):
    """Means, deviations and correlations from the prompts, and as the source states them."""
    by_study, gains = by(studies, "experiment", "model"), stated("last_gain")
    assert len(gains) == len(by_study) == 14
    for key, r in gains.items():
        for name, k in (("value", "mean"), ("sd", "sd"), ("min", "min"), ("max", "max")):
            assert by_study[key][k] == pytest.approx(r[name], abs=6e-9)
        assert r["ddof"] == 1
    names = {"r_entropy_gain": "r", "r_entropy_deviation": "r_deviation", "t_against_1": "t"}
    for metric, k in names.items():
        assert stated(metric)
        for key, r in stated(metric).items():
            assert by_study[key][k] == pytest.approx(r["value"], rel=1e-6)


@pytest.mark.parametrize(
    ("model", "t"), [("gpt2-xl", 3.84), ("gpt2-large", 2.84), ("gpt2-medium", 10.57)]
)
def test_t_against_1_is_the_published_one(model, t, first, models):
    """From the prompts, and from the published mean and standard deviation."""
    assert first[model]["t"] == pytest.approx(t, abs=0.005)
    assert first[model]["status"] == "REJECTED"
    r = stated("last_gain")["gpt2", model]
    assert h25.t_of_summary(r["value"], r["sd"], r["n"]) == pytest.approx(t, abs=0.005)
    (row,) = select(models, model=model, metric="last_gain").to_dict("records")
    assert row["p"] == pytest.approx(2 * stats.t.sf(t, 24), rel=0.02)


def test_of_the_layernorm_models_only_pythia_dampens_as_published(first):
    status = {m: r["status"] for m, r in first.items() if r["norm"] == "LayerNorm"}
    assert [m for m, s in status.items() if s == "CONFIRMED"] == ["pythia-6.9b"]


def test_the_sweep_has_t_intervals_from_the_published_deviations_over_n(models):
    rows = by(select(models, experiment="sweep", metric="gain_hidden_states"), "model")
    assert len(rows) == 8
    for model, row in rows.items():
        r = stated("gain_hidden_states")["sweep", model]
        half = 2.0639 * r["sd"] / math.sqrt(24)  # t(24)
        assert (row["low"], row["high"]) == pytest.approx((r["value"] - half, r["value"] + half))
        t = (r["value"] - 1) / (r["sd"] / math.sqrt(24))
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(t), 24))


def test_rho_goes_with_depth_in_the_sweep_and_little_is_left_without_it(accuracy):
    row = accuracy["sweep"]
    values = [row[k] for k in ("r", "r_depth", "r_given_depth", "p_given_depth")]
    assert values == pytest.approx([-0.81, 0.72, -0.54, 0.21], abs=0.005)
    assert (row["n"], row["families"]) == (8, 1)
    (r,) = REFERENCES.loc[REFERENCES["metric"] == "r_rho_gain", "value"]
    assert row["r"] == pytest.approx(r, abs=1e-7)


def test_h25_is_judged_by_the_models_whose_interval_excludes_1(models, accuracy):
    gains = select(models, metric="gain_hidden_states", experiment="h25")
    below, above = gains["high"] < 1, gains["low"] > 1
    assert set(gains["reading"][below]) == {"below 1"}
    assert set(gains["reading"][above]) == {"above 1"}
    assert set(gains["reading"][~below & ~above]) == {"neither"}
    right = (below & (gains["rho"] >= 0.2)) | (above & (gains["rho"] < 0.2))
    row = accuracy["h25"]
    assert (row["decided"], row["decided_right"]) == ((below | above).sum(), right.sum()) == (11, 3)
    ends = proportion_confint(3, 11, method="beta")
    assert (row["decided_low"], row["decided_high"]) == pytest.approx(ends)
