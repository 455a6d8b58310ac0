"""The table of the study of norms, made from its tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.formats import decimals
from normscope.pages.section import Section
from normscope.pages.table import (
    PageTable,
    estimate,
    field,
    fields_of,
    interval,
    setting,
    tabulate,
    text,
)
from normscope.studies.arms import arm_label
from normscope.studies.norms.grid import Norms
from normscope.studies.norms.tables import TABLES
from normscope.studies.study import Settings

SIGNED = decimals(sign=True)


def arm_table(arms: pd.DataFrame) -> PageTable:
    """One row per norm and placement: its rate, its loss, and how far that is above LayerNorm's."""
    fields = [
        text("training", "protocol"),
        field("norm", lambda row: arm_label(row["arm"], row["placement"])),
        setting("learning rate"),
        *fields_of(TABLES["arms"], "n", "failed"),
        estimate("loss", "mean", "low", "high"),
        *fields_of(TABLES["arms"], "difference"),
        interval("its interval", "difference_low", "difference_high", SIGNED),
        *fields_of(TABLES["arms"], "texts", "worse"),
    ]
    return tabulate("Loss of each norm at its own learning rate", arms, fields)


def section(study: Norms, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on every norm at its own learning rate."""
    arms = tables["arms"].assign(protocol=tables["arms"]["protocol"].replace(study.titles))
    used = dict.fromkeys(cell.protocol for cell, _ in study.models())
    texts = dict.fromkeys(text for name in used for text in study.protocols[name].texts)
    return Section(
        words={"texts": ", ".join(texts), "baseline": arm_label(**study.baseline.model_dump())},
        tables={"arms": arm_table(arms)},
    )
