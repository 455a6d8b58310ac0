"""Refresh what README.md shows from results: tables and figures."""

import json
import shutil
from pathlib import Path

import pandas as pd
import yaml

from normscope.config import load
from normscope.io.files import write_text
from normscope.paper.markdown import pipe_table
from normscope.paper.statements import ledger_table
from normscope.paper.table import PageTable
from normscope.studies.depth.pages import rate_table
from normscope.studies.jacobian.pages import cost_table
from normscope.studies.main.pages import loss_table
from normscope.studies.pretrained.pages import gain_table
from normscope.studies.recall.pages import cell_table

README = Path("README.md")
RESULTS = Path("results")
FIGURES = (
    "loss slice factors surrogates jacobian comparison sensitivity signals trainability".split()
)


def table(study: str, name: str) -> pd.DataFrame:
    """A table of a study."""
    return pd.read_csv(RESULTS / study / "tables" / f"{name}.csv")


def tables() -> dict[str, PageTable]:
    """What stands in README.md, by the names of its blocks."""
    config = load(yaml.safe_load(Path("config.yaml").read_text()))
    ledger = json.loads((RESULTS / "paper" / "claims.json").read_text())
    copy = cell_table(table("recall", "cells"), config.recall.published.task)
    costs = cost_table(table("jacobian", "costs"), config.jacobian.corrected)
    shapes, models = table("depth", "by_shape"), table("pretrained", "by_model")
    is_shown = shapes["arm"].isin(["layernorm", "none"]) & (shapes["state"] == "start")
    is_shown &= shapes["depth"].isin([24, 48])
    return {
        "results": loss_table(table("main", "arms")).select("arm", "n", "loss", "interval"),
        "ledger": ledger_table(ledger).select(
            "statement", "source", "published", "corrected", "n", "p (Holm)", "why"
        ),
        "copy": copy.select(
            *("arm", "learning rate", "loss", "accuracy", "calibrated loss"),
            *("accuracy without context", "effective rank"),
        ),
        "surrogates": costs.select(
            "attention", "feedback", "surrogate", "in", "n", "cost", "interval", "loss"
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


def refreshed(text: str, block: str, shown: PageTable) -> str:
    """The text with the table between a block's two comments."""
    begin, end = f"<!-- {block}: make readme -->", f"<!-- end of {block} -->"
    head, rest = text.split(begin)
    return f"{head}{begin}\n\n{pipe_table(shown)}\n\n{end}{rest.split(end)[1]}"


def main() -> None:
    text = README.read_text()
    for block, shown in tables().items():
        text = refreshed(text, block, shown)
    write_text(README, text)
    for figure in FIGURES:
        shutil.copyfile(RESULTS / "paper" / "figures" / f"{figure}.svg", f"docs/{figure}.svg")


if __name__ == "__main__":
    main()
