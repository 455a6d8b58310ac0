"""What a study hands over to the paper."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from normscope.errors import Explained
from normscope.paper.table import PageTable

Word = Any  # a text, a number, or a list or mapping of them: what JSON keeps as it is
Named = tuple[Iterable[object], str]  # a number by the words that name it
NUMBER = re.compile(r"[\d,]*\.?\d+%?")


class Section(NamedTuple):
    """A study's part of the paper.

    Args:
        words: by the names that the study's template gives them.
        tables: by the names that the study's template gives them, in the paper's order.
        numbers: for single macros of LaTeX.
    """

    words: Mapping[str, Word]
    tables: Mapping[str, PageTable]
    numbers: Sequence[Named] = ()


def named(pairs: Iterable[Named]) -> dict[str, str]:
    """Numbers by the words that name them.

    Raises:
        Explained: two numbers have one name.
    """
    numbers: dict[str, str] = {}
    for parts, value in pairs:
        name = " ".join(map(str, parts))
        if name in numbers:
            raise Explained(f"two numbers are called {name!r}: {numbers[name]} and {value}")
        numbers[name] = value
    return numbers


def numbers_among(words: Mapping[str, Word], *before: str) -> Iterator[Named]:
    """The words that are a number each, by their names after those ``before``."""
    for name, word in words.items():
        if NUMBER.fullmatch(str(word)):
            yield (*before, name), str(word)
