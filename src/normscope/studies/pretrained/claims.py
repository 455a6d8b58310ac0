"""Tests of the published statements on residual gain.

"As published" is computed here from the published numbers, by the published rules
(``normscope.studies.pretrained.published``). Prompts say how well one model's gain is known; for a
norm the unit is a family. One model is enough to reject "every".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from normscope.errors import Explained, suggest
from normscope.statistics.inference import holm, least_correlation
from normscope.statistics.levels import ALPHA
from normscope.statistics.summary import select
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.measures import FIRST_STUDIES, METRICS, VALIDATION
from normscope.studies.pretrained.published import (
    CONSISTENT,
    dichotomy,
    h25_verdict,
    hypothesis_status,
    inversion,
    measured_ratios,
    overall,
    published_ratios,
)
from normscope.studies.pretrained.statistics import base_models, reads
from normscope.verdicts.case import Case, decide, too_few
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.contrast import find
from normscope.verdicts.reading import Reading
from normscope.words import interval, number, records, significant

VALIDATED = ("gpt2-xl", "gpt2-large", "gpt2-medium")  # what the published validation measures
REFERENCE = "pythia-6.9b"
COMPARISON = "measured, else published"
NORMS = ("LayerNorm", "RMSNorm")
PLURALS = {"model": "models", "family": "families"}
H25_CASES = ("measured", *FIRST_STUDIES, "sweep", "h25")  # those with more prompts come first
H25_METRICS = {f"gain of the {METRICS[metric]}": metric for metric in h25.METRICS}
STUDIES = {"h25": "several labs", "sweep": "Pythia", "measured": "measured"}
SIDES = ("above 1", "below 1", "not told apart from 1")


def _models(evidence: Evidence) -> pd.DataFrame:
    """``base_models``, with p that are Holm's over these, and what each reads."""
    models = base_models(evidence.table("pretrained.by_model"))
    models["p_holm"] = holm(list(models["p"]))
    return models.assign(reads=reads(models["log_gain"], models["p_holm"]))


def _published(evidence: Evidence, *models: str) -> list[dict]:
    """Rows of published base models, in the order given."""
    table = evidence.table("pretrained.by_model")
    table = table[table["experiment"].isin(FIRST_STUDIES)].set_index("model", drop=False)
    return table.loc[[m for m in models if m in table.index]].to_dict("records")


def _p(value: float) -> str:
    return "> 0.999" if value > 0.999 else significant(value)  # what is next to 1 is not 1


def _gain(row: dict) -> str:
    """A model with its geometric mean gain and interval."""
    bounds = interval(math.exp(row["low"]), math.exp(row["high"]))
    where = "" if row["experiment"] == "measured" else ", published,"
    return f"{row['model']}{where} {number(math.exp(row['log_gain']))} {bounds}"


def _listed(words: Iterable[str], separator: str = ", ") -> str:
    return separator.join(words) or "none"


def _deviation(row: dict) -> str:
    """A model with its r of entropy and abs(gain - 1)."""
    return f"{row['model']} {number(row['r_deviation'], 3, True)}"


def _with_norm(evidence: Evidence, norm: str) -> list[dict]:
    return select(_models(evidence), norm=norm).to_dict("records")


def _first(answers: dict[str, bool]) -> str:
    """The first answer that applies."""
    return next(answer for answer, applies in answers.items() if applies)


def gain_case(row: Mapping, *, above: bool) -> Case:
    """Whether a model's gain is on one side of 1: Student's t over prompts, of the log-gain."""
    return _gain_case(row, *(math.exp(row[k]) for k in ("log_gain", "low", "high")), above=above)


def prediction_case(row: Mapping) -> Case:
    """Whether a model's gain is on the side of 1 that H25 predicts: Student's t over prompts."""
    above = row["predicted"] == "above 1"
    return _gain_case(row, row["gain"], row["low"], row["high"], above=above)


def _gain_case(row: Mapping, gain: float, low: float, high: float, *, above: bool) -> Case:
    interval = Case(gain, low, high, n=int(row["n"]), unit="prompt")
    return _of_prompts(interval, row["p"], agrees=(gain > 1) == above)


