"""Tables of residual gain: by hand, against scipy, and what is missing."""

import gc
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
    as_published,
    by_layer,
    by_model,
    by_norm,
    sensitivity,
    side,
    twins,
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


@pytest.fixture(scope="module", autouse=True)
def _frozen():
    """statsmodels collects garbage at every correction, which takes longer than all the rest."""
    gc.freeze()
    yield
    gc.unfreeze()


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


def test_p_values_are_holms_over_the_first_studies_and_over_what_is_measured(models):
    logs = {model: np.log(gains) for (model, _), gains in STUDIES.items()}
    raw = {model: stats.ttest_1samp(v, 0).pvalue for model, v in logs.items()}
    for together in ("abc", "ef"):
        adjusted = multipletests([raw[m] for m in together], method="holm")[1]
        assert [models[m]["p_holm"] for m in together] == pytest.approx(adjusted)
    assert [models[m]["p"] for m in raw] == pytest.approx(list(raw.values()))
    assert math.isnan(models["d"]["p_holm"])
    assert models["d"]["reads"] == "–"


@pytest.mark.parametrize("p", ["r_p", "p_given_words"])
def test_correlations_have_the_same_groups(p, models):
    for together in ("abc", "ef"):
        adjusted = multipletests([models[m][p] for m in together], method="holm")[1]
        assert [models[m][f"{p}_holm"] for m in together] == pytest.approx(adjusted)


def test_a_model_reads_by_holms_p_and_the_sign(models):
    words = {True: "above 1", False: "below 1"}
    for model in "abcef":
        row = models[model]
        expected = "not told apart from 1" if row["p_holm"] >= 0.05 else words[row["log_gain"] > 0]
        assert row["reads"] == expected
    assert {models[m]["reads"] for m in "abcef"} >= {"above 1", "below 1"}


def test_a_model_has_the_statistics_of_its_gains(models):
    gains, row = np.array(STUDIES["f", "measured"]), models["f"]
    assert (row["n"], row["below_one"]) == (9, (gains < 1).sum())
    values = [row[k] for k in ("mean", "sd", "min", "max", "log_gain")]
    own = [gains.mean(), gains.std(ddof=1), gains.min(), gains.max(), np.log(gains).mean()]
    assert values == pytest.approx(own)
    test = stats.ttest_1samp(gains, 1, alternative="less")
    assert (row["t"], row["p_one_sided"]) == pytest.approx((test.statistic, test.pvalue))
    assert row["status"] == "CONFIRMED"
    raw, far = stats.pearsonr(ENTROPY, gains), stats.pearsonr(ENTROPY, abs(gains - 1))
    assert (row["r"], row["r_p"]) == pytest.approx((raw.statistic, raw.pvalue))
    bounds = raw.confidence_interval(0.9)
    assert (row["r_low"], row["r_high"]) == pytest.approx((bounds.low, bounds.high))
    assert (row["r_deviation"], row["p_deviation"]) == pytest.approx((far.statistic, far.pvalue))


def test_r_given_words_is_that_of_residuals(models):
    """Frisch & Waugh 1933."""
    gains = STUDIES["e", "measured"]
    left = [np.array(v) - np.polyval(np.polyfit(WORDS, v, 1), WORDS) for v in (ENTROPY, gains)]
    assert models["e"]["r_given_words"] == pytest.approx(np.corrcoef(left[0], left[1])[0, 1])


def test_r_without_a_category_is_that_of_the_others(models):
    gains = np.array(STUDIES["e", "measured"])
    category = np.arange(9) % 3
    without = [
        np.corrcoef(np.array(ENTROPY)[category != k], gains[category != k])[0, 1] for k in range(3)
    ]
    row = models["e"]
    values = [row[f"r_without_{k}"] for k in ("low", "high", "nonsense")]
    assert values == pytest.approx([min(without), max(without), without[1]])


