"""Refresh what README.md shows from results: tables and figures."""

import json
import shutil
from pathlib import Path

import pandas as pd
import yaml

from normscope.config import Config
from normscope.io.files import write_text
from normscope.ledger.record import ledger_table
from normscope.paper.words import interval, markdown, number, records
from normscope.studies.depth.pages import rate_table
from normscope.studies.jacobian.pages import cost_table
from normscope.studies.main.pages import name
from normscope.studies.pretrained.pages import gain_table
from normscope.studies.recall.pages import cell_table

README = Path("README.md")
TABLES = Path("results/tables")
FIGURES = (
    "loss slice factors surrogates jacobian comparison sensitivity signals trainability".split()
)


def loss_table() -> pd.DataFrame:
    arms = pd.read_csv(TABLES / "arms.csv")
    return pd.DataFrame(
        {
            "arm": [name(r.arm, r.placement) for r in records(arms)],
            "n": arms["n"],
            "validation loss": [number(v) for v in arms["mean"]],
            "95% interval": [interval(r.low, r.high) for r in records(arms)],
        }
    )


def ledger() -> pd.DataFrame:
    """Every statement with the published verdict beside the corrected one."""
    table = ledger_table(json.loads(Path("results/paper/claims.json").read_text()))
    return table[["statement", "source", "published", "corrected", "n", "p (Holm)", "why"]]


def copy_table() -> pd.DataFrame:
    """The notebook's task: what its loss says, and what else there is to say."""
    config = Config.model_validate(yaml.safe_load(Path("config.yaml").read_text()))
    table = cell_table(pd.read_csv(TABLES / "recall_cells.csv"), config.recall.published.task)
    columns = "loss,accuracy,calibrated loss,accuracy without context,effective rank"
    return table[["arm", "learning rate", *columns.split(",")]]


def surrogates_table() -> pd.DataFrame:
    """What each surrogate costs."""
    config = Config.model_validate(yaml.safe_load(Path("config.yaml").read_text()))
    table = cost_table(pd.read_csv("results/jacobian/costs.csv"), config.jacobian.corrected)
    return table[["attention", "feedback", "surrogate", "in", "n", "cost", "interval", "loss"]]


def pretrained_table() -> pd.DataFrame:
    """The last block's gain of every base model, published and measured."""
    table = gain_table(pd.read_csv("results/pretrained/by_model.csv"))
    table = table[table["study"] != "twins"]
    columns = "model,norm,study,n prompts,mean,t against 1,geometric mean,interval,reads"
    return table[columns.split(",")]


def depth_table() -> pd.DataFrame:
    """What one block does to the gradient and the stream, at the start."""
    table = rate_table(pd.read_csv("results/depth/by_shape.csv"))
    is_main = table["norm"].isin(["LayerNorm", "No norm"]) & (table["state"] == "start")
    table = table[is_main & table["blocks"].isin(["24", "48"])]
    columns = "placement,residual,start,blocks,n,gradient per block,stream per block"
    return table[[*columns.split(","), "least singular value"]]


def refreshed(text: str, block: str, table: pd.DataFrame) -> str:
    """The text with the table between a block's two comments."""
    begin, end = f"<!-- {block}: make readme -->", f"<!-- end of {block} -->"
    head, rest = text.split(begin)
    return f"{head}{begin}\n\n{markdown(table)}\n\n{end}{rest.split(end)[1]}"


def main() -> None:
    text = refreshed(README.read_text(), "results", loss_table())
    text = refreshed(text, "ledger", ledger())
    text = refreshed(text, "copy", copy_table())
    text = refreshed(text, "surrogates", surrogates_table())
    text = refreshed(text, "depth", depth_table())
    write_text(README, refreshed(text, "pretrained", pretrained_table()))
    for figure in FIGURES:
        shutil.copyfile(f"results/paper/figures/{figure}.svg", f"docs/{figure}.svg")


if __name__ == "__main__":
    main()
