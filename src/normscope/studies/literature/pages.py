"""Statements of the literature in words and tables, made from the study's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.formats import decimals
from normscope.nn.arms import ARMS
from normscope.pages.section import Section
from normscope.pages.table import (
    PageTable,
    count,
    declared,
    setting,
    tabulate,
    text,
)
from normscope.statistics.outcome import STUCK
from normscope.studies.arms import mean, means
from normscope.studies.literature.grid import Literature
from normscope.studies.literature.tables import MEASURES, SIGNED, TABLES
from normscope.studies.study import Settings

CELL = [
    text("protocol"),
    text("norm", "arm", lambda arm: ARMS[arm].label),
    *declared(TABLES["cells"], "placement"),
]
SHOWN = {  # measures by the heading of their column
    "stream_growth": "stream",
    "gradient_spread": "gradients",
    "free_blocks": "free blocks",
    "uniform_cosine": "cosine",
    "unselectable": "unselectable",
    "unselectable_keys": "keys",
    "largest_score": "score",
    "sink": "first",
    "sigma_growth": "sigma",
    "one_refined_loss": "one norm",
}


def loss_table(cells: pd.DataFrame) -> PageTable:
    """One row per norm and placement of a protocol."""
    fields = [
        *CELL,
        *declared(TABLES["cells"], "n"),
        setting("learning rate"),
        *declared(TABLES["cells"], "failed", "mean", "[mean]"),
    ]
    return tabulate("Validation loss at the chosen rate", cells, fields)


def measure_table(chosen: pd.DataFrame) -> PageTable:
    """One row per norm and placement of a protocol: means over models of what was measured."""
    rows = means(chosen, ["protocol", "arm", "placement"], list(SHOWN))
    fields = [*CELL, count("n"), *(mean(title, name) for name, title in SHOWN.items())]
    return tabulate("What was measured in the models", rows, fields)


def norm_table(norms: pd.DataFrame) -> PageTable:
    """One row per norm layer of a protocol's models: means over models of the loss without it."""
    losses = ["frozen_loss", "refined_loss"]
    rows = means(norms, [*TABLES["cells"].keys, "norm"], losses)
    fields = [
        *CELL,
        text("layer", "norm"),
        count("n"),
        mean("at once", "frozen_loss", SIGNED),
        mean("after further steps", "refined_loss", SIGNED),
    ]
    return tabulate("Loss added if one norm is frozen", rows, fields)


def slope_table(slopes: pd.DataFrame) -> PageTable:
    """One row per placement: means of the slopes over depth."""
    rows = means(slopes, ["arm", "placement"], ["change_slope", "gradient_slope"])
    fields = [
        text("norm", "arm", lambda arm: ARMS[arm].label),
        text("placement"),
        count("n"),
        mean("output change", "change_slope", decimals()),
        mean("last gradient", "gradient_slope", decimals()),
    ]
    return tabulate("Slopes over the logarithm of the depth", rows, fields)


def tower_table(towers: pd.DataFrame) -> PageTable:
    """One row per norm and mask: the mean collapse rate."""
    rows = means(towers, ["arm", "causal"], ["collapse_rate"])
    fields = [
        text("norm", "arm", lambda arm: ARMS[arm].label),
        text("causal", "causal", lambda causal: "yes" if causal else "no"),
        count("n"),
        mean("log of the factor per layer", "collapse_rate", decimals()),
    ]
    return tabulate("Attention without residual connections", rows, fields)


def section(study: Literature, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on statements of the literature.

    Args:
        study: its configuration.
        tables: cells, chosen, norms, slopes and towers.
    """
    trained = dict.fromkeys(cell.protocol for cell, _ in study.models())
    return Section(
        words={
            "protocols": [
                {
                    "name": name,
                    **study.protocols[name].model.model_dump(),
                    **study.protocols[name].training.model_dump(),
                }
                for name in trained
            ],
            "measures": {c.name: c.meaning for c in MEASURES},
            "windows": study.windows,
            "refined": study.refined.steps,
            "stuck": STUCK,
            "tower": study.untrained.tower,
        },
        tables={
            "cells": loss_table(tables["cells"]),
            "measures": measure_table(tables["chosen"]),
            "norms": norm_table(tables["norms"]),
            "slopes": slope_table(tables["slopes"]),
            "towers": tower_table(tables["towers"]),
        },
    )
