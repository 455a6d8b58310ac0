"""What rule latex writes of made-up tables, for tests."""

import re
from pathlib import Path

import depth_pages
import pandas as pd
from pretrained_claimed import model, published, tables
from pretrained_evidence import run
from test_recall_claims import cells
from test_recall_summary import NO_FACTORS
from test_summary import row as arm_row

GAINS = {"arm": "layernorm", "placement": "pre", "n": 2}
GAINS |= {f"{k}{end}": 1.0 for k in ("first", "later", "last") for end in ("", "_low", "_high")}


def tex(place: Path) -> dict[str, str]:
    """What latex.py writes of the tables, with a decisive test of no crossed factors."""
    pd.DataFrame([arm_row()]).to_csv(place / "arms.csv", index=False)
    pd.DataFrame([GAINS]).to_csv(place / "gains.csv", index=False)
    cells({}).to_csv(place / "cells.csv", index=False)
    NO_FACTORS.to_csv(place / "factors.csv", index=False)
    files = [(f"--{name}", place / f"{name}.csv") for name in ("arms", "gains", "cells", "factors")]
    words: list[object] = [word for pair in files for word in pair]
    (place / "models").mkdir(exist_ok=True)
    for name, table in tables([*published(), model("opt-125m", 0.1)]).items():
        table.to_csv(place / "models" / f"{name}.csv", index=False)
    words += ["--jacobian", place, "--pretrained", place / "models"]
    words += depth_pages.write(place)
    words += ["--published", "script", "--corrected", "small"]
    run("latex", [*words, "--out", place / "tex"])
    written = {p.stem: p.read_text() for p in (place / "tex" / "tables").iterdir()}
    return written | {"numbers": (place / "tex" / "numbers.tex").read_text()}


def rows_of(text: str) -> list[str]:
    """The rows of a booktabs tabular, its header first, each with a cell a column."""
    lines = [line.strip() for line in text.splitlines()]
    begin = re.fullmatch(r"\\begin\{tabular\}\{(l+)\}", lines[0])
    assert begin is not None, lines[0]
    assert lines[-1] == r"\end{tabular}"
    rules = [line for line in lines if line.endswith("rule")]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    rows = [line for line in lines[1:-1] if line not in rules]
    for row in rows:
        assert row.endswith(r"\\")
        assert len(re.findall(r"(?<!\\)&", row)) == len(begin[1]) - 1, row
    return rows
