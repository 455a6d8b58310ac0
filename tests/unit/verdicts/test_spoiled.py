"""A document that is spoiled in one place is refused, with the place and what is right."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from normscope.verdicts.check import problems
from normscope.verdicts.entry import load
from statements import CONFIG

from normscope.errors import Explained
from normscope.io.yamlfile import read_yaml
from normscope.pages.figures import load as load_figures
from normscope.studies.folder import FOLDER

GIVEN = read_yaml(Path(__file__).with_name("spoiled.yaml"))
VOCABULARIES = {name: study.vocabulary() for name, study in CONFIG.studies.items()}
FIGURES = load_figures(FOLDER, CONFIG.studies)


def patched(base: Any, patch: Any) -> Any:
    """A value with others laid over it, key by key; None removes a key."""
    if not (isinstance(base, Mapping) and isinstance(patch, Mapping)):
        return patch
    given = {**base, **{key: patched(base.get(key), patch[key]) for key in patch}}
    return {key: value for key, value in given.items() if value is not None}


def faults(folder: Path, document: Any, names: list[str]) -> list[str]:
    """The lines of the error with which files of a document are refused; none if they are not."""
    paths = [folder / f"{name}.yaml" for name in names]
    for path in paths:
        path.write_text(yaml.safe_dump(document, sort_keys=False))
    try:
        claims = load(paths)
    except Explained as e:
        return [line.removeprefix(f"{paths[0]}: ") for line in str(e).splitlines()]
    return [line for _, line in problems(claims, VOCABULARIES, {}, FIGURES)]


def test_the_document_is_right_before_it_is_spoiled(tmp_path: Path):
    assert faults(tmp_path, GIVEN["document"], ["paper"]) == []


def test_a_margin_within_the_values_leaves_the_verdict_open(tmp_path: Path):
    """An accuracy below 1.2 - 0.5 holds, one above does not."""
    entry = {"direction": "less", "bound": 1.2, "margin": 0.5, "margin_because": "half"}
    document = patched(GIVEN["document"], {"claims": {"accurate": entry}})
    assert faults(tmp_path, document, ["paper"]) == []


@pytest.mark.parametrize("case", GIVEN["cases"], ids=lambda case: case["name"])
def test_a_spoiled_entry_is_refused_with_its_place_and_what_is_right(case: Any, tmp_path: Path):
    of = case.get("of", "alike")
    entry = {**case.get("entry", {})}
    if "contrast" in case:
        entry["contrast"] = case["contrast"]
    document = patched(GIVEN["document"], case.get("document", {}))
    document = patched(document, {"claims": {of: entry}})
    if "key" in case:
        document["claims"][case["key"]] = document["claims"].pop(of)
    lines = faults(tmp_path, document, case.get("files", ["paper"]))
    at = case.get("at", f"claims.{of}")
    place = f"claims.{of}{at}" if at.startswith(".") else at
    assert any(line.startswith(place) and case["error"] in line for line in lines), lines
    assert len(lines) == case.get("lines", 1), lines
