"""Refresh the tables of README.md and docs/results.md from evidence/."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.formats import INTEGER, Format
from normscope.io.files import write_text
from normscope.io.yamlfile import read_yaml
from normscope.pages.markdown import pipe_table
from normscope.pages.statements import claims_table, effect, scoreboard
from normscope.pages.table import Column, PageTable, Quantity
from normscope.statistics.estimate import estimate_median
from normscope.statistics.summary import select
from normscope.studies.depth.pages import rate_table
from normscope.studies.jacobian.pages import cost_table
from normscope.studies.main.pages import (
    loss_table,
    norm_table,
    slope_table,
    tower_table,
)
from normscope.studies.pretrained.pages import gain_table
from normscope.studies.recall.pages import cell_table
from normscope.verdicts.verdict import Verdicts, read

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs/results.md")
EVIDENCE = ROOT / "evidence"
SHORT = ("statement", "source", "verdict", "found")
LOSS = ("norm", "n", "failed", "learning rate", "loss", "interval")
DIFFERENCE = ("difference", "its interval", "reads")
ANSWERS = (
    # question; answer, with the means of the sides; the statement, comparison and outcome it needs
    (
        *("Does RMSNorm train as well as LayerNorm?", "no difference found"),
        *("recentering_is_dispensable", "", "undecided"),
    ),
    (
        *("Is a norm needed?", "without one, language models have a higher loss"),
        *("norms_are_needed", "language models", "as claimed"),
    ),
    (
        *("Also to copy or to recall?", "no: both tasks are learned without a norm"),
        *("norms_are_needed", "", "opposite"),
    ),
    (
        *("Is post-norm worse than pre-norm?", "by {1} with AdamW, by {0} with Muon; difference:"),
        *("placement_depends_on_optimizer", "", "opposite"),
    ),
    (
        *("Are post-norm's first gradients larger?", "with Xavier's start, over pre-norm's:"),
        *("post_large_gradients", "", "as claimed"),
    ),
    (
        *("Whatever the start?", "no: with GPT-2's they are smaller"),
        *("post_large_gradients", "can, GPT-2's start", "opposite"),
    ),
    (
        *("Does QK-norm help?", "loss depends less on the rate: sensitivity {0}, without it {1}"),
        *("qk_norm_narrows_sensitivity", "", "as claimed"),
    ),
    (
        *("Can DyT replace RMSNorm?", "not in 2,000 steps: it starts slowly"),
        *("dyt_on_par_with_rmsnorm", "", "opposite"),
    ),
    (
        *("Can a trained model lose its norms?", "yes, after 400 more steps, at a small loss"),
        *("layernorm_can_be_removed", "", "as claimed"),
    ),
)
BLOCK = re.compile(r"(<!-- (\w+): make readme -->).*?(<!-- end of \2 -->)", re.DOTALL)


def table(study: str, name: str) -> pd.DataFrame:
    """A table of a study."""
    return pd.read_csv(EVIDENCE / study / f"{name}.csv")


def record(name: str) -> dict[str, Any]:
    """A record of the evidence: the manifest, or the run (where and when it ran)."""
    return json.loads((EVIDENCE / f"{name}.json").read_text())


def run_table(models: int) -> PageTable:
    """Where and when the evidence was made, and how long it took."""
    run = record("run")
    runs = run["studies"].values()
    left = sum(one["unmeasured_jobs"] for one in runs)
    hours = sum(one["core_hours"] for one in runs)
    cells = {
        "run": run["configuration"],
        "on": "; ".join(dict.fromkeys(one["chip"] for one in runs)),
        "date": " to ".join(dict.fromkeys(f({one["date"] for one in runs}) for f in (min, max))),
        "trained models": f"{models:,}",
        "core-hours": f"{hours:.1f}{f'; {left} jobs were not timed' if left else ''}",
    }
    return PageTable("The run", tuple(map(Column, cells)), (tuple(cells.values()),))


def answer_table(verdicts: Verdicts) -> PageTable:
    """Answers about norms with what was measured.

    Raises:
        ValueError: The evidence no longer supports an answer.
    """
    rows = []
    for question, answer, key, name, outcome in ANSWERS:
        verdict = verdicts.by_key[key]
        result, quantity = verdict.results[name], verdict.quantities[name]
        if result.outcome != outcome:
            raise ValueError(f"{question} {key}, {name or 'main'}, is now {result.outcome}")
        means = map(Column("", quantity.format).text, result.means)
        is_decided = "no" if outcome == "undecided" else "yes"
        measured = effect(result, quantity)
        rows.append((question, answer.format(*means), measured, result.n, is_decided))
    columns = (
        *map(Column, ("question", "answer", "measured")),
        Column("n", INTEGER),
        Column("decided"),
    )
    return PageTable("Answers", columns, tuple(rows))


def regime_table(ledger: Verdicts, chosen: pd.DataFrame) -> PageTable:
    """DyT's loss relative to LayerNorm's, by amount of training text, next to the published.

    These are medians over all seeds, because failed models leave a comparison of means open.
    """
    columns = (
        *map(Column, ("statement", "published")),
        Column("here", Format("percent", sign=True)),
        *(Column(name, INTEGER) for name in ("n", "failed")),
    )
    rows = []
    for one in ledger.verdicts:
        if one.document == "dyt_regimes" and one.statement.comparisons:
            of_text = select(chosen, protocol=one.key.rpartition("_")[2]).set_index("seed")
            dyt, layernorm = (select(of_text, arm=arm) for arm in ("dyt_two", "layernorm"))
            above = (dyt["val_loss"] / layernorm["val_loss"] - 1).dropna()
            failed = int((dyt["failed"] > layernorm["failed"]).sum())
            found = estimate_median(list(above), ledger.level)
            median = Quantity(found.mean, found.low, found.high)
            rows.append((one.statement.says, one.statement.theirs, median, found.n, failed))
    return PageTable("DyT by training text", columns, tuple(rows))


def tables() -> dict[str, PageTable]:
    """The tables shown in the pages, by the names of their blocks."""
    config, ledger = record("manifest")["config"], read(EVIDENCE / "claims.json")
    arms = table("main", "arms")
    main = read_yaml(ROOT / "config.yaml")["main"]
    losses = arms[arms["protocol"].isin(main["measures"]["protocols"])]
    titles = {"protocol": {key: one["title"] for key, one in main["protocols"].items()}}
    copy = cell_table(table("recall", "cells"), config["recall"]["published"]["task"])
    costs = cost_table(table("jacobian", "costs"), config["jacobian"]["corrected"])
    shapes, models = table("depth", "by_shape"), table("pretrained", "by_model")
    is_shown = shapes["arm"].isin(["layernorm", "none"]) & (shapes["state"] == "start")
    is_shown &= shapes["depth"].isin([12, 48])
    return {
        "answers": answer_table(ledger),
        "run": run_table(len(pd.read_csv(EVIDENCE / "models.csv"))),
        "results": loss_table(select(arms, protocol="nanogpt")).select(*LOSS),
        "small": loss_table(select(arms, protocol="small")).select(*LOSS, *DIFFERENCE),
        "scoreboard": scoreboard({"the evidence": ledger}),
        "statements": claims_table(ledger).select(*SHORT),
        "copy": copy.select(
            *("norm", "n", "learning rate", "loss", "accuracy", "calibrated loss"),
            *("accuracy without context", "effective rank"),
        ),
        "surrogates": costs.select(
            *("attention", "feedback", "penalty", "surrogate", "in"),
            *("n", "failed", "rate", "exact rate", "cost", "interval", "loss"),
        ),
        "depth": rate_table(shapes[is_shown]).select(
            *("placement", "residual", "start", "blocks", "n", "gradient per block"),
            *("stream per block", "least singular value"),
        ),
        "regimes": regime_table(ledger, table("main", "chosen")),
        "losses": loss_table(losses.replace(titles)).select("protocol", *LOSS),
        "norms": norm_table(table("main", "norms").replace(titles)),
        "slopes": slope_table(table("main", "slopes")),
        "towers": tower_table(table("main", "towers")),
        "pretrained": gain_table(models[models["experiment"] != "twins"]).select(
            *("model", "norm", "study", "n prompts", "mean", "t against 1", "geometric mean"),
            *("interval", "reads"),
        ),
    }


def refresh(text: str, shown: Mapping[str, PageTable]) -> str:
    """The text with each table inserted between the two comments of its block."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{pipe_table(shown[match[2]])}\n\n{match[3]}"

    return BLOCK.sub(fill, text)


def main() -> None:
    shown = tables()
    for page in PAGES:
        write_text(page, refresh(page.read_text(), shown))


if __name__ == "__main__":
    main()
