"""Residual gain of pretrained models in words and tables, made from the study's tables alone."""

from collections.abc import Mapping
from operator import itemgetter

import pandas as pd

from normscope.columns import Column
from normscope.formats import decimals
from normscope.pages.section import Section
from normscope.pages.table import (
    Cell,
    PageTable,
    Quantity,
    Row,
    estimate,
    field,
    fields_of,
    interval,
    tabulate,
    text,
)
from normscope.statistics.summary import split
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.pretrained.measures import BOS, INSIDE, METRICS
from normscope.studies.pretrained.statistics import means_inside
from normscope.studies.pretrained.tables import TABLES
from normscope.studies.study import Settings

SIGNED = decimals(sign=True)


def gain_table(by_model: pd.DataFrame) -> PageTable:
    """One row per study and model: the last block's gain, as published and corrected."""
    names = "experiment model norm dtype n mean sd t status log_gain [log_gain] reads".split()
    return tabulate(
        "Residual gain of pretrained models: the last block",
        by_model,
        fields_of(TABLES["by_model"], *names),
    )


def entropy_table(by_model: pd.DataFrame) -> PageTable:
    """One row per study and model: correlations of entropy, as published and corrected."""
    by = TABLES["by_model"]
    fields = [
        *fields_of(by, "model", "experiment", "r_deviation", "r", "[r]", "r_p_holm"),
        *fields_of(by, "r_given_words"),
        interval("without one category", "r_without_low", "r_without_high", SIGNED),
        *fields_of(by, "r_without_nonsense"),
    ]
    return tabulate("Residual gain and the entropy of the prediction", by_model, fields)


def norm_table(by_norm: pd.DataFrame) -> PageTable:
    """LayerNorm compared with RMSNorm by comparison and unit."""
    fields = [
        *fields_of(TABLES["by_norm"], "comparison", "unit", "layernorm", "rmsnorm", "difference"),
        interval("interval over prompts", form=SIGNED),
        *fields_of(TABLES["by_norm"], "p", "smallest"),
    ]
    return tabulate("LayerNorm against RMSNorm", by_norm, fields)


def h25_table(h25: pd.DataFrame) -> PageTable:
    """How often H25 is right, by study and metric."""

    def published_rule(row: Row) -> str | None:
        """The published verdict, which is about the penultimate block."""
        return row["verdict"] if row["metric"] == "gain_hidden_states" else None

    declaration = TABLES["h25"]
    fields = [
        *fields_of(declaration, "experiment"),
        text("gain of", "metric", lambda metric: METRICS[metric]),
        field("models (families)", lambda row: f"{row['n']} ({row['families']})"),
        *fields_of(declaration, "right"),
        field("by the published rule", published_rule),
        estimate("share", "share", form=decimals(2)),
        field("decided, right", lambda row: f"{row['decided']}, {row['decided_right']}"),
        *fields_of(declaration, "r", "r_given_depth", "p_given_depth"),
    ]
    return tabulate("H25: heads over head dimension", h25, fields)


def inside_table(inside: pd.DataFrame) -> PageTable:
    """One row per model and BOS policy: means over blocks, and the largest value of a block."""
    columns = [TABLES["inside"][name] for name in INSIDE]
    rows = []
    for key, blocks in split(inside, ["model", "bos"]):
        means = means_inside(blocks)
        rows.append(key | {c.name: _block_mean(c, means[c.name], blocks) for c in columns})
    fields = [text("model"), text("policy", "bos", lambda bos: BOS[bos])]
    fields += [field(c.heading, itemgetter(c.name), c.format) for c in columns]
    return tabulate("Inside the blocks of pretrained models", rows, fields)


def _block_mean(column: Column, mean: float, blocks: pd.DataFrame) -> Cell:
    """A mean over blocks, with the value that is largest in size; a dash if all are missing."""
    values = blocks[column.name].dropna()
    if values.empty:
        return None
    return Quantity(mean, note=f", largest {column.format.text(max(values, key=abs))}")


def model_table(models: pd.DataFrame) -> PageTable:
    """What the measured models are, and which could not be measured."""
    fields = [text("model"), text("family"), field("is", _model)]
    return tabulate("Pretrained models that are measured here", models, fields)


def _model(row: Row) -> str:
    """What a model is, or why it is not known."""
    if not isinstance(row["norm"], str):
        return f"not measured: {row['missing']}"
    return (
        f"{row['norm']}, {row['n_layers']:.0f} blocks, width {row['n_embd']:.0f}, "
        f"{row['n_heads']:.0f} heads of {row['head_dim']:.0f}, rho {row['rho']:.4f}; "
        f"{row['parameters'] / 1e6:,.0f} million parameters, stored as {row['stored']}; "
        f"{row['source']}"
    )


def section(study: Pretrained, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on pretrained models.

    Args:
        tables: models, by_model, by_norm, h25 and inside.
    """
    by_model = tables["by_model"]
    return Section(
        words={},
        tables={
            "models": model_table(tables["models"]),
            "gains": gain_table(by_model),
            "entropy": entropy_table(by_model),
            "norms": norm_table(tables["by_norm"]),
            "h25": h25_table(tables["h25"]),
            "inside": inside_table(tables["inside"]),
        },
    )
