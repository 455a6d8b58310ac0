"""Edited statements: refused with their key and a reason, or judged on tables that are planted."""

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from scipy import stats
from statements import CONFIG, FILES

from normscope.errors import Explained
from normscope.ledger.check import problems
from normscope.ledger.claim import Evidence
from normscope.ledger.comparison import WORDS, Contrast
from normscope.ledger.entry import Claims, Entry, load
from normscope.ledger.judgement import find_all, judge
from normscope.ledger.record import ledger
from normscope.ledger.vocabulary import Vocabulary
from normscope.paper.figures import load as load_figures
from normscope.studies.folder import FOLDER

RAW = {k: e for f in FILES for k, e in yaml.safe_load(f.read_text())["claims"].items()}
FIGURES = load_figures(FOLDER, CONFIG.studies)
VOCABULARIES = {name: study.vocabulary() for name, study in CONFIG.studies.items()}
PLANTED = {name: replace(v, grids={}) for name, v in VOCABULARIES.items()}  # tables of any rows
COMPARED = {key: entry for key, entry in RAW.items() if "contrast" in entry}
KEY = "edited"  # no function of a study tests it
COLUMNS = sorted({c for v in VOCABULARIES.values() for cs in v.columns.values() for c in cs})
TABLES = [f"{study}.{table}" for study, v in VOCABULARIES.items() for table in v.columns]
VALUES: list[Any] = [
    *("rmsnorm", "layernorm", "batchnorm", "none", "pre", "post", "recall", "copy", "published"),
    *("corrected", "fa", "tuned", "", "yes", "within", "greater", "less", "log", "t", "fact"),
    *("equivalence", "sign_flip", "primary", "any", "all", "model", "prompt", "formula", *WORDS),
    *("{margin:g}", "{bound}", "{level}", "{", "{first:d}", "accuracy >= 2", "loss - accuracy"),
    *(0, 1, -1, 6, 0.0, 0.05, 0.9, 1.0, 2.0, math.nan, math.inf, True, False, None),
    *([], {}, [1, 2], ["pre", "post"], {"arm": "rmsnorm"}, {"depth": "greatest"}),
]
KEYS = [*Entry.model_fields, *Contrast.model_fields, "pick", "column", "check", "where", "by"]
anything = st.sampled_from([*VALUES, *COLUMNS, *TABLES])


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every dictionary and list of an entry, with each of its keys."""
    known = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for key in known:
        yield part, key
        yield from places(part[key])


@st.composite
def edited(draw: st.DrawFn) -> dict[str, Any]:
    """A statement of the project in which a few keys or values are not what they were."""
    entry = copy.deepcopy(COMPARED[draw(st.sampled_from(list(COMPARED)))])
    for _ in range(draw(st.integers(1, 3))):
        # of the contrast above all, which has the most words
        every = [*places(entry), *places(entry.get("contrast"))]
        part, key = every[draw(st.integers(0, len(every) - 1))]
        match draw(st.sampled_from(["remove", "replace", "swap", "add"])):
            case "remove":
                del part[key]
            case "replace":
                part[key] = copy.deepcopy(draw(anything))
            case "swap":  # with a value of another statement
                other = list(places(COMPARED[draw(st.sampled_from(list(COMPARED)))]))
                of, name = other[draw(st.integers(0, len(other) - 1))]
                part[key] = copy.deepcopy(of[name])
            case "add" if isinstance(part, dict):
                part[draw(st.sampled_from([*KEYS, *COLUMNS]))] = copy.deepcopy(draw(anything))
    return entry


def loaded(
    entry: dict[str, Any], folder: Path, vocabularies: Mapping[str, Vocabulary] = VOCABULARIES
) -> Claims:
    """The statement as a file gives it, checked by all studies; or every fault."""
    path = folder / "asked.yaml"
    path.write_text(yaml.safe_dump({"title": "Questions", "claims": {KEY: entry}}))
    claims = load([path])
    if wrong := problems(claims, vocabularies, {}, FIGURES):
        raise Explained("\n".join(f"{path}: {line}" for _, line in wrong))
    return claims


def mentioned(c: Contrast, vocabulary: Vocabulary) -> dict[str, list[Any]]:
    """Values by column: those that the contrast names, and others where it leaves a column open.

    The first column of cells has others too: rows that the contrast is not about.
    """
    values: dict[str, list[Any]] = {}
    open_ = [*list(c.cells)[:1], *c.each, *([c.at.column] if c.at else [])]
    open_ += c.best.columns if c.best else []
    for cells in c.all_cells().values():
        for column, of_column in cells.items():
            for value in of_column if isinstance(of_column, list) else [of_column]:
                if value in WORDS:
                    open_.append(column)
                    continue
                for cell in vocabulary.cells({column: value}):
                    for name, known in cell.items():
                        values.setdefault(name, []).append(known)
    for column in open_:
        if column in vocabulary.names and column not in values:
            continue
        if len(values.setdefault(column, [])) < 2:
            listed = list(vocabulary.values.get(column, ("tuned", "0.01")))
            values[column] += [12, 104] if vocabulary.is_number(column) else listed[:3]
    return {column: list(dict.fromkeys(known)) for column, known in values.items()}


def planted(c: Contrast, seeds: int, draws: np.random.Generator) -> pd.DataFrame:
    """A table of the contrast's: cells that it names, and random numbers."""
    study, _, name = c.table.partition(".")
    vocabulary = VOCABULARIES[study]
    keys = mentioned(c, vocabulary)
    keys.pop(c.replicates, None)
    rows = []
    for values in itertools.islice(itertools.product(*keys.values()), 64):
        cell = dict(zip(keys, values, strict=True))
        for seed in range(seeds):
            row: dict[str, Any] = {}
            for column in vocabulary.columns[name]:
                if vocabulary.is_number(column):
                    row[column] = draws.uniform(0, 1)
                else:
                    row[column] = next(iter(vocabulary.values.get(column, ("tuned",))))
            lost = draws.uniform() < 0.01
            row |= {"diverged_at": 9.0 if lost else math.nan} if "diverged_at" in row else {}
            row |= {"diverged": False} if "diverged" in row else {}
            rows.append(row | cell | {c.replicates: seed})
    return pd.DataFrame(rows, columns=list(vocabulary.columns[name]))


