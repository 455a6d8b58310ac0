"""A comparison of anybody's runs, by the tests that judge the project's statements."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pandas as pd

from normscope.api.arguments import public
from normscope.errors import Explained, suggest
from normscope.formats import SCIENTIFIC
from normscope.statistics.inference import varies
from normscope.statistics.levels import DECISIVE_P, FEWEST
from normscope.statistics.power import MOST, detectable, enough
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.sample import Sample
from normscope.verdicts.test import result

MEASURE = "runs.table.value"  # the form that a measure has; no result depends on it
LEVEL, POWER = 0.95, 0.8
RATE = "learning_rate"
DIVERGED = (
    "is no finite number: without the runs that diverged, the others are a selection; give them "
    "the value of a model that learned nothing, or compare how many diverged"
)
TWICE = (
    "occurs twice: keep one run, such as that of one learning rate per level; if several seeds "
    "learn each text, unit is the column of the seed, and text that of the text"
)
WITHIN = {"as claimed": "yes", "opposite": "no", "undecided": "undecided"}


@public
def compare(
    runs: pd.DataFrame | str | Path,
    by: str = "norm",
    unit: str = "seed",
    margin: float | int = 0.01,
    *,
    value: str = "loss",
    baseline: str | int | float | None = None,
    text: str | None = None,
    rate: str | None = None,
) -> pd.DataFrame:
    """Compare the runs of a baseline with those of every other level, paired by seed.

    A paired t-test decides whether there is a difference, and two one-sided tests against the ends
    of the margin (Schuirmann 1987; the larger p is doubled) decide equivalence. As for the
    statements of this project, a decision needs 6 units and p < 0.005; p is not corrected for the
    number of levels.

    The table has one row per level other than the baseline. Columns: baseline, level, n (units that
    both have), difference (the mean of level minus baseline), low and high (its 95% confidence
    interval), p (missing below 6 units), decided (whether there is a difference), within (whether
    it is smaller than the margin: ``yes``, ``no`` or ``undecided``), within_p, detectable (the
    smallest difference that n units decide with 80% power; missing below 6 units), enough (about
    the n that decides one of the two questions with 80% power, if the difference and its spread are
    as measured; 6 below 6 units, and 0 if one is decided), warning (or empty) and sentence (the
    result, for a paper).

    Args:
        runs: one row per run, or the path of a CSV file, such as an export of Weights & Biases.
        by: the column whose levels are compared.
        unit: the column that pairs the runs of two levels; with ``text``, within a text.
        margin: the largest difference that does not matter, in the unit of the value.
        value: the column of the value that is compared.
        baseline: the level with which the others are compared; by default that of the first row.
        text: the column of the text that a run learns, if several units learn each text:
            differences are averaged per text, and n counts texts.
        rate: the column of the learning rate, of which a level with several gets a warning; by
            default ``learning_rate``, if there is one.

    Raises:
        Explained: the file or a column is missing, a cell is empty, a value is no finite number, a
            unit occurs twice, or two levels share fewer than two units or differ by one constant.
    """
    if not 0 < margin < math.inf:
        raise Explained(f"margin is {margin!r}: give a finite number above 0")
    runs = _read(runs)
    rate = RATE if rate is None and RATE in runs else rate
    columns = {"by": by, "text": text, "unit": unit, "value": value, "rate": rate}
    rows = _rows(runs, {role: name for role, name in columns.items() if name is not None})
    first, *others = _levels(rows, by, baseline)
    pairing = f"paired by {unit}" + f", averaged per {text}" * bool(text)
    table = []
    for other in others:
        differences, alone, warning = _pair(rows, first, other, text or unit)
        row = _tests(differences, float(margin))
        paired = pairing + f", unpaired runs left out: {alone}" * bool(alone)
        sentence = f"The {value} of {other} minus that of {first} is {_words(row, margin, paired)}."
        row |= {"warning": warning, "sentence": sentence}
        table.append({"baseline": first, "level": other, **row})
    return pd.DataFrame(table)


def _read(runs: pd.DataFrame | str | Path) -> pd.DataFrame:
    if isinstance(runs, str | Path):
        if not Path(runs).is_file():
            raise Explained(f"runs: there is no file {runs}")
        try:  # a norm may be called None or NA
            return pd.read_csv(Path(runs), keep_default_na=False, na_values=[""])
        except (OSError, ValueError) as e:
            raise Explained(f"runs: {runs} is not a CSV file with a row per run: {e}") from None
    return runs.reset_index(drop=True)


def _rows(runs: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """A column per role, of runs that are complete, finite and distinct."""
    for role, name in names.items():
        if (count := list(runs).count(name)) != 1:
            problem = f"{count} columns" if count else "no column"
            way_out = "rename one of them" if count else suggest(name, runs)
            raise Explained(f"{role}: runs has {problem} {name!r}; {way_out}")
    rows = pd.DataFrame({role: runs[name] for role, name in names.items()})
    keys = [role for role in ("by", "text", "unit") if role in names]
    for role in keys:
        if empty := int(rows[role].isna().sum()):
            raise Explained(f"{names[role]} is empty in {empty} runs: fill it in, or omit them")
    values = pd.to_numeric(rows["value"], errors="coerce").astype(float)
    if len(rows) and values.isna().all():
        raise Explained(f"{names['value']} is no column of numbers: name another as value")
    infinite, twice = ~np.isfinite(values), rows.duplicated(keys)
    for i in rows.index[infinite | twice]:
        place = ", ".join(f"{names[role]} {rows.loc[i, role]}" for role in keys)
        problem = f"({rows.loc[i, 'value']}) {DIVERGED}" if infinite[i] else TWICE
        raise Explained(f"{names['value']} of {place} {problem}")
    return rows.assign(value=values)


def _levels(rows: pd.DataFrame, by: str, baseline: object) -> list[Any]:
    """The baseline, and the other levels in the order of the runs."""
    levels = rows["by"].unique().tolist()
    if len(levels) < 2:
        raise Explained(f"{by} has the levels {levels}: give runs of a baseline and of another one")
    first = levels[0] if baseline is None else baseline
    if first not in levels:
        raise Explained(f"baseline: {by} has no level {first!r}; {suggest(str(first), levels)}")
    return [first, *(level for level in levels if level != first)]


def _pair(
    rows: pd.DataFrame, baseline: object, other: object, unit: str
) -> tuple[list[float], int, str]:
    """The differences of two levels, one per unit, how many runs have no partner, and a warning."""
    keyed = rows.set_index([key for key in ("text", "unit") if key in rows])
    first, second = (keyed.loc[keyed["by"] == side, "value"] for side in (baseline, other))
    differences = (second - first.reindex(second.index)).dropna()
    values = differences.groupby(level=0).mean().tolist()  # the first key is the unit of the test
    if len(values) < 2:
        raise Explained(
            f"{other} and {baseline} share {len(values)} of the values of {unit}: an interval "
            f"needs 2, and a decision {FEWEST}, so train both on the same ones"
        )
    if not varies(values):
        raise Explained(
            f"all differences between {other} and {baseline} are {values[0]:g}: give runs that the "
            f"{unit} changes"
        )
    warnings = []
    for level in (baseline, other) if "rate" in rows else ():
        if (count := rows.loc[rows["by"] == level, "rate"].nunique()) > 1:
            warnings.append(
                f"{level} has {count} learning rates: if the best was chosen on these runs, p is "
                "too small; choose it on others"
            )
    alone = len(first) + len(second) - 2 * len(differences)
    return values, alone, "; ".join(warnings)


def _tests(values: Sequence[float], margin: float) -> dict[str, Any]:
    """Both tests of paired differences, and what so many of them can decide."""
    sample, end = Sample(tuple(values), (), is_log=False), np.format_float_positional(margin)
    zero, near = (
        result(Comparison(measure=MEASURE, expect=expect), sample, is_count=False, level=LEVEL)
        for expect in ("above 0", f"within {end.rstrip('.')}")
    )
    decided, within = zero.outcome != "undecided", WITHIN[near.outcome]
    needs = [enough(values, e, is_median=False, power=POWER) for e in (0.0, -margin, margin)]
    needed = min(needs[0], max(needs[1:])) if len(values) >= FEWEST else FEWEST
    needed = 0 if decided or within == "yes" else max(FEWEST, needed)
    return {
        **{"n": zero.n, "difference": zero.effect, "low": zero.low, "high": zero.high},
        **{"p": zero.p, "decided": decided, "within": within, "within_p": near.p},
        "detectable": detectable(len(values), stdev(values), DECISIVE_P, POWER),
        "enough": needed,
    }


def _words(row: Mapping[str, Any], margin: float, pairing: str) -> str:
    """A difference with its interval, its test and what is decided."""
    words, low, high, p, within_p = (
        SCIENTIFIC.text(row[name]) for name in ("difference", "low", "high", "p", "within_p")
    )
    words += f" ({LEVEL:.0%} confidence interval {low} to {high}, n = {row['n']}, {pairing}"
    words += f", t-test: p = {p}): " if row["n"] >= FEWEST else "): "
    tests = f"{margin:g} (two one-sided tests: p = {within_p})"
    if row["decided"]:
        sized = {"yes": f", by less than {tests}", "no": f", by more than {tests}"}
        return f"{words}they differ{sized.get(row['within'], '')}"
    if row["within"] == "yes":
        return f"{words}they are equivalent within {tests}"
    words += f"neither a difference nor equivalence within {margin:g} is decided at p < "
    if row["n"] < FEWEST:
        return f"{words}{DECISIVE_P}, for which n has to be {FEWEST} or more"
    most = f"about {row['enough']}" if row["enough"] <= MOST else f"more than {MOST:,}"
    return f"{words}{DECISIVE_P}, for which n would have to be {most}"
