"""LayerNorm from scratch in a table, made from the study's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.paper.section import Section
from normscope.paper.table import Column, PageTable, count, number, significant, tabulate, yes_no
from normscope.studies.study import Settings
from normscope.studies.textbook.grid import Textbook


def scratch_table(scratch: pd.DataFrame) -> PageTable:
    """A row per width: the tutorial's class beside torch's layer_norm."""
    columns = [
        Column("d", count("d")),
        Column("output, ratio", number("ratio", 4)),
        Column("sqrt((d - 1)/d)", number("theory", 4)),
        Column("error", significant("error_forward")),
        Column("error of the gradient", significant("error_backward")),
        Column("error of this project's", significant("error_ours")),
        Column("finite", yes_no("finite")),
    ]
    return tabulate("LayerNorm from scratch", scratch, columns)


def section(study: Textbook, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on LayerNorm from scratch.

    Args:
        tables: scratch.
    """
    return Section(words={}, tables={"scratch": scratch_table(tables["scratch"])})
