"""Tables of residual gain under which the published statements would stand, for tests."""

import functools
import gc
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import statements
from processes import ROOT

from normscope.ledger.claim import Claim, Evidence
from normscope.studies.pretrained.measures import METRICS, POSITIONS
from normscope.studies.pretrained.statistics import by_model, published_observations
from normscope.studies.pretrained.tables import TABLES

DATA = ROOT / "data"
REFERENCES = pd.read_csv(DATA / "reference_gains.csv")
WAS, NOW = "its verdict", "verdict"
KEYS = (
    "dampens",
    "consistent",
    "norms_decide",
    "inverts",
    "follows_entropy",
    "true_last_block",
    "h25",
)
DAMPENS, CONSISTENT, NORM, INVERTS, ENTROPY, LAST_BLOCK, H25 = KEYS
STUDIES = {
    "gpt2": ("gpt2-xl", "gpt2-large", "gpt2-medium"),
    "benchmark": ("pythia-6.9b", "mistral-7b", "llama-3.1-8b", "gemma-7b"),
}
RMSNORM = STUDIES["benchmark"][1:]


def model(name: str, log_gain: float, norm: str = "LayerNorm", **changes: Any) -> dict[str, Any]:
    """A measured base model, clearly on its side of 1, without a correlation of its own."""
    family, _, _ = name.partition("-")
    row: dict[str, Any] = {"experiment": "measured", "model": name, "family": family}
    row |= {"norm": norm, "dtype": "fp32", "n": 25, "mean": math.exp(log_gain), "sd": 0.05}
    row |= {"min": math.exp(log_gain - 0.1), "max": math.exp(log_gain + 0.1), "t": log_gain * 100}
    row |= {"p_one_sided": 0.001 if log_gain < 0 else 0.999, "below_one": 25 * (log_gain < 0)}
    row |= {"status": "CONFIRMED" if log_gain < 0 else "REJECTED"}
    row |= {"log_gain": log_gain, "low": log_gain - 0.01, "high": log_gain + 0.01, "p": 1e-4}
    row |= {"p_holm": 1e-3, "reads": "below 1" if log_gain < 0 else "above 1"}
    row |= {"r_deviation": 0.1, "r": 0.1, "r_low": -0.3, "r_high": 0.5, "r_given_words": 0.1}
    row |= dict.fromkeys(("p_deviation", "r_p", "p_given_words"), 0.6)
    row |= dict.fromkeys(("r_p_holm", "p_given_words_holm"), 1.0)
    row |= {"r_without_low": 0.09, "r_without_high": 0.2, "r_without_nonsense": 0.125}
    row["base"] = math.nan
    assert set(row) == set(TABLES["by_model"].names)
    return row | changes


