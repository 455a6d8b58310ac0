"""Statements before any job: what a wrong entry is told, and one that a stranger adds."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from normscope.studies.sources import marked_tests
from normscope.verdicts.claim import TESTS, Evidence
from normscope.verdicts.entry import Claims
from normscope.verdicts.judgement import find_all, judge
from statements import CLAIMS, CONFIG, FILES, ROOT, flat

from normscope.config import load
from normscope.errors import Explained
from normscope.pages.figures import load as load_figures
from normscope.pilot import read_project
from normscope.studies.folder import FOLDER
from normscope.studies.statements import load_checked

FIGURES = load_figures(FOLDER, CONFIG.studies)
ADDED: dict[str, Any] = {
    "study": "recall",
    "where": "a reader's question",
    "statement": "RMSNorm recalls as well as LayerNorm.",
    "quantity": "loss of RMSNorm, less LayerNorm's",
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
    "readings": {"stated": {}},
}


def checked(
    place: Path, claims: dict[str, Any], document: str = "asked", studies: Any = CONFIG.studies
) -> Claims:
    """The project's documents and one with these statements."""
    path = place / f"{document}.yaml"
    whole = {"title": "Questions of a reader", "asserts": False, "claims": claims}
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return load_checked([*FILES, path], studies, FIGURES)


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
    alone = Claims({"asked": checked(tmp_path, {"rmsnorm_recalls": ADDED}).documents["asked"]})
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


def compared(key: str, cells: dict[str, Any], **change: Any) -> dict[str, Any]:
    """A statement of the project about other cells, with each of its cases to hold."""
    entry = flat(CLAIMS.entries[key])
    for name in ("each", "best", "as_published"):
        entry["contrast"].pop(name, None)
    entry["contrast"] |= {"cells": cells, **change}
    return {k: v for k, v in entry.items() if k != "holds_in"}


PRE_NORM = {"placement": "pre", "arm": "layernorm"}  # of two protocols, and at several rates
POST_NORM = {"arm": "layernorm", "init": "gpt2", "residual": True, "placement": "post"}
SMALL = {"protocol": "small", "arm": "layernorm", "attention": "softmax", "feedback": "fa"}


@pytest.mark.parametrize(
    ("entry", "differ"),
    [
        (compared("inverts", PRE_NORM), "protocol"),
        (compared("inverts", {"protocol": "small"}), "arm"),
        (compared("inverts", PRE_NORM | {"protocol": "nanogpt"}, table="main.runs"),
         "learning_rate"),
        # the other side alone
        (compared("norms_differ_alone", {"protocol": "nanogpt", "arm": "rmsnorm"},
                  over={"arm": "layernorm"}, table="main.runs"), "learning_rate"),
        (compared("pre_beats_post", POST_NORM, each=["warmup_steps"]), "learning_rate"),
        (compared("pre_beats_post", POST_NORM, best={"columns": ["learning_rate"],
                  "by": "capped_loss"}), "warmup_steps"),
        (compared("norms_are_needed", {"arm": "none"}), "task, learning_rate"),
        (compared("norms_are_alike", SMALL | {"norm_backward": "center_scale"}, less=None,
                  sentence=None), "surrogates_in"),
    ],
)  # fmt: skip
def test_a_side_of_several_models_of_a_seed_is_refused_before_they_are_trained(
    entry, differ, tmp_path
):
    with pytest.raises(Explained) as error:
        checked(tmp_path, {"one": entry})
    (line,) = str(error.value).splitlines()
    assert "claims.one.readings.stated.contrast.cells: " in line
    why = rf" are several rows of seed \d+, which differ in {differ}: say which one"
    assert re.search(why, line)


def test_a_measure_of_one_protocol_needs_no_other_to_be_named(tmp_path):
    """Gains are measured in one protocol here, and losses are known of every model."""
    main = CONFIG.main
    gain = main.gain.model_copy(update={"protocols": ["small"]})
    studies = {**CONFIG.studies, "main": main.model_copy(update={"gain": gain})}
    entry = compared("inverts", PRE_NORM)
    assert checked(tmp_path, {"one": entry}, studies=studies).entries["one"].first.contrast
    entry["contrast"]["measure"] = "capped_loss"
    with pytest.raises(Explained, match="differ in protocol"):
        checked(tmp_path, {"one": entry}, studies=studies)


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.name)
def test_the_projects_statements_fit_every_configuration_of_the_project(path):
    config = load(read_project(ROOT, path))
    assert load_checked(FILES, config.studies) == CLAIMS


def test_a_configuration_that_trains_fewer_arms_needs_no_other_statements():
    """A statement on an arm that it does not train has no data, and no fault."""
    recall = CONFIG.recall
    published = recall.published.model_copy(update={"arms": recall.published.arms[:1]})
    fewer = {"recall": recall.model_copy(update={"published": published})}
    assert load_checked(FILES, {**CONFIG.studies, **fewer}, FIGURES) == CLAIMS


def test_all_that_is_wrong_is_one_error(tmp_path):
    again = ADDED | {"statement": "The same in other words."}
    wrong = {"one": at(study="recal"), "two": at("contrast", measure="los")}
    with pytest.raises(Explained) as error:
        checked(tmp_path, wrong | {"three": ADDED, "four": again})
    first, second, twice = (line.partition(": ")[2] for line in str(error.value).splitlines())
    assert first.startswith("claims.one.study: ")
    assert second.startswith("claims.two.readings.stated.contrast.measure: ")
    twin = "claims.three.readings.stated"
    assert twice == f"claims.four.readings.stated: has the same test as {twin}: remove one of them"


def test_a_function_without_its_entry_is_named(tmp_path):
    path = tmp_path / "final_norm.yaml"
    path.write_text((ROOT / "data/claims/final_norm.yaml").read_text().replace("h25:", "h52:"))
    others = [other for other in FILES if other.name != path.name]
    with pytest.raises(Explained) as error:
        load_checked([*others, path], CONFIG.studies)
    text = str(error.value)
    assert "claims.h25 is missing: studies/pretrained/claims.py tests it; did you mean h52?" in text
    assert "claims.h52: nothing tests it" in text


def test_the_template_is_a_document_next_to_all_others(tmp_path):
    path = tmp_path / "my_paper.yaml"
    path.write_text((ROOT / "data/claims/TEMPLATE").read_text())
    made = load_checked([*FILES, path], CONFIG.studies, FIGURES).documents["my_paper"]
    assert (len(made.claims), len(made.statements)) == (1, 2)


def test_the_projects_statements_are_right_and_each_is_tested():
    assert load_checked(FILES, CONFIG.studies, FIGURES) == CLAIMS
    functions = marked_tests()
    assert functions.keys() == TESTS.keys()
    by_data = {key for key, entry in CLAIMS.entries.items() if entry.first.contrast}
    assert by_data | functions.keys() == CLAIMS.entries.keys()
    statements = [e.statement for e in CLAIMS.entries.values()]
    assert len(set(statements)) == len(statements)
