"""Rule metrics: what DVC shows and compares, metrics.json, and the tables of its plots."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.files import write_json, write_text
from normscope.paper.metrics import FILE, LEDGER, cells, curves, load, nested
from normscope.paper.statements import verdicts
from normscope.schema import Strict
from normscope.studies.folder import FOLDER


class Flags(Strict):
    """Write metrics.json and plots/."""

    claims: Path = Field(description="the ledger, claims.json")
    results: Path = Field(description="directory with a folder a study")
    out: Path = Field(description="directory of the files")


def write(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A table of a plot; DVC reads every file of a folder, so that no seal lies beside it."""
    table = pd.DataFrame(rows, columns=list(columns))
    write_text(path, table.to_csv(index=False, float_format="%.9g"))


def main() -> None:
    flags = parse(Flags)
    numbers: dict[str, Any] = {LEDGER: verdicts(json.loads(flags.claims.read_text()))}
    plots = flags.out / "plots"
    names = sorted(path.parent.name for path in FOLDER.glob(f"*/{FILE}"))
    for name, metric in load(FOLDER, names).items():
        path = flags.results / metric.study / "tables" / f"{metric.table}.csv"
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])  # a word may be NA
        rows = table.to_dict("records")
        if metric.along is None:
            values = cells(name, metric, rows)
            numbers[name] = nested(values)
            named = [{"cell": " ".join(cell), name: v} for cell, v in values.items()]
            write(plots / f"{name}.csv", named, ["cell", name])
        else:
            for cell, curve in curves(name, metric, rows).items():
                write(plots / name / f"{'-'.join(cell)}.csv", curve, [metric.along, metric.value])
    write_json(flags.out / "metrics.json", numbers)


if __name__ == "__main__":
    report(main)
