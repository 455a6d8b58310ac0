"""The workflow's tables for readers: numbers as words, LaTeX and Markdown."""

import math
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

SMALLEST = 1e-6  # what is below is printed as such
NAMES = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
DIGITS = {str(digit): name for digit, name in enumerate(NAMES)}


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


def interval(low: float, high: float, digits: int = 3, sign: bool = False) -> str:
    """``[low, high]``, or a dash where there is none."""
    if math.isnan(low):
        return "–"
    return f"[{number(low, digits, sign)}, {number(high, digits, sign)}]"


def markdown(table: pd.DataFrame) -> str:
    """A pipe table of cells that are text already; "none" where there is no row."""
    if table.empty:
        return "none"
    cells = [list(table.columns), *table.astype(str).values.tolist()]
    head, *rows = [[" ".join(c.replace("|", "\\|").split()) for c in row] for row in cells]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def _escaped(cell: object) -> str:
    """A cell as TeX has it in its default encoding."""
    text = str(cell).replace("−", "$-$").replace("–", "--")
    return re.sub(r"([<>|])", r"$\1$", re.sub(r"([_%&#])", r"\\\1", text))


def latex(table: pd.DataFrame) -> str:
    """A booktabs tabular of cells that are text already; "none" where there is no row."""
    if table.empty:
        table = pd.DataFrame({"": ["none"]})
    words = pd.DataFrame([list(table.columns), *table.astype(str).values.tolist()])
    escaped = words.map(_escaped)
    body = pd.DataFrame(escaped.values[1:], columns=escaped.iloc[0])
    return body.to_latex(index=False, escape=False, column_format="l" * len(table.columns))


def macro(words: Iterable[str], value: str) -> str:
    r"""``\newcommand`` of a number; TeX names have letters only, so digits are spelled."""
    spelled = "".join(
        "".join(DIGITS.get(c, c) for c in part).title()
        for word in words
        for part in re.split(r"[_\W]", word)
    )
    return rf"\newcommand{{\normscope{spelled}}}{{{value.replace('−', '-')}}}"
