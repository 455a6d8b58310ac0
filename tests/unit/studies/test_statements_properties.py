"""Edited statements are refused by key or loaded; plain ones are judged as SciPy judges them."""

import copy
import math
import re
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
from normscope.verdicts.check import problems
from normscope.verdicts.claim import Evidence
from normscope.verdicts.entry import Claims, Entry, Unasked, load
from normscope.verdicts.judgement import find_all, judge
from normscope.verdicts.reading import Reading
from properties import examples
from scipy import stats
from statements import CLAIMS, CONFIG, flat

from normscope.errors import Explained
from normscope.statistics.summary import select
from normscope.verdicts.comparison import Contrast
from normscope.verdicts.vocabulary import Vocabulary

VOCABULARIES = {name: study.vocabulary() for name, study in CONFIG.studies.items()}
PLANTED = {name: replace(v, grids={}) for name, v in VOCABULARIES.items()}  # tables of any rows
COMPARED = [flat(entry) for entry in CLAIMS.entries.values() if entry.first.contrast]
KEY = "edited"  # no function of a study tests it
VALUES: list[Any] = [
    *("rmsnorm", "none", "pre", "recall", "published", "tuned", "", "yes", "within", "less", "log"),
    *("equivalence", "primary", "any", "model", "formula", "depth.rates", "capped_loss"),
    *("{margin:g}", "{bound}", "{", "{first:d}", "accuracy >= 2", "loss - accuracy"),
    *(0, 1, -1, 6, 0.05, 0.9, 2.0, math.nan, math.inf, True, None),
    *([], {}, [1, 2], ["pre", "post"], {"arm": "rmsnorm"}, {"depth": "greatest"}),
]
KEYS = [
    *Entry.model_fields,
    *Reading.model_fields,
    *Unasked.model_fields,
    *Contrast.model_fields,
    "pick",
    "column",
    "check",
    "where",
    "by",
]


def loaded(
    entry: dict[str, Any], folder: Path, vocabularies: Mapping[str, Vocabulary] = VOCABULARIES
) -> Claims:
    """The statement as its file gives it, checked by all studies; or every fault."""
    path = folder / "asked.yaml"
    path.write_text(
        yaml.safe_dump({"title": "Questions", "asserts": False, "claims": {KEY: entry}})
    )
    claims = load([path])
    if wrong := problems(claims, vocabularies, {}):
        raise Explained("\n".join(f"{path}: {line}" for _, line in wrong))
    return claims


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every dictionary and list of an entry, with each of its keys."""
    known = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for key in known:
        yield part, key
        yield from places(part[key])


@st.composite
def edited(draw: st.DrawFn) -> dict[str, Any]:
    """A statement of the project in which a few keys or values are changed."""
    entry = copy.deepcopy(draw(st.sampled_from(COMPARED)))
    for _ in range(draw(st.integers(1, 3))):
        part, key = draw(st.sampled_from([*places(entry), *places(entry.get("contrast"))]))
        value = copy.deepcopy(draw(st.sampled_from(VALUES)))
        match draw(st.sampled_from(["remove", "replace", "add"])):
            case "remove":
                del part[key]
            case "add" if isinstance(part, dict):
                part[draw(st.sampled_from(KEYS))] = value
            case _:
                part[key] = value
    return entry


@examples(120)
@given(entry=edited())
def test_an_edited_statement_is_refused_by_its_key_or_loaded(entry: dict[str, Any], tmp_path: Path):
    try:
        loaded(entry, tmp_path)
    except Explained as e:
        for line in str(e).splitlines():
            assert line.startswith(f"{tmp_path}/asked.yaml: claims.{KEY}"), line


@st.composite
def plain(draw: st.DrawFn) -> dict[str, Any]:
    """A statement by Student's t about two cells, or one, of a table of the project."""
    usable = [e for e in COMPARED if e["test"] == "t" and e.get("scale") != "log"]
    raw = copy.deepcopy(draw(st.sampled_from(usable)))
    contrast, less = raw["contrast"], draw(st.booleans())
    less &= not any(isinstance(v, list) for v in contrast.get("less", {}).values())
    cells = VOCABULARIES[contrast["table"].partition(".")[0]].cells(contrast["cells"])[0]
    raw["contrast"] = {k: contrast[k] for k in ("table", "measure")} | {"cells": dict(cells)}
    if less and "less" in contrast:
        raw["contrast"]["less"] = contrast["less"]
    raw |= {
        "holds_in": "all",
        "refutable": True,
        "direction": draw(st.sampled_from(["greater", "less"])),
    }
    raw |= {"bound": draw(st.sampled_from([0.0, 0.25, 0.5])), "bound_because": "it is drawn"}
    for key in ("margin", "margin_because"):
        raw.pop(key, None)
    if draw(st.booleans()):
        raw |= {"margin": draw(st.sampled_from([0.05, 0.2])), "margin_because": "it is drawn"}
    return raw | {"criterion": "as drawn"}


def planted(c: Mapping[str, Any], seeds: int, draws: np.random.Generator) -> pd.DataFrame:
    """Random numbers at the cells of both sides, and at a cell that the contrast is not about."""
    study, _, name = c["table"].partition(".")
    columns, cells = list(VOCABULARIES[study].columns[name]), c["cells"]
    sides = [cells, cells | {next(iter(cells)): "another"}]
    sides += [cells | c["less"]] if "less" in c else []
    rows = [
        {**dict(zip(columns, draws.uniform(size=len(columns)), strict=True)), **side, "seed": seed}
        for side in sides
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=columns).assign(
        diverged_at=math.nan, diverged=False, failed=0
    )


def independent(raw: dict[str, Any], table: pd.DataFrame) -> tuple[int, float, str]:
    """n, mean and verdict, by pandas' merge and SciPy's test."""
    c = raw["contrast"]
    measured = cast(pd.Series, table.eval(c["measure"]))
    table = table.assign(value=measured).dropna(subset="value")
    values = select(table, **c["cells"]).set_index("seed")["value"]
    if "less" in c:
        other = select(table, **c["cells"] | c["less"])
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
        if not re.search("whatever was measured|does not keep its level", str(e)):
            raise
        return
    contrast = claims.entries[KEY].first.contrast
    assert contrast is not None
    study, _, name = contrast.table.partition(".")
    draws = np.random.default_rng(draw)
    table = planted(raw["contrast"], seeds, draws)
    columns = [name for name in contrast.columns()["measure"] if name != "d"]
    table.loc[select(table, **raw["contrast"]["cells"]).index, columns] += shift
    table.loc[draws.permutation(len(table))[: draw % 4], columns] = math.nan
    n, mean, verdict = independent(raw, table)
    found = Evidence({study: {name: table}}, CONFIG.studies, 0.95)
    (judgement,) = judge(find_all(claims, found), 0.05)
    case = judgement.claim.findings["stated"].cases[""]
    assert judgement.verdict == verdict
    if n:
        assert (case.n, case.effect) == (n, pytest.approx(mean))
