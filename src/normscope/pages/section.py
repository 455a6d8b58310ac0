"""The part of the paper that a study contributes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from normscope.pages.table import Number, PageTable

Word = Any  # text, a number, a Number, or a list or mapping of them


class Section(NamedTuple):
    """A study's part of the paper.

    Args:
        words: by the names that the study's template uses.
        tables: by the names that the study's template uses, in the paper's order.
        numbers: for macros of LaTeX, by names such as "nanogpt layernorm pre loss".
    """

    words: Mapping[str, Word]
    tables: Mapping[str, PageTable]
    numbers: Mapping[str, Number] = {}
