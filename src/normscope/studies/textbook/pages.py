"""LayerNorm from scratch in a table, made from the study's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.pages.section import Section
from normscope.pages.table import PageTable, declared, tabulate
from normscope.studies.study import Settings
from normscope.studies.textbook.grid import Textbook
from normscope.studies.textbook.tables import TABLES


def scratch_table(scratch: pd.DataFrame) -> PageTable:
    """One row per width: the tutorial's class compared with torch's layer_norm."""
    return tabulate(
        "LayerNorm from scratch", scratch, declared(TABLES["scratch"], *TABLES["scratch"].names)
    )


def section(study: Textbook, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on LayerNorm from scratch.

    Args:
        tables: scratch.
    """
    return Section(words={}, tables={"scratch": scratch_table(tables["scratch"])})
