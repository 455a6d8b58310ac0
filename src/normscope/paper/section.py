"""The part of the paper that a study contributes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from normscope.columns import Table
from normscope.errors import Explained
from normscope.formats import GENERAL, INTEGER, Format
from normscope.paper.table import Number, PageTable, known, to_rows
from normscope.schema import rate_name

Word = Any  # text, a number, a Number, or a list or mapping of them


class Named(NamedTuple):
    """A number with a name: one macro for LaTeX.

    Args:
        parts: words of its name.
        value: the number, which may be missing.
        format: how it is printed.
    """

    parts: Iterable[object]
    value: float | None
    format: Format = INTEGER


class Section(NamedTuple):
    """A study's part of the paper.

    Args:
        words: by the names that the study's template uses.
        tables: by the names that the study's template uses, in the paper's order.
        numbers: for macros of LaTeX, in addition to the numbers among the words.
    """

    words: Mapping[str, Word]
    tables: Mapping[str, PageTable]
    numbers: Sequence[Named] = ()


def named(numbers: Iterable[Named]) -> dict[str, Number]:
    """Numbers by their names, in alphabetical order.

    Raises:
        Explained: two numbers have the same name.
    """
    by_name: dict[str, Number] = {}
    for parts, value, form in numbers:
        name = " ".join(map(str, parts))
        number = Number(known(value), form)
        if name in by_name:
            raise Explained(f"two numbers are called {name!r}: {by_name[name]} and {number}")
        by_name[name] = number
    return dict(sorted(by_name.items()))


def declared_numbers(table: Table, frame: pd.DataFrame) -> Iterator[Named]:
    """The numbers of a table that are macros, as its columns declare.

    Args:
        table: the declaration.
        frame: the table.
    """
    columns = [column for column in table.columns if column.macro]
    for row in to_rows(frame) if columns else ():
        words = {k: rate_name(v) if k == "learning_rate" else v for k, v in row.items()}
        for column in columns:
            if pd.notna(row[column.name]):
                yield Named([column.macro.format(**words)], row[column.name], column.format)


def numbers_among(words: Mapping[str, Word], *before: str) -> Iterator[Named]:
    """The words that are numbers; their names begin with ``before``."""
    for name, word in words.items():
        if isinstance(word, Number):
            yield Named((*before, name), word.value, word.format)
        elif isinstance(word, int | float) and not isinstance(word, bool):
            yield Named((*before, name), word, INTEGER if isinstance(word, int) else GENERAL)
