"""The frame: every word and number that is printed, once.

summary.md, its page, its print and the files for LaTeX are made from it and from nothing else, so
that no two of them can disagree.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from normscope.errors import Explained
from normscope.io.files import write_json


@dataclass(frozen=True)
class Frame:
    """What is printed.

    Args:
        texts: words by the template's names; they may refer to tables.
        tables: of text, by name.
        captions: title and caption of every figure, by the figure's name, in order.
        numbers: single numbers by the words that name them: "layernorm pre loss".
    """

    texts: Mapping[str, str]
    tables: Mapping[str, pd.DataFrame]
    captions: Mapping[str, tuple[str, str]]
    numbers: Mapping[str, str]

    def write(self, path: Path) -> None:
        """As JSON."""
        tables = {
            name: {"columns": list(t.columns), "rows": t.astype(str).to_numpy().tolist()}
            for name, t in self.tables.items()
        }
        order = list(self.captions)
        whole = {"texts": self.texts, "tables": tables, "figures": order}
        write_json(path, whole | {"captions": self.captions, "numbers": self.numbers})


def read(path: Path) -> Frame:
    """The frame of a file."""
    raw = json.loads(path.read_text())
    tables = {
        name: pd.DataFrame(t["rows"], columns=t["columns"]) for name, t in raw["tables"].items()
    }
    captions = {name: tuple(raw["captions"][name]) for name in raw["figures"]}
    return Frame(raw["texts"], tables, captions, raw["numbers"])


def named(pairs: Iterable[tuple[Iterable[object], str]]) -> dict[str, str]:
    """Numbers by the words that name them.

    Raises:
        Explained: two numbers have one name.
    """
    found: dict[str, str] = {}
    for words, value in pairs:
        name = " ".join(map(str, words))
        if name in found:
            raise Explained(f"two numbers are called {name!r}: {found[name]} and {value}")
        found[name] = value
    return found