def evidence(c: Contrast, table: pd.DataFrame) -> Evidence:
    study, _, name = c.table.partition(".")
    return Evidence({study: {name: table}}, CONFIG.studies, 0.95)


@examples(120)
@given(entry=edited(), seeds=st.integers(0, 8), draw=st.integers(0, 99))
def test_an_edited_statement_is_refused_by_key_or_judged(
    entry: dict[str, Any], seeds: int, draw: int, tmp_path: Path
):
    try:
        claims = loaded(entry, tmp_path)
    except Explained as e:
        for line in str(e).splitlines():
            assert line.startswith(f"{tmp_path}/asked.yaml: claims.{KEY}"), line
        return
    contrast = claims.entries[KEY].contrast
    if contrast is None:  # then the entry of a function
        return
    table = planted(contrast, seeds, np.random.default_rng(draw))
    try:
        judgements = judge(find_all(claims, evidence(contrast, table)), 0.05)
    except Explained as e:
        is_named = str(e).startswith(f"claims.{KEY}: ") and "several rows of" in str(e)
        if not is_named:
            raise
        return
    assert judgements[0].verdict in ("holds", "fails", "undecided")
    json.dumps(ledger(claims, judgements, 0.95), allow_nan=False)


@st.composite
def plain(draw: st.DrawFn) -> dict[str, Any]:
    """A statement by Student's t about two cells, or one, of a table of the project."""
    usable = [k for k, e in COMPARED.items() if e["test"] == "t" and e.get("scale") != "log"]
    raw = copy.deepcopy(RAW[draw(st.sampled_from(usable))])
    contrast = raw["contrast"]
    vocabulary = VOCABULARIES[contrast["table"].partition(".")[0]]
    cells = vocabulary.cells(contrast["cells"])[0]
    raw["contrast"] = {"table": contrast["table"], "cells": dict(cells)}
    raw["contrast"]["measure"] = contrast["measure"]
    if "less" in contrast and draw(st.booleans()):
        raw["contrast"]["less"] = contrast["less"]
    raw |= {"holds_in": "all", "direction": draw(st.sampled_from(["greater", "less"]))}
    raw |= {"bound": draw(st.sampled_from([0.0, 0.25, 0.5])), "bound_because": "it is drawn"}
    if draw(st.booleans()):
        raw |= {"margin": draw(st.sampled_from([0.05, 0.2])), "margin_because": "it is drawn"}
    else:
        raw.pop("margin", None)
        raw.pop("margin_because", None)
    return raw | {"criterion": "as it is drawn"}


def selected(table: pd.DataFrame, cells: dict[str, Any]) -> pd.DataFrame:
    for column, value in cells.items():
        table = table[table[column] == value]
    return table


def independent(raw: dict[str, Any], table: pd.DataFrame) -> tuple[int, float, str]:
    """n, mean and verdict, by pandas' merge and SciPy's test."""
    c = raw["contrast"]
    measured = cast(pd.Series, table.eval(c["measure"]))
    table = table.assign(value=measured).dropna(subset="value")
    values = selected(table, c["cells"]).set_index("seed")["value"]
    if "less" in c:
        other = selected(table, c["cells"] | c["less"])
        both = values.to_frame().merge(other, left_index=True, right_on="seed")
        values = both["value_x"] - both["value_y"]
    sign = 1 if raw["direction"] == "greater" else -1
    signed, width = sign * (values - raw["bound"]), raw.get("margin", 0.0)
    n, mean = len(values), float(values.mean())
    if n < 6:
        return n, mean, "undecided"
    p_for = stats.ttest_1samp(signed, 0, alternative="greater").pvalue
    p_against = stats.ttest_1samp(signed, width, alternative="less").pvalue
    if 2 * p_for < 0.05 and signed.mean() >= width:
        return n, mean, "holds"
    return n, mean, "fails" if 2 * p_against < 0.05 else "undecided"


@examples(40)
@given(
    raw=plain(),
    seeds=st.sampled_from([0, 1, 5, 6, 8, 12, 20]),
    shift=st.sampled_from([-1.0, -0.3, 0.0, 0.3, 1.0]),
    draw=st.integers(0, 999),
)
def test_a_plain_contrast_is_judged_as_scipy_does(
    raw: dict[str, Any], seeds: int, shift: float, draw: int, tmp_path: Path
):
    try:
        claims = loaded(raw, tmp_path, PLANTED)
    except Explained as e:
        if "whatever was measured" not in str(e):
            raise
        return
    contrast = claims.entries[KEY].contrast
    assert contrast is not None
    draws = np.random.default_rng(draw)
    table = planted(contrast, seeds, draws).assign(diverged_at=math.nan)
    columns = [name for name in contrast.columns()["measure"] if name != "d"]
    table.loc[selected(table, raw["contrast"]["cells"]).index, columns] += shift
    table.loc[draws.permutation(len(table))[: draw % 4], columns] = math.nan
    n, mean, verdict = independent(raw, table)
    (judgement,) = judge(find_all(claims, evidence(contrast, table)), 0.05)
    case = judgement.claim.cases[""]
    assert judgement.verdict == verdict
    if n:
        assert (case.n, case.effect) == (n, pytest.approx(mean))