def published(**changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The seven models, each with its norm on the side that was published.

    Args:
        changes: of a model, by its name with underscores.
    """
    rows = []
    for study, names in STUDIES.items():
        for name in names:
            rms = name in RMSNORM
            row = model(name, 0.2 if rms else -0.2, "RMSNorm" if rms else "LayerNorm")
            rows.append(row | {"experiment": study} | dict(changes.get(key(name), {})))
    return rows


def key(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def compared(p: float = 0.01, smallest: float = 0.01, **changes: Any) -> dict[str, Any]:
    """LayerNorm against RMSNorm, by default clearly apart."""
    row = {"comparison": "measured, else published", "unit": "family", "layernorm": 5}
    row |= {"rmsnorm": 5, "difference": 0.4, "low": 0.3, "high": 0.5, "prompts": 25}
    return row | {"p": p, "smallest": smallest} | changes


def judged(right: int, n: int, low: float, high: float, **changes: Any) -> dict[str, Any]:
    """How often H25 was right in the study of sixteen models."""
    row = {"experiment": "h25", "metric": "gain_hidden_states", "n": n, "right": right}
    row |= {"families": 7, "verdict": "made", "share": right / n, "low": low, "high": high}
    row |= {"decided": n, "decided_right": right, "decided_low": low, "decided_high": high}
    row |= {"r": 0.01, "r_p": 0.9, "r_given_depth": 0.1, "p_given_depth": 0.7, "r_depth": 0.2}
    return row | changes


# exact intervals of 95%, Clopper and Pearson: 8 of 16 has [0.247, 0.753]
AT_CHANCE = judged(8, 16, 0.247, 0.753)


def predictions(right: Mapping[str, Sequence[bool]], **changes: Any) -> pd.DataFrame:
    """h25_models.csv: of every family, whether each of its models is as H25 predicts: above 1."""
    row = {"experiment": "h25", "metric": "gain_hidden_states", "n": 25, "p": 1e-4}
    row |= {"gain": 1.2, "low": 1.1, "high": 1.3} | changes
    sides = {True: "above 1", False: "below 1"}
    rows = [
        row
        | {"model": f"{family}-{i}", "family": family, "correct": value}
        | {"predicted": sides[value]}
        for family, values in right.items()
        for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=TABLES["h25_models"].names)


def cells(name: str, *, bos: Sequence[str] = ("off",), **logs: float) -> list[dict[str, Any]]:
    """sensitivity.csv of a model whose tokenizer adds none; log-gains 0.1 but for what is given."""
    return [
        {"model": name, "bos": policy, "positions": positions, "metric": metric, "n": 25}
        | {"log_gain": logs.get(metric, 0.1), "low": 0.05, "high": 0.15, "reads": "above 1"}
        | {"usual": policy == "off"}
        for policy in bos
        for positions in POSITIONS
        for metric in METRICS
    ]


@functools.cache
def studies() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of the published numbers: observations and by_model.csv; intervals matter to no test."""
    prompts = pd.read_csv(DATA / "reference_prompts.csv")
    observations = published_observations(prompts, REFERENCES)
    return observations, by_model(observations, 0.95, 99)


TWIN = {"experiment": "twins", "base": "a", "tuned": "a-it", "n": 25, "base_gain": 2.0}
TWIN |= {"tuned_gain": 1.0, "log_ratio": math.log(0.5), "low": math.log(0.25), "high": 0.0}
TWIN |= {"p": 1e-9, "p_holm": 1e-9}


def tables(models: Sequence[dict[str, Any]], measured: str = "opt-125m") -> dict[str, Any]:
    """The tables that a paper is made of, by their names, without those of the models."""
    gc.freeze()
    return {
        "by_model": frame(models, model("", 0)),
        "by_norm": frame([compared()], compared()),
        "h25": frame([AT_CHANCE], AT_CHANCE),
        "h25_models": predictions({"a": [True, False], "b": [True]}),
        "twins": frame([TWIN], TWIN),
        "sensitivity": frame(cells(measured), cells("")[0]),
    }


def frame(rows: Sequence[dict[str, Any]], like: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(like))


def evidence(*measured: dict[str, Any], **changes: Any) -> Evidence:
    """Of the seven models, and what is measured; ``changes`` are tables by name."""
    gc.freeze()  # statsmodels collects garbage at every correction, longer than all the rest
    rows = [*changes.pop("published", published()), *measured]
    tables: dict[str, pd.DataFrame] = {
        "by_model": frame(rows, model("", 0)),
        "by_norm": frame([compared()], compared()),
        "h25": frame([AT_CHANCE], AT_CHANCE),
        "h25_models": predictions({}),
        "observations": pd.DataFrame(columns=["experiment", "model", "prompt", "gain"]),
        "sensitivity": frame([], cells("")[0]).astype({"usual": bool}),
        "references": REFERENCES,
    } | changes
    chosen = tables.pop("chosen", trained_models())
    by_name = {f"pretrained.{name}": table for name, table in tables.items()}
    return statements.evidence({"main.chosen": chosen} | by_name)


def trained_models(**r: Sequence[float]) -> pd.DataFrame:
    """Models of the small protocol, a seed each: r of entropy and gain, and the contrary of it.

    Args:
        r: values over seeds, by arm.
    """
    cell = {"protocol": "small", "placement": "pre", "learning_rate": 0.003}
    rows = [
        cell | {"arm": arm, "seed": i, "diverged_at": math.nan, "r_entropy_gain": v}
        for arm, values in r.items()
        for i, v in enumerate(values)
    ]
    columns = [*cell, "arm", "seed", "diverged_at", "r_entropy_gain"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(r_entropy_deviation=-table["r_entropy_gain"])


def claims(planted: Evidence) -> dict[str, Claim]:
    """What functions find of the published statements, by key."""
    return {key: statements.claim_on(key, planted) for key in KEYS}


def words(claim: Claim) -> dict[str, str]:
    """What is said of a statement, by the titles of its table."""
    finding = claim.finding
    return {
        "as published": finding.published,
        WAS: finding.own,
        "corrected": finding.corrected,
        NOW: claim.verdict,
    }


def table_of_words(planted: Evidence) -> pd.DataFrame:
    """What is said of all statements, as a table of words, a row a key."""
    return pd.DataFrame.from_dict({k: words(c) for k, c in claims(planted).items()}, orient="index")


def row(key: str, planted: Evidence) -> dict[str, str]:
    """What is said of a statement."""
    return words(statements.claim_on(key, planted))


def verdict(key: str, planted: Evidence) -> str:
    return row(key, planted)[NOW]
