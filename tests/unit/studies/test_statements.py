"""Statements before any job: what a wrong entry is told, and one that a stranger adds."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from statements import CLAIMS, CONFIG, ROOT

from normscope.errors import Explained
from normscope.ledger.claim import TESTS, Evidence
from normscope.ledger.judgement import find_all, judge
from normscope.paper.figures import load as load_figures
from normscope.studies import statements as project
from normscope.studies.folder import FOLDER
from normscope.studies.statements import load_checked

FILE = ROOT / "data" / "claims.yaml"
FIGURES = load_figures(FOLDER, CONFIG.studies)
RAW = yaml.safe_load(FILE.read_text())
ADDED: dict[str, Any] = {
    "study": "recall",
    "document": "notebook",
    "where": "a reader's question",
    "statement": "RMSNorm recalls as well as LayerNorm.",
    "quantity": "loss of RMSNorm, less LayerNorm's",
    "published": {"verdict": "none"},
    "test": "equivalence",
    "criterion": "losses within {margin:g} of each other",
    "direction": "within",
    "bound": 0.0,
    "margin": 0.05,
    "margin_because": "a reader would not see it",
    "unit": "model",
    "contrast": {
        "table": "recall.runs",
        "measure": "loss",
        "cells": {"protocol": "corrected", "arm": "rmsnorm"},
        "less": {"arm": "layernorm"},
        "needs": [{"check": "accuracy >= 0.9", "why": "the task was not learned"}],
    },
    "figure": "decisive",
    "differs_because": "it was not asked",
}


NEED = {"check": "acuracy > 0", "why": "bad"}


def checked(place: Path, claims: dict[str, Any]) -> Any:
    path = place / "claims.yaml"
    path.write_text(yaml.safe_dump(RAW | {"claims": claims}, sort_keys=False))
    return load_checked(path, CONFIG.studies, FIGURES)


def runs(
    arm: str,
    losses: list[float],
    rate: float = CONFIG.recall.corrected.learning_rate,
    **changes: Any,
) -> pd.DataFrame:
    key = {"task": "recall", "arm": arm, "learning_rate": rate}
    rows = [
        key | {"seed": seed, "loss": loss, "accuracy": 1.0, "diverged_at": float("nan")} | changes
        for seed, loss in enumerate(losses)
    ]
    return pd.DataFrame(rows)


def test_a_stranger_adds_a_statement_without_python(tmp_path):
    """Six differences within the margin: 2^-6 one-sided. Other rates and tasks are not asked."""
    claims = checked(tmp_path, RAW["claims"] | {"rmsnorm_recalls": ADDED})
    alone = claims.model_copy(
        update={"claims": {"rmsnorm_recalls": claims.claims["rmsnorm_recalls"]}}
    )
    ln = [0.5, 0.9, 0.7, 0.6, 0.8, 0.4]
    other = [runs("rmsnorm", [9.0] * 6, rate=0.01), runs("rmsnorm", [9.0] * 6, task="copy")]
    for shift, reads in ((0.01, "holds"), (0.2, "fails")):
        table = pd.concat([runs("layernorm", ln), runs("rmsnorm", [v + shift for v in ln]), *other])
        evidence = Evidence({"recall": {"runs": table}}, CONFIG.studies, 0.95)
        (judgement,) = judge(find_all(alone, evidence), 0.05)
        assert (judgement.verdict, judgement.by.case.n) == (reads, 6)
        assert judgement.by.p == pytest.approx(2 / 64)
        assert judgement.by.case.effect == pytest.approx(shift)


def at(*keys: str, **change: Any) -> dict[str, Any]:
    """``ADDED`` with a value changed below keys."""
    entry = yaml.safe_load(yaml.safe_dump(ADDED))
    part = entry
    for key in keys:
        part = part[key]
    part.update(change)
    return entry


@pytest.mark.parametrize(
    ("entry", "place", "near"),
    [
        (at(study="recal"), "study", "recall"),
        (at(figure="decisiv"), "figure", "decisive"),
        (at("contrast", table="recall.rums"), "contrast.table", "recall.runs"),
        (at("contrast", measure="los"), "contrast.measure", "loss"),
        (at("contrast", measure="loss - acuracy"), "contrast.measure", "accuracy"),
        (at("contrast", cells={"amr": "none"}), "contrast.cells.amr", "arm"),
        (at("contrast", cells={"arm": "rmsnrm"}), "contrast.cells.arm", "rmsnorm"),
        (at("contrast", cells={"arm": ["none", "dytt"]}), "contrast.cells.arm", "dyt"),
        (at("contrast", cells={"protocol": "corected"}), "contrast.cells.protocol", "corrected"),
        (at("contrast", cells={"arm": "others"}), "contrast.cells.arm", "known"),
        (at("contrast", less={"arm": "layrnorm"}), "contrast.less.arm", "layernorm"),
        (at("contrast", each=["learning_rat"]), "contrast.each", "learning_rate"),
        (at("contrast", replicates="sed"), "contrast.replicates", "seed"),
        (at("contrast", needs=[NEED]), "contrast.needs.0.check", "accuracy"),
        ({k: v for k, v in ADDED.items() if k != "contrast"}, "", "@claim"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_named_with_the_nearest_right_one(entry, place, near, tmp_path):
    with pytest.raises(Explained) as error:
        checked(tmp_path, RAW["claims"] | {"rmsnorm_recalls": entry})
    (line,) = str(error.value).splitlines()
    where = f"claims.rmsnorm_recalls{'.' if place else ''}{place}:"
    assert line.startswith(f"{tmp_path}/claims.yaml: {where}")
    assert near in line


def test_all_that_is_wrong_is_one_error(tmp_path):
    wrong = {"one": at(study="recal"), "two": at("contrast", measure="los")}
    with pytest.raises(Explained) as error:
        checked(tmp_path, RAW["claims"] | wrong)
    assert [line.split(": ")[1] for line in str(error.value).splitlines()] == [
        "claims.one.study",
        "claims.two.contrast.measure",
    ]


def test_a_function_without_its_entry_is_named(tmp_path):
    claims = {("h52" if key == "h25" else key): entry for key, entry in RAW["claims"].items()}
    with pytest.raises(Explained) as error:
        checked(tmp_path, claims)
    text = str(error.value)
    assert "claims.h25 is missing: studies/pretrained/claims.py tests it; did you mean h52?" in text
    assert "claims.h52: nothing tests it" in text


def test_the_projects_statements_are_right_and_each_is_tested():
    assert load_checked(FILE, CONFIG.studies, FIGURES) == CLAIMS
    functions = project.tested_by_functions()
    assert functions.keys() == TESTS.keys()
    assert len(CLAIMS.claims) == 39
    by_data = {key for key, entry in CLAIMS.claims.items() if entry.contrast}
    assert by_data | functions.keys() == CLAIMS.claims.keys()
    statements = [e.statement for e in CLAIMS.claims.values()]
    assert len(set(statements)) == len(statements)
