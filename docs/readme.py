"""Refresh what README.md shows from results: the table of loss and time, and the figure."""

import shutil
from pathlib import Path
from statistics import median

import pandas as pd

from normscope.files import write_text
from normscope.summary import name
from normscope.tables import interval, markdown, number, records

README, BEGIN, END = Path("README.md"), "<!-- results: make readme -->", "<!-- end of results -->"
TABLES, TIMES = Path("results/tables"), Path("results/benchmarks/train")


def seconds(arm: str, placement: str) -> str:
    """Median wall-clock time of the arm's runs, as this machine trained them, several at once."""
    files = sorted(TIMES.glob(f"{arm}-{placement}-*.tsv"))
    times = [float(pd.read_csv(path, sep="\t")["s"].iloc[0]) for path in files]
    return f"{median(times):.0f}" if times else "–"


def main() -> None:
    arms = pd.read_csv(TABLES / "arms.csv")
    table = pd.DataFrame(
        {
            "arm": [name(r.arm, r.placement) for r in records(arms)],
            "n": arms["n"],
            "validation loss": [number(v) for v in arms["mean"]],
            "95% interval": [interval(r.low, r.high) for r in records(arms)],
            "seconds a run": [seconds(r.arm, r.placement) for r in records(arms)],
        }
    )
    text = README.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    write_text(README, f"{head}{BEGIN}\n\n{markdown(table)}\n\n{END}{tail}")
    shutil.copyfile("results/paper/figures/loss.svg", "docs/loss.svg")


if __name__ == "__main__":
    main()