def correlation_case(row: Mapping, *, positive: bool) -> Case:
    """Whether r of entropy and abs(gain - 1) has a sign: Student's t of r over prompts."""
    r = Case(row["r_deviation"], n=int(row["n"]), unit="prompt")
    return _of_prompts(r, row["p_deviation"], agrees=(row["r_deviation"] > 0) == positive)


def _of_prompts(case: Case, p: float, *, agrees: bool) -> Case:
    """A case with the one-sided p-values that a two-sided one gives; open with too few prompts."""
    if why := "no data" if math.isnan(p) else too_few(case.n, case.unit):
        return replace(case, open=why)
    near, far = p / 2, 1 - p / 2
    p_holds, p_fails = (near, far) if agrees else (far, near)
    return replace(case, p_holds=p_holds, p_fails=p_fails, smallest=0.0)


def family_case(row: Mapping) -> Case:
    """Whether RMSNorm's mean log-gain is the higher: exact permutation over families."""
    return Case(
        math.exp(row["difference"]),
        math.exp(row["low"]),
        math.exp(row["high"]),
        n=int(row["layernorm"] + row["rmsnorm"]),
        unit="family",
        p_holds=row["p"],
        p_fails=1.0,  # a test of the one side alone
        smallest=row["smallest"],
    )


@claim("dampens")
def dampens(_: Reading, evidence: Evidence) -> Finding:
    """Every LayerNorm model is a case."""
    validated = _published(evidence, *VALIDATED)
    tests = [
        f"{r['model']} {number(r['mean'])} (t {number(r['t'], 2, True)}, p {_p(r['p_one_sided'])})"
        for r in validated
    ]
    models = _with_norm(evidence, "LayerNorm")
    groups = {side: [r for r in models if r["reads"] == side] for side in SIDES}
    listed = [f"{side}: {_listed(map(_gain, group), '; ')}" for side, group in groups.items()]
    statuses = [r["status"] for r in validated]
    answers = {
        "no data": not any(groups.values()),
        "rejected": bool(groups["above 1"]),
        "not rejected": not groups["not told apart from 1"],
        "not shown: not all are told apart from 1": True,
    }
    return Finding(
        cases={r["model"]: gain_case(r, above=False) for r in models},
        published=f"{_listed(tests)}; p one-sided, of a mean below 1.",
        its_verdict=(
            f"{overall(statuses)} in print, {hypothesis_status(statuses)} in the file of results"
        ),
        corrected=f"geometric means {'. '.join(listed)}.",
        alone=_first(answers),
    )


@claim("consistent")
def consistent(reading: Reading, evidence: Evidence) -> Finding:
    """Two models, over the prompts that both were given."""
    names = (VALIDATED[0], REFERENCE)
    was = [r["mean"] for r in _published(evidence, *names)]
    published, its_verdict = "no data", "no data"
    if len(was) == 2:
        difference = abs(was[0] - was[1])
        published = f"{number(was[0])} and {number(was[1])}: {number(difference)} apart."
        its_verdict = "CONSISTENT" if difference < CONSISTENT else "DIVERGENT"
    differences = _by_prompt(evidence, *names)
    case = decide(reading, differences, level=evidence.level)
    corrected = "no data"
    if differences:
        corrected = (
            f"{number(case.effect)} {interval(case.low, case.high)} apart on the same prompts"
        )
    return Finding({"": case}, published, its_verdict, corrected)


def _by_prompt(evidence: Evidence, one: str, other: str) -> list[float]:
    """The gain of one model less that of another, for every prompt that both have.

    As measured here where both are, else as published.
    """
    table = evidence.table("pretrained.observations")
    here = table["experiment"] == "measured"
    for rows in (table[here], table[table["experiment"].isin(FIRST_STUDIES)]):
        gains = rows.pivot_table(index="prompt", columns="model", values="gain", sort=False)
        if {one, other} <= set(gains):
            return list((gains[one] - gains[other]).dropna())
    return []


