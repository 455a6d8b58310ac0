"""Questions: what they may name, and what a wrong one is told."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from verdicts.test_document import ENTRY

from normscope.errors import Explained
from normscope.io.yamlfile import overlay
from normscope.verdicts.document import Statement
from normscope.verdicts.findings import Findings, load

STATEMENTS = {key: Statement.model_validate(ENTRY) for key in ("alike", "worse")}
ANSWER = {"says": "By {effect}, {0}.", "statement": "alike", "comparison": "longer"}
ANSWER |= {"outcome": "as claimed"}
QUESTION: dict[str, Any] = {"asks": "Are they alike?", "found": "They are", "figure": "loss"}
QUESTION["published"] = [SHOWN := {"did": "It trained one.", "figure": "loss", "corrected": ANSWER}]
WRONG = overlay(SHOWN, {"corrected": {"comparison": "longr"}})
QUESTION |= {"answers": [ANSWER], "statements": ["alike"], "contradictions": [["alike", "worse"]]}


def loaded(folder: Path, content: dict[str, Any]) -> Findings:
    path = folder / "findings.yaml"
    path.write_text(yaml.safe_dump(content))
    return load(path, STATEMENTS, ["loss", "gain"])


def test_questions_name_their_statements_and_what_these_contradict(tmp_path):
    findings = loaded(tmp_path, {"kind": QUESTION})
    assert findings.of_statements == {"alike": "kind"}
    assert findings.contradicted_by("worse") == ["alike"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"figure": "los"}, "kind.figure: unknown 'los'; did you mean loss?"),
        ({"statements": ["alik"]}, "kind.statements: unknown 'alik'; did you mean alike?"),
        ({"contradictions": [["alike", "wose"]]}, "unknown 'wose'; did you mean worse?"),
        ({"statement": "alik"}, "kind.answers.0.statement: unknown 'alik'; did you mean"),
        ({"comparison": "longr"}, "answers.0.comparison: unknown 'longr'; did you mean long"),
        ({"outcome": "true"}, "kind.answers.0.outcome: "),
        ({"says": "By {efect}."}, "kind.answers.0.says: only .effect., and .0. and .1. for"),
        ({"sayz": "By."}, "kind.answers.0.sayz: unknown key; did you mean says?"),
        ({"answers": []}, "kind.answers: "),
        ({"published": [overlay(SHOWN, {"figure": "los"})]}, "kind.figure: unknown 'los'; did"),
        ({"published": [WRONG]}, "kind.published.0.corrected.comparison: unknown 'longr'; did"),
    ],
)
def test_a_wrong_question_is_refused_with_its_place_and_the_closest(changes, message, tmp_path):
    at_top = changes.keys() & QUESTION.keys()
    question = QUESTION | (changes if at_top else {"answers": [overlay(ANSWER, changes)]})
    with pytest.raises(Explained, match=message) as error:
        loaded(tmp_path, {"kind": question})
    assert str(error.value).startswith(f"{tmp_path / 'findings.yaml'}: ")


def test_a_statement_belongs_to_one_question(tmp_path):
    with pytest.raises(Explained, match="alike belongs to several questions"):
        loaded(tmp_path, {"kind": QUESTION, "other": QUESTION})
