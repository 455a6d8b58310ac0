"""The published statements on residual gain, each beside what its numbers and measurements show.

"As published" is computed here from the published numbers, by the published rules
(``normscope.studies.pretrained.published``). Prompts say how well one model's gain is known; for a
norm the unit is a family. One model is enough to reject "every".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from normscope.ledger.case import Case, of_units
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.paper.words import interval, number, significant
from normscope.statistics.estimate import ALPHA
from normscope.statistics.inference import holm
from normscope.studies.pretrained.cases import (
    of_deviation,
    of_difference,
    of_entropy,
    of_families,
    of_gain,
    of_predictions,
)
from normscope.studies.pretrained.published import (
    CONSISTENT,
    dichotomy,
    h25_verdict,
    hypothesis_status,
    inversion,
    overall,
)
from normscope.studies.pretrained.studies import FIRST_STUDIES, VALIDATION
from normscope.studies.pretrained.tables import base_models, reads

VALIDATED = ("gpt2-xl", "gpt2-large", "gpt2-medium")  # what the published validation measures
REFERENCE = "pythia-6.9b"
COMPARISON = "measured, else published"
NORMS = ("LayerNorm", "RMSNorm")
PLURALS = {"model": "models", "family": "families"}
STUDIES = {"h25": "several labs", "sweep": "Pythia", "measured": "measured"}
SIDES = ("above 1", "below 1", "not told apart from 1")
MEASURED = ", measured"


@dataclass(frozen=True)
class Evidence:
    """The workflow's tables.

    Args:
        by_model, by_norm, h25, h25_models, sensitivity: of rule pretrained.
        references: reference_gains.csv.
        trained: log-gain of the last block by arm and seed, of pre-norm models trained here.
        diverged: how many of those with LayerNorm or RMSNorm diverged.
        entries: the ledger's.
        level: confidence level of the intervals.
    """

    by_model: pd.DataFrame
    by_norm: pd.DataFrame
    h25: pd.DataFrame
    h25_models: pd.DataFrame
    sensitivity: pd.DataFrame
    references: pd.DataFrame
    trained: pd.DataFrame
    diverged: int
    entries: Mapping[str, Entry]
    level: float

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


def claims(evidence: Evidence) -> list[Claim]:
    """The statements: what was published, what the numbers show, two verdicts, and their tests."""
    return [
        _dampens(evidence),
        _consistent(evidence),
        _norms_decide(evidence),
        _all_else_equal(evidence),
        _inverts(evidence),
        _follows_entropy(evidence),
        _true_last_block(evidence),
        _crowding(evidence),
    ]


def _p(value: float) -> str:
    return "> 0.999" if value > 0.999 else significant(value)  # what is next to 1 is not 1


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


def _dampens(e: Evidence) -> Claim:
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
    return Claim(
        "dampens",
        e.entries["dampens"],
        f"{', '.join(words) or 'none'}; p one-sided, of a mean below 1.",
        f"geometric means {'. '.join(listed)}.",
        {r["model"]: of_gain(r, above=False) for r in _of_norm(e, "LayerNorm")},
        f"{overall(statuses)} in print, {hypothesis_status(statuses)} in the file of results",
        _first(answers),
    )


def _first(answers: dict[str, bool]) -> str:
    """The first answer that applies."""
    return next(answer for answer, applies in answers.items() if applies)


def _consistent(e: Evidence) -> Claim:
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
    case = of_difference(*now) if len(now) == 2 else Case.unknown("no data")
    entry = e.entries["consistent"]
    return Claim("consistent", entry, published, corrected, {"": case}, word, verdict)


def _norms_decide(e: Evidence) -> Claim:
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
    cases = {
        r["model"]: of_gain(r, above=norm == "RMSNorm") for norm in NORMS for r in _of_norm(e, norm)
    }
    if decisive:
        cases["families"] = of_families(decisive[0])
    return Claim(
        "norms_decide",
        e.entries["norms_decide"],
        f"{'; '.join(ends) or 'none'}.",
        f"{'; '.join(words) or 'none'}. Families also differ in data, width, depth and heads.",
        cases,
        dichotomy(*of.values()),
        _sides(e.models) or (_of_separation(decisive[0]) if decisive else "no data"),
    )


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


def _all_else_equal(e: Evidence) -> Claim:
    table = e.trained.pivot_table(index="seed", columns="arm", values="log_gain")
    pairs: list[float] = []
    if {"layernorm", "rmsnorm"} <= set(table):
        pairs = list((table["rmsnorm"] - table["layernorm"]).dropna())
    words = ", ".join(number(v, 3, True) for v in pairs)
    entry = e.entries["norms_differ_alone"]
    return Claim(
        "norms_differ_alone",
        entry,
        "no such comparison.",
        f"by seed: {words}." if pairs else "no pair of models is left.",
        {"": of_units(entry, pairs, lost=e.diverged, level=e.level)},
        "no data",
    )


def _inverts(e: Evidence) -> Claim:
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
    return Claim(
        "inverts",
        e.entries["inverts"],
        f"{', '.join(was) or 'none'}.",
        f"r of entropy and abs(gain - 1), and raw r of entropy and gain: "
        f"{', '.join(words) or 'none'}. Where every gain is below 1 ({_names(flipped)}), "
        "abs(gain - 1) is 1 - gain: one is the other with the other sign, by algebra.",
        {r["model"]: of_deviation(r) for r in rows},
        f"{inversion([r['r_deviation'] for r in validated])} for GPT-2",
        _first(answers),
    )


def _follows_entropy(e: Evidence) -> Claim:
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
    return Claim(
        "follows_entropy",
        e.entries["follows_entropy"],
        f"r of entropy and abs(gain - 1): {', '.join(was) or 'none'}.",
        f"raw r: {'; '.join(words) or 'none'}. Clear and positive in {_names(rises)}; of these "
        f"steady without any one category: {_names(steady)}. Clear, negative and steady: "
        f"{_names(falls)}.",
        {r["model"]: of_entropy(r) for r in rows},
        f"{sum(r['r_deviation'] > 0 for r in published)} of {len(published)} positive",
        _first(answers),
    )


def _true_last_block(e: Evidence) -> Claim:
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
    same = e.entries["true_last_block"].limit
    apart = [pair for pair in here if abs(pair[0] / pair[1] - 1) > same]
    answers = {
        "no data": not pairs,
        "undecided: the published two are of other prompts": not here,
        f"rejected: other numbers in {len(apart)} of {len(here)} measured": bool(apart),
        "not rejected": True,
    }
    case = Case.unknown("undecided: the published two are of other prompts" if pairs else "no data")
    if here:
        case = Case.known(not apart, max(abs(a / b - 1) for a, b in here))
    return Claim(
        "true_last_block",
        e.entries["true_last_block"],
        f"{'; '.join(was) or 'none'}.",
        f"that ratio and the last block's gain from hooks: {'; '.join(words) or 'none'} "
        "(published: arithmetic means, of 3 and of 25 prompts; measured: geometric, of the same "
        "prompts). The ratio is of the penultimate block: hidden_states has the last one's output "
        "only after the final norm.",
        {"": case},
        "CORRECT",
        _first(answers),
    )


def _crowding(e: Evidence) -> Claim:
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
    return Claim(
        "h25",
        e.entries["h25"],
        f"{'; '.join(was) or 'none'}.",
        f"{'; '.join(words) or 'none'}. Models of a family are not independent.",
        {"": of_predictions(e.h25_models, e.entries["h25"], e.level)},
        h25_verdict(row["right"], row["n"]) if row else "no data",
        "; ".join(f"{STUDIES[name]}: {_of_share(r)}" for name, r in found.items()) or "no data",
    )


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