@claim("norms_decide")
def norms_decide(_: Reading, evidence: Evidence) -> Finding:
    """Every model is a case, and all families together are one."""
    compared = _published(evidence, *VALIDATION)
    gains = {n: {r["model"]: r["mean"] for r in compared if r["norm"] == n} for n in NORMS}
    ends = [
        f"{norm} {number(min(g.values()))} to {number(max(g.values()))}"
        for norm, g in gains.items()
        if g
    ]
    by_norm = evidence.table("pretrained.by_norm").dropna(subset="p")
    tests = [
        f"{r['comparison']}, {r['layernorm']} against {r['rmsnorm']} {PLURALS[r['unit']]}: p "
        f"{_p(r['p'])}, smallest reachable {significant(r['smallest'])}"
        for r in by_norm.to_dict("records")
    ]
    decisive = select(by_norm, comparison=COMPARISON, unit="family").to_dict("records")
    cases = {
        r["model"]: gain_case(r, above=norm == "RMSNorm")
        for norm in NORMS
        for r in _with_norm(evidence, norm)
    }
    if decisive:
        cases["families"] = family_case(decisive[0])
    return Finding(
        cases=cases,
        published=f"{_listed(ends, '; ')}.",
        its_verdict=dichotomy(*gains.values()),
        corrected=f"{_listed(tests, '; ')}. Families also differ in data, width, depth and heads.",
        alone=_sides(_models(evidence)) or (_separation(decisive[0]) if decisive else "no data"),
    )


def _sides(models: pd.DataFrame) -> str:
    """Which models are on the side of 1 that the statement gives to the other norm."""
    wrong = {"LayerNorm": "above 1", "RMSNorm": "below 1"}
    wrong_side = [
        f"{row['model']} {row['reads']}"
        for row in models.to_dict("records")
        if wrong.get(row["norm"]) == row["reads"]
    ]
    return f"rejected: {', '.join(wrong_side)}" if wrong_side else ""


def _separation(row: dict) -> str:
    if row["smallest"] >= ALPHA:
        families = f"{row['layernorm']} and {row['rmsnorm']} families"
        return f"undecided: {families} cannot give p < {ALPHA}"
    if row["p"] >= ALPHA:
        return f"not shown: p {_p(row['p'])}"
    return "RMSNorm is higher; that the norm is why is not shown"


@claim("inverts")
def inverts(reading: Reading, evidence: Evidence) -> Finding:
    """Every pretrained model with LayerNorm is a case; a contrast tests models trained here."""
    if reading.contrast is not None:
        return find(reading, evidence)
    validated = _published(evidence, *VALIDATED)
    was = map(_deviation, [*_published(evidence, REFERENCE), *validated])
    rows = [r for r in _with_norm(evidence, "LayerNorm") if not math.isnan(r["r_deviation"])]
    now = [f"{_deviation(r)} (raw {number(r['r'], 3, True)})" for r in rows]
    flipped = _listed(r["model"] for r in rows if r["below_one"] == r["n"])
    return Finding(
        cases={r["model"]: correlation_case(r, positive=False) for r in rows},
        published=f"{_listed(was)}.",
        its_verdict=f"{inversion([r['r_deviation'] for r in validated])} for GPT-2",
        corrected=f"with raw r of entropy and gain: {_listed(now)}{_told_apart(rows)}. Where every "
        f"gain is below 1 ({flipped}), abs(gain - 1) is 1 - gain: one is the other with the other "
        "sign, by algebra.",
    )


@claim("follows_entropy")
def follows_entropy(reading: Reading, evidence: Evidence) -> Finding:
    """Every pretrained model is a case; a contrast tests models trained here."""
    if reading.contrast is not None:
        return find(reading, evidence)
    published = _published(evidence, *evidence.table("pretrained.by_model")["model"].unique())
    rows = _models(evidence).dropna(subset="r").to_dict("records")
    now = [
        f"{r['model']} {number(r['r'], 2, True)}, without Nonsense "
        f"{number(r['r_without_nonsense'], 2, True)}"
        for r in rows
    ]
    return Finding(
        cases={r["model"]: correlation_case(r, positive=True) for r in rows},
        published=f"r of entropy and abs(gain - 1): {_listed(map(_deviation, published))}.",
        its_verdict=f"{sum(r['r_deviation'] > 0 for r in published)} of {len(published)} positive",
        corrected=f"raw r of entropy and gain: {_listed(now, '; ')}{_told_apart(rows)}.",
    )


def _told_apart(rows: Sequence[dict]) -> str:
    """What an r over the prompts of one model must exceed to be told apart from 0."""
    if not rows:
        return ""
    n = int(max(r["n"] for r in rows))
    return f"; of {n} prompts an r below {number(least_correlation(n, ALPHA), 2)} is none"


