"""The part of the paper that a study contributes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from normscope.columns import Table
from normscope.pages.table import Number, PageTable, fields_of, tabulate

Word = Any  # text, a number, a Number, or a list or mapping of them


class Section(NamedTuple):
    """A study's part of the paper.

    Args:
        words: by the names that the study's template uses.
        tables: by the names that the study's template uses, in the paper's order.
        numbers: for macros of LaTeX, by names such as "nanogpt layernorm pre loss".
    """

    words: Mapping[str, Word]
    tables: Mapping[str, PageTable]
    numbers: Mapping[str, Number] = {}


def declared_section(
    declarations: Mapping[str, Table], tables: Mapping[str, pd.DataFrame]
) -> Section:
    """The part of a study whose page shows its tables as they are declared: those with a title."""
    titled = {name: table for name, table in declarations.items() if table.title}
    return Section(
        words={},
        tables={
            name: tabulate(table.title, tables[name], fields_of(table, *table.names))
            for name, table in titled.items()
        },
    )
