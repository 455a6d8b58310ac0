"""What a study contributes to the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from normscope.errors import Explained
from normscope.formats import GENERAL, INTEGER, Format
from normscope.paper.table import Number, PageTable, known

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
    """Numbers by their names.

    Raises:
        Explained: two numbers have the same name.
    """
    found: dict[str, Number] = {}
    for parts, value, form in numbers:
        name = " ".join(map(str, parts))
        number = Number(known(value), form)
        if name in found:
            raise Explained(f"two numbers are called {name!r}: {found[name]} and {number}")
        found[name] = number
    return found


def numbers_among(words: Mapping[str, Word], *before: str) -> Iterator[Named]:
    """The words that are numbers; their names begin with ``before``."""
    for name, word in words.items():
        if isinstance(word, Number):
            yield Named((*before, name), word.value, word.format)
        elif isinstance(word, int | float) and not isinstance(word, bool):
            yield Named((*before, name), word, INTEGER if isinstance(word, int) else GENERAL)
