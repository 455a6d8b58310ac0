"""Frames for LaTeX and print, with text that is meant to break them, and what was written."""

import re
from pathlib import Path

import pandas as pd

from normscope.paper.frame import Frame, named
from normscope.paper.latex import LEDGER, numbers
from normscope.paper.textable import tabular
from normscope.paper.words import number, records
from normscope.studies.jacobian.pages import cost_table, layer_table
from normscope.studies.jacobian.tables import VARIED

GAINS = {"arm": "layernorm", "placement": "pre", "n": 2}
GAINS |= {f"{k}{end}": 1.0 for k in ("first", "later", "last") for end in ("", "_low", "_high")}
HOSTILE = (
    "_ % & # $ { } ~ ^ \\ < > |",
    r"\input{/etc/passwd} \write18{touch owned} \end{document}",
    "\"straight\" 'single' ``back'' “curly” ‘one’ ?` !` -- --- ,, << >>",
    "−0.5 – 1.43e-107 naïve Ångström Łódź ÿ α Ω ς µ ϡ ² ≤",
    "模型 🙂 \u200b\x07 العربية",
    "[1, 2] * & \\\\ [0pt]",
    "W" * 120,
    '#panic() #read("/etc/passwd") *b* _e_ `c` @x <y> $z$ //',
)


def hostile_frame() -> Frame:
    """Every text is hostile, in headers, cells, captions and names."""
    rows = [[cell, "1.0", f"[{i}, {cell[:9]}]"] for i, cell in enumerate(HOSTILE)]
    table = pd.DataFrame(rows, columns=["a_b, 100%", "n & m, 100%", "\\x"])
    ledger = pd.DataFrame([[text] * len(LEDGER) for text in HOSTILE], columns=LEDGER)
    captions = {"loss": (HOSTILE[0], " ".join(HOSTILE))}
    values = {f"of 模型 {i}": text for i, text in enumerate(HOSTILE)} | {"claims": "38"}
    tables = {"ledger": ledger, "loss": table, "empty": table[:0], "recall_a_b": table}
    return Frame({"words": " ".join(HOSTILE)}, tables, captions, values)


def tex(place: Path) -> dict[str, str]:
    """LaTeX of the tables of norms' backward pass in a directory, and of their numbers."""
    layers, costs = (pd.read_csv(place / f"{n}.csv") for n in ("layers_by_cell", "costs"))
    values = named(
        ((*(getattr(r, key) for key in VARIED), "cost"), number(r.mean))
        for r in records(costs.dropna(subset="mean"))
    )
    return {
        "jacobian": tabular(layer_table(layers, "script")),
        "surrogates": tabular(cost_table(costs, "small")),
        "numbers": numbers(values).partition("\n")[2],
    }


def rows_of(text: str) -> list[str]:
    """The rows of a table, its header first, each with a cell a column."""
    body = re.search(r"\\toprule\n(.*?)\\(?:bottomrule\n\\end\{tabular|end\{longtable)", text, re.S)
    assert body is not None, text
    first, _, rest = body[1].partition("\n\\midrule\n")
    head = first.splitlines()[-1]
    rows = rest.rpartition("\\endlastfoot\n")[2]
    kept = [line for line in rows.splitlines() if line.endswith(r" \\")]
    of = [len(re.findall(r"(?<!\\)&", row)) for row in (head, *kept)]
    assert len(set(of)) == 1, text
    return [head, *kept]
