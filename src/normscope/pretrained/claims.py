"""The published statements on residual gain, each beside what its numbers and measurements show.

"As published" is computed here from the published numbers, by the published rules
(``normscope.pretrained.published``). A corrected verdict about a norm is one about families of
models: prompts say how well one model's gain is known, never how models with that norm behave. One
model is enough to reject "every".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from normscope.inference import holm
from normscope.pretrained.published import (
    CONSISTENT,
    dichotomy,
    h25_verdict,
    hypothesis_status,
    inversion,
    overall,
)
from normscope.pretrained.studies import FIRST_STUDIES, VALIDATION
from normscope.pretrained.tables import base_models, reads
from normscope.stats import ALPHA, sign_verdict
from normscope.tables import interval, number, significant

VALIDATED = ("gpt2-xl", "gpt2-large", "gpt2-medium")  # what the published validation measures
REFERENCE = "pythia-6.9b"
COMPARISON = "measured, else published"
NORMS = ("LayerNorm", "RMSNorm")
PLURALS = {"model": "models", "family": "families"}
STUDIES = {"h25": "several labs", "sweep": "Pythia", "measured": "measured"}
SIDES = ("above 1", "below 1", "not told apart from 1")
MEASURED = ", measured"
SAME = 0.01  # relative difference up to which two ratios are the same


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

    @cached_property
    def models(self) -> pd.DataFrame:
        """``base_models``, with p-values that are Holm's over these."""
        both = base_models(self.by_model)
        for p in ("p", "p_deviation", "r_p"):
            both[f"{p}_holm"] = holm(list(both[p]))
        return both.assign(
            reads=[reads(*v) for v in zip(both["log_gain"], both["p_holm"], strict=True)]
        )

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


def _p(value: float) -> str:
    """A p-value; what is next to 1 is not rounded to it."""
    return "> 0.999" if value > 0.999 else significant(value)


def _gain(row: dict) -> str:
    """A model with its geometric mean gain and interval."""
    bounds = interval(math.exp(row["low"]), math.exp(row["high"]))
    where = "" if row["experiment"] == "measured" else ", published,"
    return f"{row['model']}{where} {number(math.exp(row['log_gain']))} {bounds}"


def _names(rows: Sequence[dict]) -> str:
    return ", ".join(row["model"] for row in rows) or "none"


def _of_norm(e: Evidence, norm: str) -> list[dict]:
    models = e.models
    return models[models["norm"] == norm].to_dict("records")


def _dampens(e: Evidence) -> list[str]:
    validated = e.published(*VALIDATED)
    words = [
        f"{r['model']} {number(r['mean'])} (t {number(r['t'], 2, True)}, p {_p(r['p_one_sided'])})"
        for r in validated
    ]
    rows = [r for r in _of_norm(e, "LayerNorm") if r["reads"] in SIDES]
    groups = {side: [r for r in rows if r["reads"] == side] for side in SIDES}
    listed = [f"{side}: {'; '.join(map(_gain, of)) or 'none'}" for side, of in groups.items()]
    statuses = [r["status"] for r in validated]
    answers = {
        "no data": not rows,
        "rejected": bool(groups["above 1"]),
        "not rejected": not groups["not told apart from 1"],
        "not shown: not all are told apart from 1": True,
    }
    return [
        "LayerNorm dampens: the last block of every model with LayerNorm has a gain below 1.",
        "mean gain below 1 in every one; corrected: no model's log-gain is above 0 (t test over "
        "prompts, Holm over models)",
        f"{', '.join(words) or 'none'}; p one-sided, of a mean below 1.",
        f"{overall(statuses)} in print, {hypothesis_status(statuses)} in the file of results",
        f"geometric means {'. '.join(listed)}.",
        _first(answers),
    ]


def _first(answers: dict[str, bool]) -> str:
    """The first answer that applies."""
    return next(answer for answer, applies in answers.items() if applies)


