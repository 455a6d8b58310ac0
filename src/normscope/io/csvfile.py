"""Writing CSV files. Separate from ``tables``, on which no measurement depends."""

import csv
import io
from pathlib import Path

import pandas as pd

from normscope.io.files import seal, write_bytes
from normscope.schema import FLOATS


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table, with the same bytes for the same numbers on every system."""
    text = io.StringIO()
    # the csv module does not quote a carriage return: if there is one, quote all text
    words = [table[name] for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    has_return = any("\r" in str(v) for column in words for v in column)
    quoting = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL
    table.to_csv(text, index=False, lineterminator="\n", float_format=f"%{FLOATS}", quoting=quoting)
    write_bytes(path, text.getvalue().encode())
    seal(path)
