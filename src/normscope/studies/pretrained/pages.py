"""Residual gain of pretrained models in words and tables, made from the workflow's tables alone."""

import math
from collections.abc import Mapping

import pandas as pd

from normscope.paper.words import Section, interval, number, records, reference, significant
from normscope.studies.pretrained.measures import METRICS, POSITIONS


def _bounds(low: float, high: float) -> str:
    return interval(math.exp(low), math.exp(high))


def gain_table(by_model: pd.DataFrame) -> pd.DataFrame:
    """A row per study and model: the last block's gain as published, then corrected."""
    rows = [
        {
            "study": r.experiment,
            "model": r.model,
            "norm": r.norm,
            "dtype": r.dtype,
            "n prompts": r.n,
            "mean": number(r.mean, 4),
            "sd": number(r.sd),
            "t against 1": number(r.t, 2, sign=True),
            "by the published rule": r.status,
            "geometric mean": number(math.exp(r.log_gain), 4),
            "interval": _bounds(r.low, r.high),
            "reads": r.reads,
        }
        for r in records(by_model)
    ]
    return pd.DataFrame(rows)


def entropy_table(by_model: pd.DataFrame) -> pd.DataFrame:
    """A row per study and model: correlations of entropy, as published and corrected."""
    rows = [
        {
            "model": r.model,
            "study": r.experiment,
            "r of abs(gain - 1)": number(r.r_deviation, sign=True),
            "raw r": number(r.r, sign=True),
            "interval": interval(r.r_low, r.r_high, sign=True),
            "Holm p": number(r.r_p_holm),
            "given words": number(r.r_given_words, sign=True),
            "without one category": interval(r.r_without_low, r.r_without_high, sign=True),
            "without Nonsense": number(r.r_without_nonsense, sign=True),
        }
        for r in records(by_model)
    ]
    return pd.DataFrame(rows)


def norm_table(by_norm: pd.DataFrame) -> pd.DataFrame:
    """LayerNorm against RMSNorm by comparison and unit."""
    rows = [
        {
            "comparison": r.comparison,
            "unit": r.unit,
            "LayerNorm": r.layernorm,
            "RMSNorm": r.rmsnorm,
            "difference of log-gains": number(r.difference, sign=True),
            "interval over prompts": interval(r.low, r.high, sign=True),
            "p": number(r.p),
            "smallest p": number(r.smallest, 4),
        }
        for r in records(by_norm)
    ]
    return pd.DataFrame(rows)


def twin_table(twins: pd.DataFrame) -> pd.DataFrame:
    """Fine-tuned models beside their base."""
    rows = [
        {
            "base": r.base,
            "tuned": r.tuned,
            "study": r.experiment,
            "n prompts": r.n,
            "mean gains": f"{number(r.base_gain)} to {number(r.tuned_gain)}",
            "factor": number(math.exp(r.log_ratio)),
            "interval": _bounds(r.low, r.high),
            "Holm p": significant(r.p_holm),
        }
        for r in records(twins)
    ]
    return pd.DataFrame(rows)


def h25_table(h25: pd.DataFrame) -> pd.DataFrame:
    """How often H25 is right, by study and metric."""
    rows = [
        {
            "study": r.experiment,
            "gain of": METRICS[r.metric],
            "models (families)": f"{r.n} ({r.families})",
            "right": r.right,
            "by the published rule": r.verdict if r.metric == "gain_hidden_states" else "–",
            "share": f"{number(r.share, 2)} {interval(r.low, r.high, 2)}",
            "decided, right": f"{r.decided}, {r.decided_right}",
            "r of rho": number(r.r, 2, sign=True),
            "given depth": number(r.r_given_depth, 2, sign=True),
            "its p": number(r.p_given_depth, 2),
        }
        for r in records(h25)
    ]
    return pd.DataFrame(rows)


def sensitivity_table(sensitivity: pd.DataFrame) -> pd.DataFrame:
    """A row per model and metric, a column per BOS policy and position."""
    found = {(r.model, r.metric, r.bos, r.positions): r for r in records(sensitivity)}
    rows = []
    for model in dict.fromkeys(sensitivity["model"]):
        for metric, title in METRICS.items():
            line = {"model": model, "gain": title}
            for bos in ("off", "on"):
                for positions in POSITIONS:
                    r = found.get((model, metric, bos, positions))
                    cell = "–" if r is None else significant(math.exp(r.log_gain))
                    reads = "" if r is None or not isinstance(r.reads, str) else f", {r.reads}"
                    line[f"{'BOS' if bos == 'on' else 'no BOS'}, {positions}"] = cell + reads
            rows.append(line)
    return pd.DataFrame(rows)


def model_table(models: pd.DataFrame) -> pd.DataFrame:
    """What the measured models are, and which could not be measured."""
    rows = []
    for r in records(models):
        if not isinstance(r.norm, str):
            rows.append({"model": r.model, "family": r.family, "is": f"not measured: {r.missing}"})
            continue
        grouped = f", {r.n_kv_heads:.0f} for keys" if r.grouped_queries is True else ""
        commit = f", commit {r.commit}" if isinstance(r.commit, str) else ""
        rows.append(
            {
                "model": r.model,
                "family": r.family,
                "is": f"{r.norm}, {r.n_layers:.0f} blocks, width "
                f"{r.n_embd:.0f}, {r.n_heads:.0f} heads of {r.head_dim:.0f}{grouped}, rho "
                f"{number(r.rho, 4)}; {r.parameters / 1e6:,.0f} million parameters, stored as "
                f"{r.stored}, computed in {r.computed}"
                f"{', streamed' if r.streamed is True else ''}; tokenizer "
                f"{'puts' if r.tokenizer_adds_bos is True else 'puts no'} BOS; {r.source}{commit}",
            }
        )
    return pd.DataFrame(rows)


def section(tables: Mapping[str, pd.DataFrame]) -> Section:
    """What the template of the summary says of pretrained models, by the template's names.

    Args:
        tables: models, by_model, by_norm, twins, h25, sensitivity of results/pretrained.
    """
    none = "No model was measured."
    models, cells = (tables[name] for name in ("models", "sensitivity"))
    shown = {
        "models": model_table(models),
        "pretrained": gain_table(tables["by_model"]),
        "entropy": entropy_table(tables["by_model"]),
        "norms": norm_table(tables["by_norm"]),
        "twins": twin_table(tables["twins"]),
        "h25": h25_table(tables["h25"]),
        "sensitivity": sensitivity_table(cells),
    }
    texts: dict[str, object] = {
        "pretrained_models": reference("models") if len(models) else none,
        "pretrained_sensitivity": reference("sensitivity") if len(cells) else none,
    }
    return Section(texts, shown)
