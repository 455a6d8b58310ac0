"""Single numbers for a text, by the words that name them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from normscope.paper.words import number, records, significant, significant_or_tiny
from normscope.schema import rate_name
from normscope.studies.depth.recipe import Shape
from normscope.studies.depth.tables import SHAPE
from normscope.studies.jacobian.tables import VARIED

Named = tuple[Iterable[object], str]
LOSSES = {"mean": "loss", "low": "loss low", "high": "loss high"}
GAINS = {"first": "first gain", "later": "later gain", "last": "last gain"}


def by_arm(table: pd.DataFrame, columns: Mapping[str, str]) -> Iterator[Named]:
    """Columns of a table of arms and placements, where there is a number."""
    for row in table.to_dict("records"):
        for column, word in columns.items():
            if pd.notna(row[column]):
                yield (row["arm"], row["placement"], word), number(row[column])


def of_parts(tables: Mapping[str, pd.DataFrame]) -> Iterator[Named]:
    """What trained models lost, costs, recall, depth and pretrained gains."""
    yield from by_arm(tables["arms"], LOSSES)
    yield from by_arm(tables["gain_by_arm"], GAINS)
    for r in records(tables["costs"].dropna(subset="mean")):
        yield (*(getattr(r, key) for key in VARIED), "cost"), number(r.mean)
    for r in records(tables["recall_cells"].dropna(subset="mean")):
        yield (r.task, r.arm, rate_name(r.learning_rate), r.measure), significant(r.mean)
    for r in records(tables["by_shape"]):
        shape = str(Shape._make(getattr(r, k) for k in SHAPE))
        yield (shape, r.state, r.measure), significant_or_tiny(r.mean)
    for r in records(tables["by_model"]):
        yield (r.model, r.experiment, "last gain"), number(math.exp(r.log_gain))


def of_ledger(found: Mapping[str, Any]) -> Iterator[Named]:
    """Effect, interval, n and p of every statement, and how many have each verdict."""
    for c in found["claims"]:
        for word in ("effect", "low", "high", "hedges_g", "p", "p_holm"):
            if c[word] is not None:
                yield ("claim", c["key"], word), significant_or_tiny(c[word])
        if c["n"]:
            yield ("claim", c["key"], "n"), str(c["n"])
    verdicts = [c["verdict"] for c in found["claims"]]
    for verdict in ("holds", "fails", "undecided"):
        yield ("claims", verdict), str(verdicts.count(verdict))
    yield ("claims",), str(len(verdicts))
    yield ("claims tests",), str(found["tests"])


def of_texts(texts: Mapping[str, str]) -> Iterator[Named]:
    """The numbers that the words of the summary give one by one."""
    for name, value in texts.items():
        if re.fullmatch(r"[\d,]*\.?\d+%?", value):
            yield ("text", name), value
