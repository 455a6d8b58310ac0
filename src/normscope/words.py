"""Numbers as text for readers.

``number`` has a fixed number of decimals, ``significant`` of significant digits;
``significant_or_tiny`` writes very small and large numbers with a power of ten. NaN is a dash.
"""

import math
from typing import Any

import pandas as pd

DASH = "–"
SMALLEST = 1e-6  # smaller numbers are printed as < 0.000001


def records(table: pd.DataFrame) -> list[Any]:
    """The rows of a table, with columns as attributes."""
    return list(table.itertuples())


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number with ``digits`` decimals and a minus sign; with a plus sign if ``sign``."""
    if math.isnan(value):
        return DASH
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def significant(value: float, digits: int = 3) -> str:
    """A number of any magnitude with ``digits`` significant digits; ``< 0.000001`` if smaller."""
    if math.isnan(value):
        return DASH
    if 0 <= abs(value) < SMALLEST:
        return f"< {SMALLEST:f}"
    digits_after = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, digits_after)}f}".replace("-", "−")


def significant_or_tiny(value: float) -> str:
    """3 significant digits, with a power of ten below 0.0001 and from 10,000; 0 is 0."""
    if value == 0:
        return "0"
    if math.isnan(value):
        return DASH
    return f"{value:.2e}" if abs(value) < 1e-4 or abs(value) >= 1e4 else significant(value)


def interval(low: float, high: float, digits: int = 3, sign: bool = False) -> str:
    """``[low, high]``."""
    if math.isnan(low):
        return DASH
    return f"[{number(low, digits, sign)}, {number(high, digits, sign)}]"
