"""LayerNorm from scratch in a table, made from the study's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.formats import SIGNIFICANT, decimals
from normscope.paper.section import Section
from normscope.paper.table import PageTable, count, number, tabulate, yes_no
from normscope.studies.study import Settings
from normscope.studies.textbook.grid import Textbook


def scratch_table(scratch: pd.DataFrame) -> PageTable:
    """One row per width: the tutorial's class compared with torch's layer_norm."""
    fields = [
        count("d"),
        number("output, ratio", "ratio", decimals(4)),
        number("sqrt((d - 1)/d)", "theory", decimals(4)),
        number("error", "error_forward", SIGNIFICANT),
        number("error of the gradient", "error_backward", SIGNIFICANT),
        number("error of this project's", "error_ours", SIGNIFICANT),
        yes_no("finite", "finite"),
    ]
    return tabulate("LayerNorm from scratch", scratch, fields)


def section(study: Textbook, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on LayerNorm from scratch.

    Args:
        tables: scratch.
    """
    return Section(words={}, tables={"scratch": scratch_table(tables["scratch"])})