def _consistent(e: Evidence) -> list[str]:
    was = {r["model"]: r["mean"] for r in e.published(VALIDATED[0], REFERENCE)}
    models = e.models
    now = models[models["model"].isin([VALIDATED[0], REFERENCE])].to_dict("records")
    published, word, corrected, verdict = "no data", "no data", "no data", "no data"
    if len(was) == 2:
        one, other = was.values()
        difference = abs(one - other)
        published = f"{number(one)} and {number(other)}: {number(difference)} apart."
        word = "CONSISTENT" if difference < CONSISTENT else "DIVERGENT"
    if len(now) == 2 and all(math.isfinite(r["low"]) for r in now):
        low, high = sorted(now, key=lambda r: r["log_gain"])
        corrected = f"{_gain(low)}, {_gain(high)}."
        verdict = "rejected" if low["high"] < high["low"] else "not rejected: intervals overlap"
    return [
        "GPT-2 XL is consistent with Pythia-6.9B.",
        f"gains differ by less than {CONSISTENT}; corrected: bootstrap intervals overlap",
        published,
        word,
        corrected,
        verdict,
    ]


def _norms_decide(e: Evidence) -> list[str]:
    compared = e.published(*VALIDATION)
    of = {n: {r["model"]: r["mean"] for r in compared if r["norm"] == n} for n in NORMS}
    ends = [
        f"{norm} {number(min(g.values()))} to {number(max(g.values()))}"
        for norm, g in of.items()
        if g
    ]
    found = [r for r in e.by_norm.to_dict("records") if not math.isnan(r["p"])]
    words = [
        f"{r['comparison']}, {r['layernorm']} against {r['rmsnorm']} {PLURALS[r['unit']]}: p "
        f"{_p(r['p'])}, smallest reachable {significant(r['smallest'])}"
        for r in found
    ]
    decisive = [r for r in found if (r["comparison"], r["unit"]) == (COMPARISON, "family")]
    return [
        "The norm decides: LayerNorm below 1, RMSNorm above, whatever the model.",
        "every gain on its side of 1; corrected: no model is on the wrong side of 1; RMSNorm's "
        "mean log-gain is higher, exact permutation over families, one-sided",
        f"{'; '.join(ends) or 'none'}.",
        dichotomy(*of.values()),
        f"{'; '.join(words) or 'none'}. Families also differ in data, width, depth and heads.",
        _sides(e.models) or (_of_separation(decisive[0]) if decisive else "no data"),
    ]


def _sides(models: pd.DataFrame) -> str:
    """Which models are on the side of 1 that the statement gives to the other norm."""
    wrong = {"LayerNorm": "above 1", "RMSNorm": "below 1"}
    there = [
        f"{row['model']} {row['reads']}"
        for row in models.to_dict("records")
        if wrong.get(row["norm"]) == row["reads"]
    ]
    return f"rejected: {', '.join(there)}" if there else ""


def _of_separation(row: dict) -> str:
    if row["smallest"] >= ALPHA:
        families = f"{row['layernorm']} and {row['rmsnorm']} families"
        return f"undecided: {families} cannot give p < {ALPHA}"
    if row["p"] >= ALPHA:
        return f"not shown: p {_p(row['p'])}"
    return "RMSNorm is higher; that the norm is why is not shown"


def _all_else_equal(e: Evidence) -> list[str]:
    table = e.trained.pivot_table(index="seed", columns="arm", values="log_gain")
    pairs: list[float] = []
    if {"layernorm", "rmsnorm"} <= set(table):
        pairs = list((table["rmsnorm"] - table["layernorm"]).dropna())
    words = ", ".join(number(v, 3, True) for v in pairs)
    return [
        "In the models trained here, which differ in nothing else, RMSNorm's last block has the "
        "larger gain.",
        "log-gain of the last block, RMSNorm's minus LayerNorm's, pre-norm, same seed, is positive",
        "no such comparison.",
        "no data",
        f"by seed: {words}." if pairs else "no pair of models is left.",
        sign_verdict(pairs, e.diverged),
    ]


