"""Numbers in words for readers.

``number`` has so many decimals, ``significant`` so many digits, ``significant_or_tiny`` a power of
ten where these would be zeros; ``interval`` is two numbers. A dash stands where there is none.
"""

import math
from typing import Any

import pandas as pd

DASH = "–"
SMALLEST = 1e-6  # what is below is printed as such


def records(table: pd.DataFrame) -> list[Any]:
    """The rows, with columns as attributes."""
    return list(table.itertuples())


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """To so many decimals, with a minus sign, and a plus if ``sign``."""
    if math.isnan(value):
        return DASH
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def significant(value: float, digits: int = 3) -> str:
    """Over many orders of magnitude, to so many digits; below ``SMALLEST`` that it is."""
    if math.isnan(value):
        return DASH
    if 0 <= abs(value) < SMALLEST:
        return f"< {SMALLEST:f}"
    digits_after = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, digits_after)}f}".replace("-", "−")


def significant_or_tiny(value: float) -> str:
    """3 digits; a power of ten where these would be zeros or many, and 0 for 0."""
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
