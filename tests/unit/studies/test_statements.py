"""Statements before any job, those of the project, and those that a stranger adds."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from statements import CLAIMS, CONFIG, DISPUTES, FILES, ROOT

from normscope.errors import Explained
from normscope.pages.figures import load as load_figures
from normscope.studies.folder import FOLDER
from normscope.studies.statements import load_checked, sources

FIGURES = load_figures(FOLDER, CONFIG.studies)
ADDED: dict[str, Any] = {
    "says": "RMSNorm recalls as well as LayerNorm.",
    "quote": "as well",
    "where": "section 1",
    "measure": "recall.chosen.loss",
    "models": {"task": "recall"},
    "compare": "rmsnorm - layernorm",
    "expect": "within 0.05",
    "figure": "decisive",
}


def loaded(folder: Path, **changes: Any) -> Any:
    path = folder / "my_paper.yaml"
    content = {"title": "My paper", "checked": "all", "mine": {**ADDED, **changes}}
    path.write_text(yaml.safe_dump(content))
    return load_checked([path], CONFIG.studies, FIGURES)


def test_the_projects_statements_are_right_and_distinct():
    assert load_checked(FILES, CONFIG.studies, FIGURES, DISPUTES) == CLAIMS
    said = [statement.says for statement in CLAIMS.statements.values()]
    assert len(set(said)) == len(said)
    assert len(CLAIMS.disputes) == len(DISPUTES.read_text().splitlines()) - 1
    found = sources(CLAIMS, CONFIG.studies)
    assert found.keys() == CLAIMS.statements.keys()
    assert found["stays"]["tables"] == ["depth.rates"]
    assert found["stays"]["code"] == ["normscope.studies.depth.tabulate.rates"]


def test_a_stranger_adds_a_statement_by_one_entry(tmp_path):
    assert loaded(tmp_path).statements["mine"].tables == ["recall.chosen"]
    path = tmp_path / "template.yaml"
    path.write_text((ROOT / "data/claims/TEMPLATE").read_text())
    assert len(load_checked([path], CONFIG.studies, FIGURES).statements) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure": "recal.chosen.loss"}, "mine: measure: no study is 'recal'; did you mean rec"),
        ({"measure": "recall.chosn.loss"}, "recall has no table 'chosn'; did you mean chosen?"),
        ({"measure": "recall.chosen.los"}, "no column 'los'; did you mean loss?"),
        ({"measure": "recall.chosen.task"}, "task is text: give a column of numbers"),
        ({"models": {"tsk": "recall"}}, "models: no column 'tsk'; did you mean task?"),
        ({"models": {"task": "recal"}}, "models: task has no 'recal'; did you mean recall?"),
        ({"compare": "rmsnorm - rmsnorm"}, "compare: both sides are the same models"),
        ({"compare": "rmsnorm - layernrm"}, "no column has the value 'layernrm'; did you mean"),
        ({"figure": "decisiv"}, "mine.figure: no figure is 'decisiv'; did you mean decisive?"),
        ({"also": {"copy": {"models": {"task": "cpy"}}}}, "mine.also.copy: models: task has no"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_the_closest(changes, message, tmp_path):
    with pytest.raises(Explained, match=message):
        loaded(tmp_path, **changes)