def _inverts(e: Evidence) -> list[str]:
    validated = e.published(*VALIDATED)
    was = [
        f"{r['model']} {number(r['r_deviation'], 3, True)}"
        for r in (*e.published(REFERENCE), *validated)
    ]
    rows = [r for r in _of_norm(e, "LayerNorm") if not math.isnan(r["r_deviation"])]
    words = [
        f"{r['model']} {number(r['r_deviation'], 3, True)} (raw {number(r['r'], 3, True)})"
        for r in rows
    ]
    clear = [r for r in rows if r["p_deviation_holm"] < ALPHA]
    negative = [r for r in clear if r["r_deviation"] < 0]
    flipped = [r for r in rows if r["below_one"] == r["n"]]
    answers = {
        "no data": not rows,
        "not shown: in no LayerNorm model": not negative,
        f"holds in {len(negative)} of {len(rows)} models ({_names(negative)}), reversed in "
        f"{len(clear) - len(negative)}": True,
    }
    return [
        "LayerNorm inverts Bentov's law: r of entropy and abs(gain - 1) is negative.",
        "the sign of r; corrected: r is below 0 in a LayerNorm model (Holm over models)",
        f"{', '.join(was) or 'none'}.",
        f"{inversion([r['r_deviation'] for r in validated])} for GPT-2",
        f"r of entropy and abs(gain - 1), and raw r of entropy and gain: "
        f"{', '.join(words) or 'none'}. Where every gain is below 1 ({_names(flipped)}), "
        "abs(gain - 1) is 1 - gain: one is the other with the other sign, by algebra.",
        _first(answers),
    ]


def _follows_entropy(e: Evidence) -> list[str]:
    published = e.published(*e.by_model["model"].unique())
    was = [f"{r['model']} {number(r['r_deviation'], 3, True)}" for r in published]
    rows = [r for r in e.models.to_dict("records") if not math.isnan(r["r"])]
    clear = [r for r in rows if r["r_p_holm"] < ALPHA]
    rises = [r for r in clear if r["r"] > 0]
    steady = [r for r in rises if r["r_without_low"] >= r["r"] / 2]  # NaN: one category, no test
    falls = [r for r in clear if r["r"] < 0 and r["r_without_high"] <= r["r"] / 2]
    words = [
        f"{r['model']} {number(r['r'], 2, True)}, without Nonsense "
        f"{number(r['r_without_nonsense'], 2, True)}"
        for r in rows
    ]
    answers = {
        "no data": not rows,
        f"holds in {len(steady)} of {len(rows)} models, reversed in {len(falls)}": bool(falls),
        f"holds in {len(steady)} of {len(rows)} models": True,
    }
    return [
        "The gain rises with the entropy of the prediction (Bentov's law).",
        "r of entropy and abs(gain - 1) is positive; corrected: raw r is positive (Holm over "
        "models), and keeps half its size without any one category",
        f"r of entropy and abs(gain - 1): {', '.join(was) or 'none'}.",
        f"{sum(r['r_deviation'] > 0 for r in published)} of {len(published)} positive",
        f"raw r: {'; '.join(words) or 'none'}. Clear and positive in {_names(rises)}; of these "
        f"steady without any one category: {_names(steady)}. Clear, negative and steady: "
        f"{_names(falls)}.",
        _first(answers),
    ]