@pytest.mark.parametrize("seed", range(3))
def test_below_1_the_published_correlation_is_the_raw_one_with_its_sign_flipped(seed):
    """abs(G - 1) = 1 - G: "inversion" follows from a gain below 1 and says nothing of entropy."""
    gains = np.random.default_rng(seed).uniform(0.3, 0.99, 12)
    parts = [of_model("below", list(gains)), of_model("above", list(2 - gains), family="G")]
    rows = by(by_model(pd.concat(parts), 0.95, 19), "model")
    below, above = rows["below"], rows["above"]
    assert below["r_deviation"] == pytest.approx(-below["r"])
    assert above["r_deviation"] == pytest.approx(above["r"])
    assert above["r"] == pytest.approx(-below["r"])
    assert below["p_deviation"] == pytest.approx(below["r_p"])


NESTED = {  # model: norm, family, gains over prompts
    "l1": ("LayerNorm", "L", around(1.0, 11)),
    "l2": ("LayerNorm", "L", around(1.1, 12)),
    "l3": ("LayerNorm", "M", around(0.8, 13)),
    "r1": ("RMSNorm", "R", around(1.5, 14)),
    "r2": ("RMSNorm", "S", around(2.0, 15)),
    "other": ("DyT", "T", around(9.0, 16)),
}


