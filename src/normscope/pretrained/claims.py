"""The published statements on residual gain, each beside what its numbers and measurements show.

"As published" is computed here from the published numbers, by the published rules
(``normscope.pretrained.published``). A corrected verdict about a norm is one about families of
models: prompts say how well one model's gain is known, never how models with that norm behave. One
model is enough to reject "every".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from normscope.pretrained.published import (
    CONSISTENT,
    dichotomy,
    h25_verdict,
    hypothesis_status,
    inversion,
    overall,
)
from normscope.pretrained.studies import FIRST_STUDIES
from normscope.stats import ALPHA, sign_verdict
from normscope.tables import interval, number

VALIDATED = ("gpt2-xl", "gpt2-large", "gpt2-medium")  # what the published validation measures
REFERENCE = "pythia-6.9b"
COMPARISON = "measured, else published"


@dataclass(frozen=True)
class Evidence:
    """The workflow's tables.

    Args:
        by_model, by_norm, h25, sensitivity: of rule pretrained.
        references: reference_gains.csv.
        trained: log-gain of the last block by arm and seed, of pre-norm models trained here.
        diverged: how many of those with LayerNorm or RMSNorm diverged.
    """

    by_model: pd.DataFrame
    by_norm: pd.DataFrame
    h25: pd.DataFrame
    sensitivity: pd.DataFrame
    references: pd.DataFrame
    trained: pd.DataFrame
    diverged: int

    def models(self) -> pd.DataFrame:
        """Every base model once: as measured here, or else as published."""
        table = self.by_model
        here = table[table["experiment"] == "measured"]
        there = table[table["experiment"].isin(FIRST_STUDIES)]
        return pd.concat([here, there[~there["model"].isin(here["model"])]], ignore_index=True)

    def published(self, *models: str) -> list[dict]:
        """Rows of published base models, in the order asked for."""
        of = self.by_model[self.by_model["experiment"].isin(FIRST_STUDIES)].set_index("model")
        return [{"model": m, **of.loc[m].to_dict()} for m in models if m in of.index]


def claims(evidence: Evidence) -> pd.DataFrame:
    """A row per statement: what was published, what the numbers show, two verdicts."""
    rows = [
        _dampens(evidence),
        _consistent(evidence),
        _norms_decide(evidence),
        _all_else_equal(evidence),
        _inverts(evidence),
        _follows_entropy(evidence),
        _true_last_block(evidence),
        _crowding(evidence),
    ]
    columns = ["claim", "test", "as published", "its verdict", "corrected", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _gain(row: dict) -> str:
    """A model with its geometric mean gain and interval."""
    bounds = interval(math.exp(row["low"]), math.exp(row["high"]))
    return f"{row['model']} {number(math.exp(row['log_gain']))} {bounds}"


def _names(rows: Sequence[dict]) -> str:
    return ", ".join(row["model"] for row in rows) or "none"


def _dampens(e: Evidence) -> list[str]:
    validated = e.published(*VALIDATED)
    words = [f"{r['model']} {number(r['mean'])} (t {number(r['t'], 2, True)})" for r in validated]
    rows = e.models().query("norm == 'LayerNorm'").to_dict("records")
    above = [r for r in rows if r["reads"] == "above 1"]
    below = [r for r in rows if r["reads"] == "below 1"]
    statuses = [r["status"] for r in validated]
    return [
        "LayerNorm dampens: the last block of every model with LayerNorm has a gain below 1.",
        "mean gain below 1 in every one; corrected: no model's log-gain is above 0 (t test over "
        "prompts, Holm over models)",
        f"{', '.join(words)}; all p one-sided.",
        f"{overall(statuses)} in print, {hypothesis_status(statuses)} in the file of results",
        f"above 1: {'; '.join(_gain(r) for r in above) or 'none'}. Below 1: "
        f"{'; '.join(_gain(r) for r in below) or 'none'}.",
        "rejected" if above else "no data" if not rows else "not rejected",
    ]


def _consistent(e: Evidence) -> list[str]:
    rows = e.published(VALIDATED[0], REFERENCE)
    if len(rows) < 2:
        return ["", "", "no data", "no data", "no data", "no data"]
    xl, pythia = rows
    difference = abs(xl["mean"] - pythia["mean"])
    apart = xl["low"] > pythia["high"] or pythia["low"] > xl["high"]
    return [
        "GPT-2 XL is consistent with Pythia-6.9B.",
        f"gains differ by less than {CONSISTENT}; corrected: bootstrap intervals overlap",
        f"{number(xl['mean'])} and {number(pythia['mean'])}: {number(difference)} apart.",
        "CONSISTENT" if difference < CONSISTENT else "DIVERGENT",
        f"{_gain(xl)}, {_gain(pythia)}; one is above 1, the other below.",
        "rejected" if apart else "not rejected",
    ]


def _norms_decide(e: Evidence) -> list[str]:
    of = {
        norm: {
            r["model"]: r["mean"]
            for r in e.published(*VALIDATED, REFERENCE, "mistral-7b", "llama-3.1-8b", "gemma-7b")
            if r["norm"] == norm
        }
        for norm in ("LayerNorm", "RMSNorm")
    }
    sides = [
        f"{norm} {number(min(g.values()))} to {number(max(g.values()))}" for norm, g in of.items()
    ]
    words = []
    verdict = "no data"
    for r in e.by_norm.to_dict("records"):
        if math.isnan(r["p"]):
            continue
        groups = f"{r['layernorm']} against {r['rmsnorm']} {r['unit']}s"
        if r["unit"] == "family":
            groups = groups.replace("familys", "families")
        words.append(
            f"{r['comparison']}, {groups}: p {number(r['p'])}, smallest reachable "
            f"{number(r['smallest'], 4)}"
        )
        if (r["comparison"], r["unit"]) == (COMPARISON, "family"):
            verdict = _of_separation(r)
    return [
        "The norm decides: LayerNorm below 1, RMSNorm above, whatever the model.",
        "every gain on its side of 1; corrected: RMSNorm's mean log-gain is higher, exact "
        "permutation over families, one-sided; no model is on the wrong side of 1",
        f"{'; '.join(sides)}.",
        dichotomy(*of.values()),
        f"{'; '.join(words)}. Families also differ in data, width, depth and head.",
        _sides(e.models()) or verdict,
    ]


def _sides(models: pd.DataFrame) -> str:
    """Which models are on the side of 1 that the statement gives to the other norm."""
    wrong = {"LayerNorm": "above 1", "RMSNorm": "below 1"}
    there = [
        f"{m} {wrong[n]}"
        for m, n, reads in zip(models["model"], models["norm"], models["reads"], strict=True)
        if wrong.get(n) == reads
    ]
    return f"rejected: {', '.join(there)}" if there else ""


def _of_separation(row: dict) -> str:
    if row["smallest"] > ALPHA:
        return (
            f"undecided: {row['layernorm']} and {row['rmsnorm']} families cannot give p < {ALPHA}"
        )
    if row["p"] > ALPHA:
        return f"not shown: p {number(row['p'])}"
    return "RMSNorm is higher; that the norm is why is not shown"


def _all_else_equal(e: Evidence) -> list[str]:
    table = e.trained.pivot_table(index="seed", columns="arm", values="log_gain")
    pairs: list[float] = []
    words = "no pair of models was trained"
    if {"layernorm", "rmsnorm"} <= set(table):
        pairs = list((table["rmsnorm"] - table["layernorm"]).dropna())
        words = ", ".join(number(v, 3, True) for v in pairs)
    return [
        "With all else equal, RMSNorm's last block has the larger gain.",
        "log-gain of the last block, RMSNorm's minus LayerNorm's, of pre-norm models trained here "
        "with the same seed, is positive",
        "no such comparison.",
        "no data",
        f"by seed: {words}.",
        sign_verdict(pairs, e.diverged),
    ]


def _inverts(e: Evidence) -> list[str]:
    validated = e.published(*VALIDATED)
    pythia = e.published(REFERENCE)
    words = [f"{r['model']} {number(r['r_deviation'], 3, True)}" for r in (*pythia, *validated)]
    rows = e.models().query("norm == 'LayerNorm'").to_dict("records")
    raw = [f"{r['model']} {number(r['r'], 3, True)}" for r in rows]
    negative = [r for r in rows if r["r"] < 0 and r["r_p_holm"] < ALPHA]
    flipped = [r for r in rows if r["below_one"] == r["n"]]
    return [
        "LayerNorm inverts Bentov's law: the more entropy, the closer the gain is to 1.",
        "r of entropy and abs(gain - 1) is negative; corrected: raw r of entropy and gain is "
        "negative in a LayerNorm model (Holm)",
        f"r of entropy and abs(gain - 1): {', '.join(words)}.",
        f"{inversion([r['r_deviation'] for r in validated])} for GPT-2",
        f"raw r: {', '.join(raw)}. Where every gain is below 1 ({_names(flipped)}), abs(gain - 1) "
        "is 1 - gain: the sign flips by algebra.",
        "not rejected" if negative else "rejected",
    ]


def _follows_entropy(e: Evidence) -> list[str]:
    published = e.published(*e.by_model["model"].unique())
    was = [f"{r['model']} {number(r['r_deviation'], 3, True)}" for r in published]
    rows = e.models().to_dict("records")
    clear = [r for r in rows if r["r_p_holm"] < ALPHA and r["r"] > 0]
    without = [r for r in clear if r["r_without_low"] < r["r"] / 2]
    words = [
        f"{r['model']} {number(r['r'], 2, True)}, without Nonsense "
        f"{number(r['r_without_nonsense'], 2, True)}"
        for r in rows
    ]
    return [
        "The gain rises with the entropy of the prediction (Bentov's law).",
        "r of entropy and abs(gain - 1) is positive; corrected: raw r is positive (Holm over "
        "models), and keeps half its size without any one category",
        f"r of entropy and abs(gain - 1): {', '.join(was)}.",
        f"{sum(r['r_deviation'] > 0 for r in published)} of {len(published)} positive",
        f"raw r: {'; '.join(words)}. Clear in {_names(clear)}; of these it rests on one category "
        f"in {_names(without)}.",
        f"holds in {len(clear) - len(without)} of {len(rows)} models",
    ]


def _true_last_block(e: Evidence) -> list[str]:
    of = e.references[e.references["experiment"] == "final_norm"]
    words, real = [], []
    for model in of["model"].dropna().unique():
        rows = of[of["model"] == model].set_index("metric")["value"]
        words.append(
            f"{model} {number(rows['gain_hidden_states'], 4)}, with the final norm "
            f"{number(rows['gain_with_final_norm'], 4)}"
        )
        real += [f"{model} {number(r['mean'], 4)}" for r in e.published(model)]
    usual = e.sensitivity[e.sensitivity["usual"] & (e.sensitivity["positions"] == "last")]
    for model, rows in usual.groupby("model", sort=False):
        logs = rows.set_index("metric")["log_gain"]
        real.append(
            f"{model} {number(math.exp(logs['last_gain']), 4)} (its penultimate block "
            f"{number(math.exp(logs['gain_hidden_states']), 4)})"
        )
    return [
        "hidden_states[-2] over [-3] is the last block's true gain, without the final norm.",
        "it equals the gain that a forward hook on the last block gives",
        f"{'; '.join(words)}.",
        "CORRECT",
        f"the last block's gain from hooks: {'; '.join(real)}. The ratio is of the penultimate "
        "block: the last block's output is in hidden_states only after the final norm.",
        "rejected",
    ]


def _crowding(e: Evidence) -> list[str]:
    rows = {(r["experiment"], r["metric"]): r for r in e.h25.to_dict("records")}
    sixteen, sweep = (rows.get((k, "gain_hidden_states")) for k in ("h25", "sweep"))
    first = e.references[(e.references["metric"] == "h25_correct")]
    published = [
        f"right for {r['value']:.0f} of {r['n']:.0f} ({h25_verdict(int(r['value']), int(r['n']))})"
        for r in first.to_dict("records")
    ]
    words = []
    if sixteen:
        words.append(
            f"of its 16 models right for {sixteen['right']}: {number(sixteen['share'], 2)} "
            f"{interval(sixteen['low'], sixteen['high'], 2)}; of the {sixteen['decided']} whose "
            f"interval leaves out 1, for {sixteen['decided_right']}; r of rho and gain "
            f"{number(sixteen['r'], 2, True)}"
        )
    if sweep:
        words.append(
            f"within Pythia r {number(sweep['r'], 2, True)}, but rho goes with depth "
            f"(r {number(sweep['r_depth'], 2, True)}): given depth "
            f"{number(sweep['r_given_depth'], 2, True)}, "
            f"p {number(sweep['p_given_depth'], 2)}"
        )
    return [
        "H25: heads over head dimension of 0.2 or more dampens, less expands.",
        "side of 1 as predicted, penultimate block; corrected: more often right than chance, exact "
        "interval of the share",
        f"{'; '.join(published)}.",
        h25_verdict(sixteen["right"], sixteen["n"]) if sixteen else "no data",
        f"{'; '.join(words)}.",
        _of_share(sixteen),
    ]


def _of_share(row: dict | None) -> str:
    """Whether predictions are right more often than a coin."""
    if row is None:
        return "no data"
    if row["low"] > 0.5:
        return "holds"
    return "rejected: worse than chance" if row["high"] < 0.5 else "not told apart from chance"
