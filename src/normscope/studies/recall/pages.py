"""The recall test in words and tables, made from the study's tables alone."""

from collections.abc import Mapping

import pandas as pd

from normscope.formats import GENERAL, decimals
from normscope.nn.arms import ARMS
from normscope.pages.section import Section
from normscope.pages.table import (
    CELLS,
    Cell,
    Field,
    PageTable,
    Quantity,
    Row,
    at,
    count,
    cross,
    field,
    fields_of,
    number,
    setting_cell,
    tabulate,
    text,
)
from normscope.statistics.levels import FEWEST
from normscope.statistics.summary import select
from normscope.studies.recall.grid import Recall
from normscope.studies.recall.tables import TABLES
from normscope.studies.study import Settings

SHOWN = (  # columns of runs.csv
    *("loss", "accuracy", "temperature", "calibrated_loss", "accuracy_without_context"),
    *("effective_rank_query", "effective_rank_squares_query", "sharpness", "edge"),
)


ARM = text("norm", "arm", label=lambda arm: ARMS[arm].label)


def cell_table(cells: pd.DataFrame, task: str) -> PageTable:
    """One row per arm and learning rate of a task: means over models."""
    rows = [
        {**row, "n": max(record["n"] for record in row[CELLS].values())}
        for row in cross(select(cells, task=task), ["arm", "learning_rate"], "measure")
    ]
    runs = TABLES["runs"]
    measures = [at(name, number(runs[name].heading, "mean", runs[name].format)) for name in SHOWN]
    fields = [
        ARM,
        number("learning rate", "learning_rate", GENERAL),
        count("n", diverged="diverged"),
        *measures,
    ]
    return tabulate(f"The recall test, task {task}", rows, fields)


def best_table(best: pd.DataFrame) -> PageTable:
    """The best learning rate of each arm that was trained at more than one."""

    def rate(row: Row) -> Cell:
        return "diverged" if pd.isna(row["best"]) else setting_cell(row["best"], row["at_edge"])

    fields = [
        text("task"),
        ARM,
        *fields_of(TABLES["best"], "rates"),
        field("best", rate, GENERAL),
        *fields_of(TABLES["best"], "loss", "accuracy"),
    ]
    return tabulate("The recall test: learning rates", best, fields)


def factor_table(factors: pd.DataFrame) -> PageTable:
    """One row per contrast, one column per response: effect, interval, and a star if significant.

    An effect has a star if its joint interval excludes 0 and it has the seeds that a verdict needs.
    """
    rows = cross(factors, ["contrast"], "response")
    effects = [_effect_field(name) for name in dict.fromkeys(factors["response"])]
    fields = [text("contrast"), count("n"), *effects]
    return tabulate("What each factor of a norm does", rows, fields)


def _effect_field(response: str) -> Field:
    """A column of effects, each with its n if that differs from the n of the row."""

    def cell(row: Row) -> Cell:
        record = row[CELLS].get(response)
        if record is None:
            return None
        is_clear = record["joint_low"] > 0 or record["joint_high"] < 0
        star = "*" if is_clear and record["n"] >= FEWEST else ""
        n = "" if record["n"] == row["n"] else f", n = {record['n']}"
        return Quantity(record["effect"], record["low"], record["high"], star + n)

    return field(response, cell, decimals(sign=True))


def section(study: Recall, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the recall test."""
    cells, corrected = tables["cells"], study.corrected
    tasks = {name: {"name": name, **task.model_dump()} for name, task in study.tasks.items()}
    present = [name for name in tasks if name in set(cells["task"])]
    return Section(
        words={
            "copy": tasks[study.published.task],
            "corrected": tasks[corrected.task],
            "rate": corrected.learning_rate,
            "seeds": FEWEST,
            "tasks": [tasks[name] for name in present],
        },
        tables={
            **{f"task_{name}": cell_table(cells, name) for name in present},
            "best": best_table(tables["best"]),
            "factors": factor_table(tables["factors"]),
        },
    )
