"""The workflow's tables for readers: numbers as words, and Markdown."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

SMALLEST = 1e-6  # what is below is printed as such


def records(table: pd.DataFrame) -> list[Any]:
    """The rows, with columns as attributes."""
    return list(table.itertuples())


def run_key(name: str) -> dict[str, str | int]:
    """Arm, placement and seed from a run's name, ``layernorm-pre-1337``."""
    arm, placement, seed = name.split("-")
    return {"arm": arm, "placement": placement, "seed": int(seed)}


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number for people; a dash where there is none."""
    if math.isnan(value):
        return "–"
    return (
        f"{value:+.{digits}f}".replace("-", "−")
        if sign
        else f"{value:.{digits}f}".replace("-", "−")
    )


def significant(value: float, digits: int = 3) -> str:
    """A number over many orders of magnitude, to so many digits; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if 0 <= abs(value) < SMALLEST:
        return f"< {SMALLEST:f}".replace("-", "−")
    digits_after = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, digits_after)}f}".replace("-", "−")


def significant_or_tiny(value: float) -> str:
    """3 digits; a power of ten where these would be zeros or many, and 0 for 0."""
    if value == 0:
        return "0"
    if math.isnan(value):
        return "–"
    return f"{value:.2e}" if abs(value) < 1e-4 or abs(value) >= 1e4 else significant(value)


def interval(low: float, high: float, digits: int = 3, sign: bool = False) -> str:
    """``[low, high]``, or a dash where there is none."""
    if math.isnan(low):
        return "–"
    return f"[{number(low, digits, sign)}, {number(high, digits, sign)}]"


def escaped(text: str) -> str:
    r"""Text as Markdown has it, so that none of it is taken for markup or HTML.

    Brackets of intervals stay as they are: they are no link without what follows.
    """
    text = re.sub(r"([\\`*<~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))", r"\\\1", text)
    return text.replace("](", "]\\(").replace("][", "]\\[")


def markdown(table: pd.DataFrame) -> str:
    """A pipe table of cells that are text already; "none" where there is no row."""
    if table.empty:
        return "none"
    cells = [list(table.columns), *table.astype(str).values.tolist()]
    head, *rows = [[" ".join(escaped(c).replace("|", "\\|").split()) for c in row] for row in cells]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


class Section(NamedTuple):
    """A part of the summary: words by the template's names, and tables that they refer to."""

    texts: dict[str, object]
    tables: dict[str, pd.DataFrame]

    def rendered(self) -> dict[str, object]:
        """The words with their tables in Markdown."""
        return {
            k: placed(v, self.tables) if isinstance(v, str) else v for k, v in self.texts.items()
        }


def reference(name: str) -> str:
    """Where a table stands in a text."""
    return f"[[table {name}]]"


def placed(text: str, tables: Mapping[str, pd.DataFrame]) -> str:
    """The text with its tables in Markdown.

    Raises:
        KeyError: it refers to a table that is not there.
    """
    return re.sub(r"\[\[table (\w+)\]\]", lambda m: markdown(tables[m[1]]), text)
