"""Refresh what README.md and docs/results.md show from results: tables and figures."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from normscope.config import load
from normscope.io.files import write_text
from normscope.paper.markdown import pipe_table
from normscope.paper.statements import ledger_table
from normscope.paper.table import PageTable
from normscope.statistics.summary import select
from normscope.studies.depth.pages import rate_table
from normscope.studies.jacobian.pages import cost_table
from normscope.studies.main.pages import loss_table
from normscope.studies.pretrained.pages import gain_table
from normscope.studies.recall.pages import cell_table

README, PAGE = Path("README.md"), Path("docs/results.md")
RESULTS = Path("results")
PRIMARY = ("statement", "source", "published", "corrected", "why")
LEDGER = ("statement", "source", "published", "corrected", "n", "p (Holm)", "why")
BLOCK = re.compile(r"(<!-- (\w+): make readme -->).*?(<!-- end of \2 -->)", re.DOTALL)
FIGURES = (
    "loss slice factors surrogates dose jacobian comparison sensitivity signals trainability"
).split()


def table(study: str, name: str) -> pd.DataFrame:
    """A table of a study."""
    return pd.read_csv(RESULTS / study / "tables" / f"{name}.csv")


def primary(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger of the statements that documents stand on."""
    return {**ledger, "claims": [c for c in ledger["claims"] if c["primary"]]}


def verdicts(ledger: Mapping[str, Any]) -> PageTable:
    """How many statements have each verdict."""
    counts = Counter(claim["verdict"] for claim in ledger["claims"])
    words = ("holds", "fails", "undecided")
    return PageTable("Verdicts", words, (tuple(str(counts[word]) for word in words),))


def tables() -> dict[str, PageTable]:
    """What stands in the pages, by the names of their blocks."""
    config = load(yaml.safe_load(Path("config.yaml").read_text()))
    ledger = json.loads((RESULTS / "paper" / "claims.json").read_text())
    copy = cell_table(table("recall", "cells"), config.recall.published.task)
    costs = cost_table(table("jacobian", "costs"), config.jacobian.corrected)
    shapes, models = table("depth", "by_shape"), table("pretrained", "by_model")
    is_shown = shapes["arm"].isin(["layernorm", "none"]) & (shapes["state"] == "start")
    is_shown &= shapes["depth"].isin([12, 48])
    return {
        "results": loss_table(select(table("main", "arms"), protocol="nanogpt")).select(
            *("arm", "n", "learning rate", "loss", "interval")
        ),
        "ledger": ledger_table(ledger).select(*LEDGER),
        "primary": ledger_table(primary(ledger)).select(*PRIMARY),
        "verdicts": verdicts(ledger),
        "copy": copy.select(
            *("arm", "learning rate", "loss", "accuracy", "calibrated loss"),
            *("accuracy without context", "effective rank"),
        ),
        "surrogates": costs.select(
            *("attention", "feedback", "penalty", "surrogate", "in"),
            *("n", "failed", "cost", "interval", "loss"),
        ),
        "depth": rate_table(shapes[is_shown]).select(
            *("placement", "residual", "start", "blocks", "n", "gradient per block"),
            *("stream per block", "least singular value"),
        ),
        "pretrained": gain_table(models[models["experiment"] != "twins"]).select(
            *("model", "norm", "study", "n prompts", "mean", "t against 1", "geometric mean"),
            *("interval", "reads"),
        ),
    }


def refreshed(text: str, shown: Mapping[str, PageTable]) -> str:
    """The text with each of its tables between the two comments of its block."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{pipe_table(shown[match[2]])}\n\n{match[3]}"

    return BLOCK.sub(fill, text)


def main() -> None:
    shown = tables()
    for page in (README, PAGE):
        write_text(page, refreshed(page.read_text(), shown))
    for figure in FIGURES:
        shutil.copyfile(RESULTS / "paper" / "figures" / f"{figure}.svg", f"docs/{figure}.svg")


if __name__ == "__main__":
    main()
