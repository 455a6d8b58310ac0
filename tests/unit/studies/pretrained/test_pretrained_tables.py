"""Statistics of residual gain: compared with SciPy and with results by hand, and missing values."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from recall_recipes import by
from scipy import stats
from statsmodels.stats.multitest import multipletests

from normscope.statistics.inference import bootstrap_mean
from normscope.studies.pretrained.measures import METRICS, POSITIONS
from normscope.studies.pretrained.statistics import (
    OBSERVATION,
    by_model,
    by_norm,
    select_published_protocol,
    sensitivity,
)

CATEGORIES = ("Factual", "Nonsense", "Novel")
ENTROPY = (1.0, 4.0, 2.5, 3.0, 0.5, 5.0, 2.0, 1.5, 4.5)
WORDS = (5, 3, 8, 6, 4, 7, 9, 2, 5)


def of_model(
    model: str,
    gains: list[float],
    norm: str = "LayerNorm",
    family: str = "F",
    study: str = "measured",
) -> pd.DataFrame:
    """Observations of one model over prompts p0, p1, ..., three categories in turn."""
    rows = [
        {"experiment": study, "model": model, "family": family, "norm": norm, "dtype": "fp32"}
        | {"category": CATEGORIES[i % 3], "prompt": f"p{i}", "words": WORDS[i % 9]}
        | {"entropy": ENTROPY[i % 9] + i // 9, "gain": gain}
        for i, gain in enumerate(gains)
    ]
    return pd.DataFrame(rows, columns=OBSERVATION)


def around(mean: float, seed: int, n: int = 9) -> list[float]:
    return list(mean * np.exp(np.random.default_rng(seed).normal(0, 0.1, n)))


STUDIES = {
    ("a", "benchmark"): around(1.3, 1),
    ("b", "gpt2"): around(0.95, 2),
    ("c", "gptj"): around(1.05, 3),
    ("d", "twins"): around(1.2, 4),
    ("e", "measured"): around(1.08, 5),
    ("f", "measured"): around(0.8, 6),
}


@pytest.fixture(scope="module")
def models() -> dict[Any, dict[str, Any]]:
    parts = [of_model(model, gains, study=study) for (model, study), gains in STUDIES.items()]
    return by(by_model(pd.concat(parts), 0.9, 199), "model")


@pytest.mark.parametrize("p", ["p", "r_p", "p_given_words"])
def test_holms_correction_is_over_the_first_studies_and_over_the_measured_models(p, models):
    for together in ("abc", "ef"):
        adjusted = multipletests([models[m][p] for m in together], method="holm")[1]
        assert [models[m][f"{p}_holm"] for m in together] == pytest.approx(adjusted)
    assert math.isnan(models["d"][f"{p}_holm"])


def test_a_model_reads_by_the_corrected_p_value_and_the_sign(models):
    words = {True: "above 1", False: "below 1"}
    for model in "abcef":
        row = models[model]
        has_difference = row["p_holm"] < 0.05
        sign = words[row["log_gain"] > 0]
        assert row["reads"] == (sign if has_difference else "no difference from 1 found")
    assert {models[m]["reads"] for m in "abcef"} >= {"above 1", "below 1"}
    assert models["d"]["reads"] == "–"


def test_a_model_has_the_statistics_of_its_gains(models):
    gains, row = np.array(STUDIES["f", "measured"]), models["f"]
    assert (row["n"], row["below_one"]) == (9, (gains < 1).sum())
    values = [row[k] for k in ("mean", "sd", "min", "max", "log_gain")]
    logs = np.log(gains)
    expected = [gains.mean(), gains.std(ddof=1), gains.min(), gains.max(), logs.mean()]
    assert values == pytest.approx(expected)
    test = stats.ttest_1samp(gains, 1, alternative="less")
    assert (row["t"], row["p_one_sided"]) == pytest.approx((test.statistic, test.pvalue))
    assert row["status"] == "CONFIRMED"
    assert row["p"] == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)
    raw, far = stats.pearsonr(ENTROPY, gains), stats.pearsonr(ENTROPY, abs(gains - 1))
    assert (row["r"], row["r_p"]) == pytest.approx((raw.statistic, raw.pvalue))
    bounds = raw.confidence_interval(0.9)
    assert (row["r_low"], row["r_high"]) == pytest.approx((bounds.low, bounds.high))
    assert (row["r_deviation"], row["p_deviation"]) == pytest.approx((far.statistic, far.pvalue))
    # where every gain is below 1, abs(gain - 1) = 1 - gain: one r is minus the other, by algebra
    assert gains.max() < 1
    assert row["r_deviation"] == pytest.approx(-row["r"])


def test_r_given_words_and_r_without_a_category(models):
    """Frisch & Waugh 1933: the partial correlation is that of residuals."""
    gains, row = np.array(STUDIES["e", "measured"]), models["e"]
    left = [np.array(v) - np.polyval(np.polyfit(WORDS, v, 1), WORDS) for v in (ENTROPY, gains)]
    assert row["r_given_words"] == pytest.approx(np.corrcoef(left[0], left[1])[0, 1])
    rest = [np.arange(9) % 3 != k for k in range(3)]
    without = [np.corrcoef(np.array(ENTROPY)[kept], gains[kept])[0, 1] for kept in rest]
    values = [row[f"r_without_{k}"] for k in ("low", "high", "nonsense")]
    assert values == pytest.approx([min(without), max(without), without[1]])


NESTED = {  # model: norm, family, gains over prompts
    "l1": ("LayerNorm", "L", around(1.0, 11)),
    "l2": ("LayerNorm", "L", around(1.1, 12)),
    "l3": ("LayerNorm", "M", around(0.8, 13)),
    "r1": ("RMSNorm", "R", around(1.5, 14)),
    "r2": ("RMSNorm", "S", around(2.0, 15)),
    "other": ("DyT", "T", around(9.0, 16)),
}
LOG = {model: np.log(gains) for model, (_, _, gains) in NESTED.items()}
CONTRASTS = {
    "model": (LOG["r1"] + LOG["r2"]) / 2 - (LOG["l1"] + LOG["l2"] + LOG["l3"]) / 3,
    "family": (LOG["r1"] + LOG["r2"]) / 2 - ((LOG["l1"] + LOG["l2"]) / 2 + LOG["l3"]) / 2,
}


def observed(**gains: list[float]) -> pd.DataFrame:
    """Observations of the nested models, of some with other gains."""
    return pd.concat([of_model(m, gains.get(m, g), norm, f) for m, (norm, f, g) in NESTED.items()])


def norms(observations: pd.DataFrame, *names: str) -> dict[Any, dict[str, Any]]:
    """The comparison of these models, or of all, by unit."""
    models = by_model(observations, 0.95, 19)
    chosen = models[models["model"].isin(names or NESTED)]
    return by(by_norm(observations, {"all": chosen}, 0.9, 499), "unit")


@pytest.mark.parametrize(("unit", "counts"), [("model", (3, 2)), ("family", (2, 2))])
def test_norms_are_compared_by_models_and_by_means_of_families(unit, counts):
    row = norms(observed())[unit]
    assert (row["layernorm"], row["rmsnorm"], row["prompts"]) == (*counts, 9)
    assert row["difference"] == pytest.approx(CONTRASTS[unit].mean())
    # both RMSNorm units are above all others
    assert (row["p"], row["smallest"]) == pytest.approx((1 / math.comb(sum(counts), 2),) * 2)
    e = bootstrap_mean(list(CONTRASTS[unit]), 0.9, 499)
    assert (row["low"], row["high"]) == pytest.approx((e.low, e.high))


def test_without_prompts_that_all_models_share_a_difference_has_no_interval():
    table = observed()
    table["prompt"] = table["prompt"].where(table["model"] != "l3", table["prompt"] + " of l3")
    for unit, row in norms(table).items():
        assert row["difference"] == pytest.approx(CONTRASTS[unit].mean())
        assert np.isnan([row["low"], row["high"], row["prompts"]]).all()


USUAL = {("yes", "on"), ("no", "off"), ("neither", "off")}  # model, and its tokenizer's BOS


def known() -> pd.DataFrame:
    """Models by whether their tokenizer adds BOS, and one that was not measured."""
    facts = {"family": "F", "norm": "LayerNorm", "computed": "fp32", "n_layers": 3, "rho": 0.5}
    adds = {"yes": True, "no": False, "neither": None}
    rows: list[dict[str, Any]] = [
        {"model": model, "tokenizer_adds_bos": value} | facts for model, value in adds.items()
    ]
    return pd.DataFrame([*rows, {"model": "gone", "missing": "no disk"}])


def measured(**changes: float) -> pd.DataFrame:
    """Gains of the models at 3 prompts."""
    rows = [
        {"model": model, "bos": bos, "positions": positions, "prompt": f"p{i}"}
        | {"top_token": "x"}
        | dict.fromkeys(METRICS, 1.5 + 0.1 * i)
        | changes
        for model, _ in sorted(USUAL)
        for bos in ("on", "off")
        for positions in POSITIONS
        for i in range(3)
    ]
    return pd.DataFrame(rows)


def test_the_published_protocol_is_the_last_token_with_bos_as_the_tokenizer_has_it():
    rows = select_published_protocol(measured(), known())
    assert len(rows) == 3 * 3
    assert set(rows["positions"]) == {"last"}
    assert set(zip(rows["model"], rows["bos"], strict=True)) == USUAL


def test_sensitivity_has_every_metric_in_every_cell():
    table = sensitivity(measured(), known(), 0.95, 199)
    assert len(by(table, "model", "bos", "positions", "metric")) == 3 * 2 * 3 * len(METRICS)
    assert set(table["n"]) == {3}
    assert list(table["log_gain"]) == pytest.approx([np.log([1.5, 1.6, 1.7]).mean()] * len(table))
    assert set(table["reads"]) == {"above 1"}
    usual = table[table["usual"]]
    assert set(zip(usual["model"], usual["bos"], strict=True)) == USUAL
