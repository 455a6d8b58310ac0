"""Refresh the tables of README.md and docs/results.md from evidence/."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.errors import run_script
from normscope.formats import INTEGER
from normscope.io.files import write_text
from normscope.pages.findings import certainty, is_supported, sentence
from normscope.pages.markdown import pipe_table
from normscope.pages.statements import effect, scoreboard
from normscope.pages.table import Column, PageTable
from normscope.statistics.summary import select
from normscope.studies.jacobian.pages import cost_table
from normscope.studies.main.pages import loss_table, norm_table
from normscope.studies.norms.pages import arm_table
from normscope.studies.pretrained.pages import gain_table
from normscope.studies.recall.pages import cell_table
from normscope.verdicts.findings import Findings
from normscope.verdicts.findings import load as load_findings
from normscope.verdicts.verdict import Verdicts, read

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs/results.md")
EVIDENCE = ROOT / "evidence"
LOSS = ("norm", "n", "learning rate", "loss")
DIFFERENCE = ("above LayerNorm", "its interval", "texts on which it is above")
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


def answer_table(verdicts: Verdicts, findings: Findings) -> PageTable:
    """The first answer of each question, with what was measured.

    Raises:
        ValueError: The evidence no longer supports an answer.
    """
    rows = []
    for name, question in findings.questions.items():
        for answer in question.sentences.values():
            verdict = verdicts.by_key[answer.statement]
            if not is_supported(answer, verdict):
                place, now = answer.comparison or "main", verdict.results.get(answer.comparison)
                raise ValueError(f"{name}: {answer.says} {verdict.key}, {place}, is now {now}")
        first = question.answers[0]
        verdict = verdicts.by_key[first.statement]
        rows.append((question.asks, sentence(first, verdict), certainty(first, verdict)))
    columns = tuple(map(Column, ("question", "answer", "certainty")))
    return PageTable("Answers", columns, tuple(rows))


def opposite_table(verdicts: Verdicts) -> PageTable:
    """The claims that came out opposite."""
    names = verdicts.documents
    found = [one for one in verdicts.assertions if one.word == "opposite"]
    measured = [(effect(one.main, one.quantities[""]), one.main.n) for one in found]
    said = [(one.statement.says, names[one.document].name) for one in found]
    columns = (*map(Column, ("claim", "source", "measured")), Column("n", INTEGER))
    rows = tuple((*one, *other) for one, other in zip(said, measured, strict=True))
    return PageTable("Opposite claims", columns, rows)


def tables() -> dict[str, PageTable]:
    """The tables shown in the pages, by the names of their blocks."""
    config, ledger = record("manifest")["config"], read(EVIDENCE / "claims.json")
    findings = load_findings(ROOT / "data/findings.yaml", ledger.statements)
    arms, models = table("main", "arms"), table("pretrained", "by_model")
    cells = table("recall", "cells").query("n > 1")
    copy = cell_table(cells, config["recall"]["published"]["task"])
    costs = select(table("jacobian", "costs"), attention="softmax", feedback="backprop")
    return {
        "answers": answer_table(ledger, findings),
        "run": run_table(len(pd.read_csv(EVIDENCE / "models.csv"))),
        "scoreboard": scoreboard({"the evidence": ledger}),
        "opposite": opposite_table(ledger),
        "tuned": arm_table(table("norms", "arms")).select(
            *("norm", "learning rate", "loss", *DIFFERENCE)
        ),
        "large": loss_table(select(arms, protocol="nanogpt")).select(*LOSS, "interval"),
        "placements": loss_table(select(arms, protocol="deep", arm="rmsnorm")).select(
            *("norm", "n", "failed", "learning rate", "loss", "interval")
        ),
        "copy": copy.select("norm", "n", "learning rate", "loss", "accuracy without context"),
        "surrogates": cost_table(costs, config["jacobian"]["corrected"]).select(
            *("surrogate", "in", "penalty", "n", "failed", "cost", "interval")
        ),
        "norms": norm_table(select(table("main", "norms"), arm="layernorm")).select(
            *("layer", "n", "at once", "after further steps")
        ),
        "pretrained": gain_table(models[models["experiment"] != "twins"]).select(
            *("model", "norm", "n prompts", "geometric mean", "interval")
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
    run_script(main)
