"""The decisive test in words and tables, made from the study's tables alone."""

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from normscope import words
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    Column,
    PageTable,
    Row,
    at,
    count,
    crossed,
    estimate,
    label,
    number,
    short,
    significant,
    tabulate,
    text,
    to_rows,
)
from normscope.schema import rate_name
from normscope.statistics.estimate import FEWEST
from normscope.statistics.summary import select
from normscope.studies.recall.grid import Recall
from normscope.studies.recall.tabulate import why_no_effects
from normscope.studies.study import Settings

SHOWN = {
    "loss": "loss",
    "accuracy": "accuracy",
    "temperature": "temperature",
    "calibrated_loss": "calibrated loss",
    "accuracy_without_context": "accuracy without context",
    "effective_rank_query": "effective rank",
    "effective_rank_squares_query": "of squares",
    "sharpness": "sharpness",
    "edge": "share of Adam's limit",
}


def cell_table(cells: pd.DataFrame, task: str) -> PageTable:
    """A row per arm and learning rate of a task: means over models.

    Args:
        cells: cells.csv.
    """
    rows = [
        {**row, "n": max(record["n"] for record in row["cells"].values())}
        for row in crossed(cells[cells["task"] == task], ["arm", "learning_rate"], "measure")
    ]
    measures = [
        Column(title, at(key, (number if key.startswith("accuracy") else significant)("mean")))
        for key, title in SHOWN.items()
    ]
    columns = [
        Column("arm", label()),
        Column("learning rate", short("learning_rate")),
        Column("n", count("n", "diverged")),
        *measures,
    ]
    return tabulate(f"The decisive test, task {task}", rows, columns)


def best_table(best: pd.DataFrame) -> PageTable:
    """The best learning rate of each arm that was trained at more than one."""

    def rate(row: Row) -> str:
        if pd.isna(row["best"]):
            return "diverged"
        return f"{row['best']:g}{' (edge)' if row['at_edge'] else ''}"

    columns = [
        Column("task", text("task")),
        Column("arm", label()),
        Column("rates tried", count("rates")),
        Column("best", rate),
        Column("loss", significant("loss")),
        Column("accuracy", number("accuracy")),
    ]
    return tabulate("The decisive test: learning rates", best, columns)


def factor_table(factors: pd.DataFrame) -> PageTable:
    """A row per contrast, a column per response: effect, interval, and a star if it stands.

    It stands if its joint interval excludes 0 and it has the seeds that a verdict needs.

    Args:
        factors: factors.csv.
    """
    rows = crossed(factors, ["contrast"], "response")
    responses = dict.fromkeys(factors["response"])
    columns = [
        Column("contrast", text("contrast")),
        Column("n", count()),
        *(Column(name, partial(_effect, name)) for name in responses),
    ]
    return tabulate("What each factor of a norm does", rows, columns)


def _effect(response: str, row: Row) -> str:
    """A cell of the factors, with its own n where that is not the row's."""
    record = row["cells"].get(response)
    if record is None:
        return words.DASH
    is_clear = record["joint_low"] > 0 or record["joint_high"] < 0
    star = "*" if is_clear and record["n"] >= FEWEST else ""
    n = "" if record["n"] == row["n"] else f", n = {record['n']}"
    form = estimate("effect", "low", "high", partial(words.number, sign=True))
    return f"{form(record)}{star}{n}"


def _why_no_effects(recall: Recall, cells: pd.DataFrame) -> str:
    corrected = select(cells, **recall.corrected.model_dump())
    return why_no_effects(corrected.drop_duplicates("arm"))


def _numbers(cells: pd.DataFrame) -> Iterator[Named]:
    for row in to_rows(cells.dropna(subset="mean")):
        rate = rate_name(row["learning_rate"])
        yield (row["task"], row["arm"], rate, row["measure"]), words.significant(row["mean"])


def section(study: Recall, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the decisive test.

    Args:
        study: its configuration.
        tables: cells, best and factors.
    """
    cells, factors = tables["cells"], tables["factors"]
    corrected, published = study.corrected, study.published
    copy, task = study.tasks[published.task], study.tasks[corrected.task]
    present = [name for name in study.tasks if name in set(cells["task"])]
    return Section(
        words={
            "width": task.n_embd,
            "copy_width": copy.n_embd,
            "copy_entities": copy.entities,
            "copy_attributes": copy.attributes,
            "entities": task.entities,
            "attributes": task.attributes,
            "corrected_task": corrected.task,
            "rate": f"{corrected.learning_rate:g}",
            "seeds": FEWEST,
            "tasks": [
                {
                    "name": name,
                    "steps": study.tasks[name].steps,
                    "embedding_std": f"{study.tasks[name].embedding_std:g}",
                }
                for name in present
            ],
            "effects": len(factors),
            "why_no_effects": "" if len(factors) else _why_no_effects(study, cells),
        },
        tables={
            **{f"task_{name}": cell_table(cells, name) for name in present},
            "best": best_table(tables["best"]),
            "factors": factor_table(factors),
        },
        numbers=list(_numbers(cells)),
    )