def _true_last_block(e: Evidence) -> list[str]:
    of = e.references[e.references["experiment"] == "final_norm"]
    pairs: dict[str, tuple[float, float]] = {}  # hidden_states' ratio, the last block's gain
    was = []
    for model in of["model"].dropna().unique():
        rows = of[of["model"] == model].set_index("metric")
        ratio, with_norm = (
            rows.loc[f"gain_{k}", "value"] for k in ("hidden_states", "with_final_norm")
        )
        n = rows.loc["gain_hidden_states", "n"]
        was.append(
            f"{model} {number(ratio, 4)}, with the final norm {number(with_norm, 4)} (n {n:.0f})"
        )
        for row in e.published(model):
            pairs[f"{model}, published"] = (ratio, row["mean"])
    usual = e.sensitivity[e.sensitivity["usual"] & (e.sensitivity["positions"] == "last")]
    for model, rows in usual.groupby("model", sort=False):
        logs = rows.set_index("metric")["log_gain"]
        pairs[f"{model}{MEASURED}"] = (
            math.exp(logs["gain_hidden_states"]),
            math.exp(logs["last_gain"]),
        )
    pairs = {name: pair for name, pair in pairs.items() if all(map(math.isfinite, pair))}
    words = [f"{name}: {number(a, 4)} and {number(b, 4)}" for name, (a, b) in pairs.items()]
    here = [pair for name, pair in pairs.items() if name.endswith(MEASURED)]
    apart = [pair for pair in here if abs(pair[0] / pair[1] - 1) > SAME]
    answers = {
        "no data": not pairs,
        "undecided: the published two are of other prompts": not here,
        f"rejected: other numbers in {len(apart)} of {len(here)} measured": bool(apart),
        "not rejected": True,
    }
    return [
        "hidden_states[-2] over [-3] is the last block's true gain, without the final norm.",
        f"it equals the gain that a forward hook on the last block gives, to {SAME:.0%}",
        f"{'; '.join(was) or 'none'}.",
        "CORRECT",
        f"that ratio and the last block's gain from hooks: {'; '.join(words) or 'none'} "
        "(published: arithmetic means, of 3 and of 25 prompts; measured: geometric, of the same "
        "prompts). The ratio is of the penultimate block: hidden_states has the last one's output "
        "only after the final norm.",
        _first(answers),
    ]


def _crowding(e: Evidence) -> list[str]:
    found = {
        r["experiment"]: r
        for r in e.h25.to_dict("records")
        if r["metric"] == "gain_hidden_states" and r["experiment"] in STUDIES
    }
    claimed = e.references[e.references["metric"] == "h25_correct"].to_dict("records")
    was = [
        f"right for {r['value']:.0f} of {r['n']:.0f} ({h25_verdict(int(r['value']), int(r['n']))})"
        for r in claimed
    ]
    words = [f"{STUDIES[name]}: {_study(r)}" for name, r in found.items()]
    row = found.get("h25")
    return [
        "H25: heads over head dimension of 0.2 or more dampens, less expands.",
        "side of 1 as predicted, penultimate block; corrected: more often right than a coin, "
        "exact intervals of the shares of all models of a study and of decided ones",
        f"{'; '.join(was) or 'none'}.",
        h25_verdict(row["right"], row["n"]) if row else "no data",
        f"{'; '.join(words) or 'none'}. Models of a family are not independent.",
        "; ".join(f"{STUDIES[name]}: {_of_share(r)}" for name, r in found.items()) or "no data",
    ]


def _study(r: dict) -> str:
    """How often H25 is right in one study, and what rho and depth have to do with the gain."""
    families = "1 family" if r["families"] == 1 else f"{r['families']} families"
    return (
        f"right for {r['right']} of {r['n']} models ({families}), "
        f"{number(r['share'], 2)} {interval(r['low'], r['high'], 2)}, and for "
        f"{r['decided_right']} of the {r['decided']} whose interval leaves out 1; r of rho and "
        f"gain {number(r['r'], 2, True)}, given depth {number(r['r_given_depth'], 2, True)} "
        f"(p {_p(r['p_given_depth'])}), of rho and depth {number(r['r_depth'], 2, True)}"
    )


def _of_share(row: dict) -> str:
    """Whether predictions are right more often than a coin, of all and of decided models."""
    answers = {
        "undecided, one family": row["families"] == 1,
        "worse than a coin": row["high"] < 0.5 and row["decided_high"] < 0.5,
        "better than a coin": row["low"] > 0.5 and row["decided_low"] > 0.5,
        "not told apart from a coin": True,
    }
    return _first(answers)
