"""Sentences of statements: numbers as text, by the formats of ``normscope.formats``."""

import math
from typing import Any

import pandas as pd

from normscope.formats import DASH, SCIENTIFIC, Format, decimals


def records(table: pd.DataFrame) -> list[Any]:
    """The rows of a table, with columns as attributes."""
    return list(table.itertuples())


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number with ``digits`` decimals and a minus sign; with a plus sign if ``sign``."""
    return decimals(digits, sign=sign).text(value)


def significant(value: float, digits: int = 3) -> str:
    """A number of any magnitude with ``digits`` significant digits; ``< 0.000001`` if smaller."""
    return Format("significant", digits).text(value)


def significant_or_tiny(value: float) -> str:
    """3 significant digits, with a power of ten below 0.0001 and from 10,000; 0 is 0."""
    return SCIENTIFIC.text(value)


def interval(low: float, high: float, digits: int = 3, sign: bool = False) -> str:
    """``[low, high]``."""
    if math.isnan(low):
        return DASH
    return f"[{number(low, digits, sign)}, {number(high, digits, sign)}]"