@claim("true_last_block")
def true_last_block(reading: Reading, evidence: Evidence) -> Finding:
    """One measured model with another number decides."""
    references = evidence.table("pretrained.references")
    published = published_ratios(references)
    measured = measured_ratios(evidence.table("pretrained.sensitivity"))
    n = select(references, experiment="final_norm", metric="gain_hidden_states")
    n = n.set_index("model")["n"]
    was = [
        f"{r.Index} {number(r.gain_hidden_states, 4)}, with the final norm "
        f"{number(r.gain_with_final_norm, 4)} (n {n[r.Index]:.0f})"
        for r in records(published)
    ]
    compared = ["gain_hidden_states", "last_gain"]
    published, measured = (t.reindex(columns=compared).dropna() for t in (published, measured))
    listed = [
        f"{r.Index}, {where}: {number(r.gain_hidden_states, 4)} and {number(r.last_gain, 4)}"
        for where, table in (("published", published), ("measured", measured))
        for r in records(table)
    ]
    errors = (measured["gain_hidden_states"] / measured["last_gain"] - 1).abs()
    apart = int((errors > reading.limit).sum())
    answers = {
        "no data": not listed,
        "undecided: the published two are of other prompts": errors.empty,
        f"rejected: other numbers in {apart} of {len(errors)} measured": bool(apart),
        "not rejected": True,
    }
    reads = _first(answers)
    case = Case.unknown(reads) if errors.empty else Case.known(not apart, float(errors.max()))
    return Finding(
        cases={"": case},
        published=f"{_listed(was, '; ')}.",
        its_verdict="CORRECT",
        corrected=f"that ratio and the last block's gain from hooks: {_listed(listed, '; ')} "
        "(published: arithmetic means, of 3 and of 25 prompts; measured: geometric, of the same "
        "prompts). The ratio is of the penultimate block: hidden_states has the last one's output "
        "only after the final norm.",
        alone=reads,
    )


@claim("h25")
def crowding(reading: Reading, evidence: Evidence) -> Finding:
    """Every model is a case: one on the other side of 1 than is predicted refutes it.

    The quantity of the reading names the block whose gain is predicted.
    """
    if reading.quantity not in H25_METRICS:
        near = suggest(reading.quantity, H25_METRICS)
        raise Explained(f"quantity: {reading.quantity!r} is not a gain of H25; {near}")
    metric = H25_METRICS[reading.quantity]
    tables = evidence.table("pretrained.h25_models"), evidence.table("pretrained.h25")
    models, accuracy = (select(table, metric=metric) for table in tables)
    models = pd.concat([select(models, experiment=study) for study in H25_CASES])
    rows = models.drop_duplicates("model").to_dict("records")
    wrong = [
        f"{r['model']} {number(r['gain'])}"
        for r in rows
        if (r["gain"] > 1) != (r["predicted"] == "above 1")
    ]
    of_studies = accuracy.to_dict("records")
    studies = {r["experiment"]: r for r in of_studies if r["experiment"] in STUDIES}
    row = studies.get("h25")  # the study whose ratio and verdict were published
    references = select(evidence.table("pretrained.references"), metric="h25_correct")
    was = [
        f"right for {r['value']:.0f} of {r['n']:.0f} ({h25_verdict(int(r['value']), int(r['n']))})"
        for r in references.to_dict("records")
    ]
    now = [f"on the other side of 1: {_listed(wrong)}, of {len(rows)} models"]
    now += [f"{STUDIES[name]}: {_study(r)}" for name, r in studies.items()]
    return Finding(
        cases={r["model"]: prediction_case(r) for r in rows},
        published=f"{_listed(was, '; ')}." if row else "",
        its_verdict=h25_verdict(row["right"], row["n"]) if row else "",
        corrected=f"{_listed(now, '; ')}.",
        alone="; ".join(f"{STUDIES[name]}: {_share(r)}" for name, r in studies.items()),
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


def _share(row: dict) -> str:
    """Whether predictions are right more often than a coin, of all and of decided models."""
    answers = {
        "undecided, one family": row["families"] == 1,
        "worse than a coin": row["high"] < 0.5 and row["decided_high"] < 0.5,
        "better than a coin": row["low"] > 0.5 and row["decided_low"] > 0.5,
        "not told apart from a coin": True,
    }
    return _first(answers)