def nested(**gains: list[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    parts = [of_model(m, gains.get(m, g), norm, f) for m, (norm, f, g) in NESTED.items()]
    observations = pd.concat(parts)
    return observations, by_model(observations, 0.95, 19)


@pytest.fixture(scope="module")
def norms() -> dict[Any, dict[str, Any]]:
    observations, models = nested()
    return by(by_norm(observations, [("all", models)], 0.9, 499), "unit")


LOG = {model: np.log(gains) for model, (_, _, gains) in NESTED.items()}
CONTRASTS = {
    "model": (LOG["r1"] + LOG["r2"]) / 2 - (LOG["l1"] + LOG["l2"] + LOG["l3"]) / 3,
    "family": (LOG["r1"] + LOG["r2"]) / 2 - ((LOG["l1"] + LOG["l2"]) / 2 + LOG["l3"]) / 2,
}


@pytest.mark.parametrize(("unit", "counts"), [("model", (3, 2)), ("family", (2, 2))])
def test_norms_are_compared_by_models_and_by_means_of_families(unit, counts, norms):
    row = norms[unit]
    assert (row["layernorm"], row["rmsnorm"]) == counts
    assert row["difference"] == pytest.approx(CONTRASTS[unit].mean())
    # both RMSNorm units are above all others
    assert (row["p"], row["smallest"]) == pytest.approx((1 / math.comb(sum(counts), 2),) * 2)


@pytest.mark.parametrize("unit", CONTRASTS)
def test_the_interval_of_a_contrast_is_over_prompts(unit, norms):
    row, e = norms[unit], bootstrap_mean(list(CONTRASTS[unit]), 0.9, 499)
    assert row["prompts"] == 9
    assert (row["low"], row["high"]) == pytest.approx((e.low, e.high))
    half = 1.645 * stats.sem(CONTRASTS[unit])
    assert (row["high"] - row["low"]) / 2 == pytest.approx(half, rel=0.25)


def test_a_prompt_that_one_model_lacks_is_in_no_contrast():
    observations, models = nested(r1=NESTED["r1"][2][:6])
    rows = by(by_norm(observations, [("all", models)], 0.9, 99), "unit")
    assert {row["prompts"] for row in rows.values()} == {6}


@pytest.mark.parametrize(
    ("only", "counts"),
    [("LayerNorm", [(3, 0), (2, 0)]), ("RMSNorm", [(0, 2), (0, 2)]), ("DyT", [(0, 0)] * 2)],
)
def test_one_norm_alone_is_not_compared(only, counts):
    observations, models = nested()
    rows = by_norm(observations, [("one", models[models["norm"] == only])], 0.9, 99)
    values = rows[["difference", "low", "high", "p", "smallest"]].astype(float)
    assert values.isna().to_numpy().all()
    assert list(zip(rows["layernorm"], rows["rmsnorm"], strict=True)) == counts


def test_one_model_of_each_norm_is_compared():
    """One of two orders: p is 1/2 at best."""
    observations, models = nested()
    two = models[models["model"].isin(["l1", "r1"])]
    for row in by_norm(observations, [("two", two)], 0.9, 99).to_dict("records"):
        assert (row["p"], row["smallest"]) == pytest.approx((0.5, 0.5))
        assert row["difference"] == pytest.approx((LOG["r1"] - LOG["l1"]).mean())


def test_twins_are_compared_prompt_by_prompt():
    observations, _ = nested()
    pairs = [("measured", "l1", "l2"), ("measured", "r1", "r2"), ("measured", "l1", "gone")]
    rows = by(twins(observations, pairs, 0.95, 99), "base")
    assert set(rows) == {"l1", "r1"}
    tests = [stats.ttest_rel(LOG["l2"], LOG["l1"]), stats.ttest_rel(LOG["r2"], LOG["r1"])]
    assert [row["p"] for row in rows.values()] == pytest.approx([t.pvalue for t in tests])
    adjusted = multipletests([t.pvalue for t in tests], method="holm")[1]
    assert [row["p_holm"] for row in rows.values()] == pytest.approx(adjusted)
    row = rows["r1"]
    assert row["log_ratio"] == pytest.approx((LOG["r2"] - LOG["r1"]).mean())
    means = [np.exp(LOG[m]).mean() for m in ("r1", "r2")]
    assert [row["base_gain"], row["tuned_gain"]] == pytest.approx(means)
    assert row["low"] < row["log_ratio"] < row["high"]


def test_twins_of_another_study_are_another_pair():
    parts = [
        of_model(m, around(1, s), study=study)
        for s, (m, study) in enumerate([("x", "twins"), ("y", "h25")])
    ]
    assert twins(pd.concat(parts), [("twins", "x", "y")], 0.95, 99).empty


ADDS = {"yes": True, "no": False, "neither": None}


def known(adds: dict[str, Any] = ADDS) -> pd.DataFrame:
    """Models by whether their tokenizer adds BOS, and one that was not measured."""
    facts = {"family": "F", "norm": "LayerNorm", "computed": "fp32", "n_layers": 3, "rho": 0.5}
    rows: list[dict[str, Any]] = [
        {"model": m, "tokenizer_adds_bos": v} | facts for m, v in adds.items()
    ]
    return pd.DataFrame([*rows, {"model": "gone", "missing": "no disk"}])


def measured(**changes: float) -> pd.DataFrame:
    """Gains of the models at 3 prompts of the benchmark and one other."""
    rows = [
        {"model": model, "bos": bos, "positions": positions, "prompt": f"p{i}"}
        | {"set": "benchmark" if i < 3 else "other", "top_token": "x"}
        | dict.fromkeys(METRICS, 1.5 + 0.1 * i)
        | changes
        for model in ADDS
        for bos in ("on", "off")
        for positions in POSITIONS
        for i in range(4)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("adds", [ADDS, {"yes": True}, {"no": False}, {"neither": None}])
def test_the_published_protocol_is_the_last_token_with_bos_as_the_tokenizer_has_it(adds):
    gains = measured()
    rows = as_published(gains[gains["model"].isin(adds)], known(adds))
    assert len(rows) == 3 * len(adds)
    assert set(rows["positions"]) == {"last"}
    usual = {"yes": "on", "no": "off", "neither": "off"}
    assert dict(zip(rows["model"], rows["bos"], strict=True)) == {m: usual[m] for m in adds}


def test_sensitivity_has_every_metric_in_every_cell():
    table = sensitivity(measured(), known(), 0.95, 199)
    keys = ["model", "bos", "positions", "metric"]
    assert len(table) == len(table[keys].drop_duplicates()) == 3 * 2 * 3 * len(METRICS)
    assert set(table["n"]) == {3}
    # the prompt that is not of the benchmark is in no mean
    assert list(table["log_gain"]) == pytest.approx([np.log([1.5, 1.6, 1.7]).mean()] * len(table))
    assert set(table["reads"]) == {"above 1"}
    usual = {(r["model"], r["bos"]) for r in table[table["usual"]].to_dict("records")}
    assert usual == {("yes", "on"), ("no", "off"), ("neither", "off")}


def test_a_ratio_that_no_prompt_has_is_missing_and_one_that_some_have_is_theirs():
    gains = measured(gain_with_final_norm=math.nan)
    gains.loc[(gains["prompt"] == "p0") & (gains["positions"] == "later"), "last_gain"] = math.nan
    rows = by(sensitivity(gains, known(), 0.95, 99), "model", "bos", "positions", "metric")
    for positions in POSITIONS:
        none = rows["yes", "on", positions, "gain_with_final_norm"]
        assert np.isnan([none[k] for k in ("n", "log_gain", "low", "high")]).all()
    two = rows["yes", "on", "later", "last_gain"]
    assert two["n"] == 2
    assert two["log_gain"] == pytest.approx(np.log([1.6, 1.7]).mean())
    assert (math.isnan(two["low"]), two["reads"]) == (True, "–")
    assert rows["yes", "on", "last", "last_gain"]["n"] == 3


def test_sides_of_1():
    sides = [side(*bounds) for bounds in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.2), (math.nan,) * 2)]
    assert sides == ["above 1", "below 1", "covers 1", "–"]


STEPS = {"p0": 0.3, "p1": 0.5, "p2": 0.1}


def sites(final: bool = True) -> pd.DataFrame:
    """Embedding, a block and a final norm; of p2 nothing is later."""
    rows = [
        {"model": model, "prompt": prompt, "bos": "on", "positions": positions, "depth": depth}
        | {"site": site, "norm": np.exp(step * depth), "log_gain": step if depth else math.nan}
        for model in ADDS
        for prompt, step in (STEPS | {"other": 9.0}).items()
        for positions in POSITIONS
        for depth, site in enumerate(("embedding", "block_0", "final_norm")[: 2 + final])
    ]
    table = pd.DataFrame(rows)
    nothing = (table["prompt"] == "p2") & (table["positions"] == "later")
    table.loc[nothing, ["norm", "log_gain"]] = math.nan
    return table


def test_layers_have_students_interval_over_the_prompts_of_the_set():
    rows = by(by_layer(sites(), known(), list(STEPS), 0.9), "model", "positions", "site")
    assert len(rows) == 3 * 3 * 3
    row = rows["yes", "last", "final_norm"]
    own = stats.ttest_1samp(list(STEPS.values()), 0).confidence_interval(0.9)
    assert [row[k] for k in ("n", "log_gain", "log_norm")] == pytest.approx([3, 0.3, 0.6])
    assert (row["low"], row["high"]) == pytest.approx((own.low, own.high))
    assert (rows["yes", "last", "block_0"]["usual"], rows["no", "last", "block_0"]["usual"]) == (
        True,
        False,
    )


def test_an_embedding_has_a_norm_and_no_gain():
    row = by(by_layer(sites(), known(), list(STEPS), 0.9), "model", "positions", "site")
    embedding = row["no", "first", "embedding"]
    assert embedding["log_norm"] == 0
    assert np.isnan([embedding[k] for k in ("n", "log_gain", "low", "high")]).all()


def test_a_prompt_of_one_token_is_in_no_mean_over_later_positions():
    row = by(by_layer(sites(), known(), list(STEPS), 0.9), "model", "positions", "site")
    later = row["yes", "later", "block_0"]
    assert [later[k] for k in ("n", "log_gain", "log_norm")] == pytest.approx([2, 0.4, 0.4])


def test_a_model_without_a_final_norm_has_one_site_less():
    table = by_layer(sites(final=False), known(), list(STEPS), 0.9)
    assert set(table["site"]) == {"embedding", "block_0"}
