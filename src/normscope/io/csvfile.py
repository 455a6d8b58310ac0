"""Writing the workflow's tables. Apart from their looks, which decide no measurement."""

import csv
import io
from pathlib import Path

import pandas as pd

from normscope.io.files import write_sealed


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """The same bytes for the same numbers, on every system."""
    text = io.StringIO()
    # in quotes all text, should there be a carriage return: the csv module leaves it bare
    words = [table[name] for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    has_return = any("\r" in str(v) for column in words for v in column)
    quoting = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL
    table.to_csv(text, index=False, lineterminator="\n", float_format="%.9g", quoting=quoting)
    write_sealed(path, text.getvalue().encode())
