"""The values that a comparison tests: one per text, or where there is one text, one per seed."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy  # its parts load at their first use

from normscope.columns import Table
from normscope.errors import Explained
from normscope.verdicts import expression
from normscope.verdicts.comparison import Cells, Comparison, sides
from normscope.verdicts.vocabulary import Vocabulary

SEED, TEXT = "seed", "text"
UNITS = (SEED, "model")  # the first of them that a table has, and that no side names, pairs rows
VALUE = "_value"  # the column with the measure
NO_DATA = "no data"
DIVERGED = "some models diverged, and the others are a selection"
FAILED = "some models failed to train, and a mean would mix two outcomes"
LEARNED_NOTHING = "most models learned nothing"


@dataclass(frozen=True)
class Sample:
    """The values of a comparison.

    Args:
        values: One per unit: a text if the models learn several, over which they are averaged;
            else a seed that all sides have, or a row of a table without seeds.
        means: The mean of the measure on each side; NaN without a value.
        is_log: Whether logarithms are averaged: of a ratio, or of a factor.
        reason: Why there is nothing to test; empty otherwise.
    """

    values: tuple[float, ...]
    means: tuple[float, ...]
    is_log: bool
    reason: str = ""


def is_log(comparison: Comparison, declared: Table) -> bool:
    """Whether a comparison is about a factor: a ratio of sides, or columns declared as factors."""
    columns = expression.columns_in(comparison.measurement.expression)
    return comparison.is_ratio or all(declared[name].unit == "times" for name in columns)


def sample(
    comparison: Comparison, rows: pd.DataFrame, declared: Table, vocabulary: Vocabulary
) -> Sample:
    """The values of a comparison in a table.

    Args:
        comparison: What is measured in which models.
        rows: The table that it names.
        vocabulary: The values that its study knows.

    Raises:
        Explained: A side has several rows of one seed, so that its models are not distinct.
    """
    rows = rows.astype(object).where(rows.notna(), math.nan).reset_index(drop=True)
    rows[VALUE] = expression.values(comparison.measurement.expression, rows)
    rows = rows[rows[VALUE].notna() | _is_lost(rows)]
    words, _ = sides(comparison.compare)
    cells = [{**comparison.models, **vocabulary.side(side, declared)} for side in words]
    parts = [select(rows, cell, vocabulary) for cell in cells]
    means = tuple(expression.mean(part[VALUE]) for part in parts)
    log = is_log(comparison, declared)
    empty = [word for word, part in zip(words, parts, strict=True) if part.empty]
    reason = _no_data(empty) if empty else _reason(comparison, parts, declared)
    if reason:
        return Sample((), means, log, reason)
    values = _values(comparison, parts, is_log=log)
    if len({text for text, _ in values}) > 1 and not comparison.expectation.always:
        values = _means_of_texts(values, is_median=comparison.measurement.is_median, is_log=log)
    return Sample(tuple(v for _, v in values), means, log, "" if values else NO_DATA)


def select(rows: pd.DataFrame, models: Cells, vocabulary: Vocabulary) -> pd.DataFrame:
    """The rows of some models, in the order in which their values are listed."""
    parts = []
    for cell in vocabulary.cells(models):
        is_in = pd.Series(True, index=rows.index)
        for column, value in cell.items():
            is_in &= rows[column] == value
        parts.append(rows[is_in])
    selected = pd.concat(parts) if parts else rows.head(0)
    return selected[~selected.index.duplicated()]  # cells may overlap


def _no_data(words: Sequence[str]) -> str:
    """That some sides have no models, by their names."""
    names = " and ".join(filter(None, words))
    return f"{NO_DATA} of {names}" if names else NO_DATA


def _is_lost(rows: pd.DataFrame) -> pd.Series:
    """Which models diverged, by the column ``diverged`` or ``diverged_at`` (a step, or NaN)."""
    lost = pd.Series(False, index=rows.index)
    if "diverged" in rows:
        lost |= rows["diverged"].astype(bool)
    if "diverged_at" in rows:
        lost |= rows["diverged_at"].notna()
    return lost


def _reason(comparison: Comparison, parts: Sequence[pd.DataFrame], declared: Table) -> str:
    """Why a comparison has no test; empty if it has one.

    Losses can be compared if one of the sides learned something, and other measures if both did.
    """
    if any((_is_lost(part) & part[VALUE].isna()).any() for part in parts):
        return DIVERGED
    if comparison.expectation.always:
        return ""
    columns = expression.columns_in(comparison.measurement.expression)
    check = declared.learned
    if check and not {*columns}.intersection(expression.columns_in(check)):
        is_loss = all(declared[name].unit == "nats" for name in columns)
        learned = [expression.holds(check, part) for part in parts]
        if not (any(learned) if is_loss else all(learned)):
            return LEARNED_NOTHING
    is_count = all(declared[name].role == "count" for name in columns)
    is_of_mean = not (comparison.measurement.is_median or is_count)
    has_failed = "failed" in declared.names
    if has_failed and is_of_mean and any(part["failed"].any() for part in parts):
        return FAILED
    return ""


def _values(
    comparison: Comparison, parts: Sequence[pd.DataFrame], *, is_log: bool
) -> list[tuple[str, float]]:
    """The values with their texts, if these are known; of a factor, infinity is a value."""
    first, *others = parts
    if SEED in first and not comparison.expectation.always:
        for part in parts:
            _require_distinct(part)
    if not others:
        known = zip(_texts(first), first[VALUE], strict=True)
        return [(t, float(v)) for t, v in known if math.isfinite(v) or (is_log and v == math.inf)]
    keys = [name for name in UNITS if name in first and f"{name}=" not in comparison.compare][:1]
    how = "inner" if keys else "cross"
    both = first.merge(others[0], on=keys or None, how=how, suffixes=("", "_other"))
    both = both[np.isfinite(both[VALUE].astype(float))]
    both = both[np.isfinite(both[f"{VALUE}_other"].astype(float))]
    pairs = zip(_texts(both), both[VALUE], both[f"{VALUE}_other"], strict=True)
    return [(t, _ratio(a, b) if comparison.is_ratio else float(a - b)) for t, a, b in pairs]


def _texts(rows: pd.DataFrame) -> list[str]:
    """The text of each row; empty where it is not known."""
    return list(rows[TEXT].fillna("")) if TEXT in rows else [""] * len(rows)


def _means_of_texts(
    values: Sequence[tuple[str, float]], *, is_median: bool, is_log: bool
) -> list[tuple[str, float]]:
    """One value per text: over its models the median, or the mean (of logarithms, for factors)."""
    average = np.median if is_median else scipy.stats.gmean if is_log else np.mean
    by_text = pd.DataFrame(values).groupby(0, sort=False)[1]
    return [(str(text), float(average(of_text))) for text, of_text in by_text]


def _ratio(one: float, other: float) -> float:
    """A ratio, which is 0 if the first value is not positive."""
    if one <= 0:
        return 0.0
    return one / other if other > 0 else sys.float_info.max


def _require_distinct(rows: pd.DataFrame) -> None:
    """Refuse several rows of one seed, and name the columns in which they differ."""
    twice = rows[rows.duplicated(SEED, keep=False)]
    if len(twice):
        first, second, *_ = twice[twice[SEED] == twice[SEED].iloc[0]].to_dict("records")
        differ = [
            f"{name} {first[name]} and {second[name]}"
            for name in first
            if name != VALUE and first[name] != second[name] and isinstance(first[name], str | bool)
        ] or [name for name in first if name != VALUE and first[name] != second[name]]
        raise Explained(
            f"several models of seed {first[SEED]}: give a value of {', '.join(differ[:3])}"
        )
