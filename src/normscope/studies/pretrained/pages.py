"""Residual gain of pretrained models in words and tables, made from the study's tables alone."""

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from normscope import words
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    CELLS,
    Column,
    PageTable,
    Row,
    count,
    crossed,
    estimate,
    interval,
    number,
    significant,
    tabulate,
    text,
    to_rows,
)
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.pretrained.measures import METRICS, POSITIONS
from normscope.studies.pretrained.studies import BOS
from normscope.studies.study import Settings


def gain_table(by_model: pd.DataFrame) -> PageTable:
    """A row per study and model: the last block's gain as published, then corrected."""
    columns = [
        Column("study", text("experiment")),
        Column("model", text("model")),
        Column("norm", text("norm")),
        Column("dtype", text("dtype")),
        Column("n prompts", count()),
        Column("mean", number("mean", 4)),
        Column("sd", number("sd")),
        Column("t against 1", number("t", 2, sign=True)),
        Column("by the published rule", text("status")),
        Column("geometric mean", number("log_gain", 4, log=True)),
        Column("interval", interval("low", "high", log=True)),
        Column("reads", text("reads")),
    ]
    return tabulate("Residual gain of pretrained models: the last block", by_model, columns)


def entropy_table(by_model: pd.DataFrame) -> PageTable:
    """A row per study and model: correlations of entropy, as published and corrected."""
    columns = [
        Column("model", text("model")),
        Column("study", text("experiment")),
        Column("r of abs(gain - 1)", number("r_deviation", sign=True)),
        Column("raw r", number("r", sign=True)),
        Column("interval", interval("r_low", "r_high", sign=True)),
        Column("Holm p", number("r_p_holm")),
        Column("given words", number("r_given_words", sign=True)),
        Column("without one category", interval("r_without_low", "r_without_high", sign=True)),
        Column("without Nonsense", number("r_without_nonsense", sign=True)),
    ]
    return tabulate("Residual gain and the entropy of the prediction", by_model, columns)


def norm_table(by_norm: pd.DataFrame) -> PageTable:
    """LayerNorm against RMSNorm by comparison and unit."""
    columns = [
        Column("comparison", text("comparison")),
        Column("unit", text("unit")),
        Column("LayerNorm", text("layernorm")),
        Column("RMSNorm", text("rmsnorm")),
        Column("difference of log-gains", number("difference", sign=True)),
        Column("interval over prompts", interval("low", "high", sign=True)),
        Column("p", number("p")),
        Column("smallest p", number("smallest", 4)),
    ]
    return tabulate("LayerNorm against RMSNorm", by_norm, columns)


def twin_table(twins: pd.DataFrame) -> PageTable:
    """Fine-tuned models beside their base."""
    columns = [
        Column("base", text("base")),
        Column("tuned", text("tuned")),
        Column("study", text("experiment")),
        Column("n prompts", count()),
        Column("mean gains", lambda r: f"{base_gain(r)} to {tuned_gain(r)}"),
        Column("factor", number("log_ratio", log=True)),
        Column("interval", interval("low", "high", log=True)),
        Column("Holm p", significant("p_holm")),
    ]
    base_gain, tuned_gain = number("base_gain"), number("tuned_gain")
    return tabulate("Base and fine-tuned models", twins, columns)


def h25_table(h25: pd.DataFrame) -> PageTable:
    """How often H25 is right, by study and metric."""
    columns = [
        Column("study", text("experiment")),
        Column("gain of", lambda row: METRICS[row["metric"]]),
        Column("models (families)", lambda row: f"{row['n']} ({row['families']})"),
        Column("right", text("right")),
        Column("by the published rule", _published_rule),
        Column("share", estimate("share", "low", "high", partial(words.number, digits=2))),
        Column("decided, right", lambda row: f"{row['decided']}, {row['decided_right']}"),
        Column("r of rho", number("r", 2, sign=True)),
        Column("given depth", number("r_given_depth", 2, sign=True)),
        Column("its p", number("p_given_depth", 2)),
    ]
    return tabulate("H25: heads over head dimension", h25, columns)


def _published_rule(row: Row) -> str:
    """The published word, which is about the penultimate block."""
    return row["verdict"] if row["metric"] == "gain_hidden_states" else words.DASH


def sensitivity_table(sensitivity: pd.DataFrame) -> PageTable:
    """A row per model and metric, a column per BOS policy and position."""
    records = crossed(sensitivity, ["model"], ["metric", "bos", "positions"])
    rows = [
        {**row, "metric": metric, "title": title}
        for row in records
        for metric, title in METRICS.items()
    ]
    columns = [
        Column("model", text("model")),
        Column("gain", text("title")),
        *(
            Column(f"{title}, {positions}", partial(_gain, bos, positions))
            for bos, title in BOS.items()
            for positions in POSITIONS
        ),
    ]
    return tabulate("What the gain of pretrained models depends on", rows, columns)


def _gain(bos: str, positions: str, row: Row) -> str:
    """A gain and how it reads, where both are known."""
    record = row[CELLS].get((row["metric"], bos, positions))
    if record is None:
        return words.DASH
    reads = f", {record['reads']}" if isinstance(record["reads"], str) else ""
    return significant("log_gain", log=True)(record) + reads


def model_table(models: pd.DataFrame) -> PageTable:
    """What the measured models are, and which could not be measured."""
    columns = [
        Column("model", text("model")),
        Column("family", text("family")),
        Column("is", _model),
    ]
    return tabulate("Pretrained models that are measured here", models, columns)


def _model(row: Row) -> str:
    """What a model is, or why it is not known."""
    if not isinstance(row["norm"], str):
        return f"not measured: {row['missing']}"
    grouped = f", {row['n_kv_heads']:.0f} for keys" if row["grouped_queries"] is True else ""
    streamed = ", streamed" if row["streamed"] is True else ""
    puts = "puts" if row["tokenizer_adds_bos"] is True else "puts no"
    commit = f", commit {row['commit']}" if isinstance(row["commit"], str) else ""
    return (
        f"{row['norm']}, {row['n_layers']:.0f} blocks, width {row['n_embd']:.0f}, "
        f"{row['n_heads']:.0f} heads of {row['head_dim']:.0f}{grouped}, rho "
        f"{words.number(row['rho'], 4)}; {row['parameters'] / 1e6:,.0f} million parameters, stored "
        f"as {row['stored']}, computed in {row['computed']}{streamed}; tokenizer {puts} BOS; "
        f"{row['source']}{commit}"
    )


def _numbers(by_model: pd.DataFrame) -> Iterator[Named]:
    gain = number("log_gain", log=True)
    for row in to_rows(by_model):
        yield (row["model"], row["experiment"], "last gain"), gain(row)


def section(study: Pretrained, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on pretrained models.

    Args:
        tables: models, by_model, by_norm, twins, h25 and sensitivity.
    """
    by_model = tables["by_model"]
    return Section(
        words={},
        tables={
            "models": model_table(tables["models"]),
            "gains": gain_table(by_model),
            "entropy": entropy_table(by_model),
            "norms": norm_table(tables["by_norm"]),
            "twins": twin_table(tables["twins"]),
            "h25": h25_table(tables["h25"]),
            "sensitivity": sensitivity_table(tables["sensitivity"]),
        },
        numbers=list(_numbers(by_model)),
    )
