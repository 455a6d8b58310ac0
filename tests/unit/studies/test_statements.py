"""The statements of data/claims/: read, tested either way, and as the evidence judged them."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from processes import ROOT
from scipy.optimize import brentq

from normscope.columns import Table
from normscope.config import Config, load
from normscope.errors import Explained
from normscope.pages.figures import load as load_figures
from normscope.pilot import read_project
from normscope.studies.stage import FOLDER
from normscope.studies.statements import load_checked, sources
from normscope.studies.verdicts import verdicts
from normscope.verdicts import expression
from normscope.verdicts.comparison import Comparison, sides
from normscope.verdicts.document import Claims
from normscope.verdicts.findings import load as load_findings
from normscope.verdicts.frozen import Plan, read_frozen
from normscope.verdicts.sample import is_log, sample
from normscope.verdicts.test import result
from normscope.verdicts.verdict import Verdicts, read

CONFIG: Config = load(read_project(ROOT, ROOT / "config/paper.yaml"))
FILES = sorted((ROOT / "data/claims").glob("*.yaml"))
CLAIMS: Claims = load_checked(FILES, CONFIG.studies)


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


def test_the_findings_of_figures_name_statements_and_their_verdicts():
    found = [entry.finding for entry in FIGURES.values() if entry.finding]
    assert found
    for finding in found:
        statement = CLAIMS.statements[finding.statement]
        answers = ("yes", "no", "mixed") if statement.is_question else ("as claimed", "opposite")
        assert finding.verdict in answers, finding.statement


def test_the_projects_statements_are_right_and_distinct():
    assert load_checked(FILES, CONFIG.studies, FIGURES) == CLAIMS
    said = [statement.says for statement in CLAIMS.statements.values()]
    assert len(set(said)) == len(said)
    findings = load_findings(ROOT / "data/findings.yaml", CLAIMS.statements, FIGURES)
    assert findings.of_statements.keys() == CLAIMS.statements.keys()
    found = sources(CLAIMS, CONFIG.studies)
    assert found.keys() == CLAIMS.statements.keys()
    assert found["stays"]["tables"] == ["depth.rates"]
    assert found["stays"]["code"] == ["normscope.studies.depth.tabulate.rates"]
    models = found["removing_gain_degrades"]["models"][""]
    assert models.startswith("RMSNorm, no gain − RMSNorm; ")
    assert models.endswith(", pre-norm")


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


COMPARISONS = {
    f"{key}{f'.{name}' if name else ''}": comparison
    for _, key, statement in CLAIMS
    for name, comparison in statement.comparisons.items()
}
SEEDS = range(24)
TRIED = [-100.0, -10.0, -1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 0.5, 0.9, 1.0, 1.5, 3.0, 10.0, 100.0]
# a share or a square is never below 0
ONE_SIDED = {"scaling_keeps_keys_selectable"}


def inverse(of: str, table: Table, target: float) -> dict[str, float]:
    """Values of the columns of a measure at which it has a value, within their ranges."""
    columns = expression.columns_in(of)
    for column, base in itertools.product(columns, (0.5, 1.0)):
        low, high = table[column].range or (-math.inf, math.inf)
        if column == of and low <= target <= high:
            return {of: target}
        row = dict.fromkeys(columns, base)

        def off(value: float | list[float], row: dict = row, column: str = column) -> Any:
            frame = pd.DataFrame(row | {column: np.atleast_1d(value)})
            return np.squeeze(expression.values(of, frame) - target)

        tried = sorted({min(max(value, low), high) for value in TRIED} - {math.inf, -math.inf})
        for (a, at_a), (b, at_b) in itertools.pairwise(zip(tried, off(tried), strict=True)):
            if math.isfinite(at_a + at_b) and at_a * at_b <= 0:
                return row | {column: brentq(off, a, b)}
    raise AssertionError(f"{of} is never {target}")


def targets(comparison: Comparison, table: Table, *, claimed: bool) -> tuple[float, float]:
    """The least and the greatest value of the quantity, within what is expected or beyond it."""
    log = is_log(comparison, table)
    low, high = comparison.expectation.bounds(is_ratio=log)
    if log:
        far = (high * 2, high * 3) if math.isfinite(high) else (low / 3, low / 2)
        if not claimed:
            return far
        if math.isfinite(low) and math.isfinite(high):
            middle = math.sqrt(low * high)
            return middle / (high / low) ** 0.02, middle * (high / low) ** 0.02
        return (high / 3, high / 2) if math.isfinite(high) else (low * 2, low * 3)
    if math.isfinite(low) and math.isfinite(high):
        middle, width = (low + high) / 2, (high - low) / 50
        return (middle - width, middle + width) if claimed else (high + width, high + 2 * width)
    end, sign = (high, -1) if math.isfinite(high) else (low, 1)
    step = 0.1 * (abs(end) or 0.2) * sign * (1 if claimed else -1)
    near, far = end + step / 2, end + step
    return min(near, far), max(near, far)


def rows(comparison: Comparison, table: Table, *, claimed: bool) -> pd.DataFrame:
    """24 seeds of the models of each side."""
    vocabulary = CONFIG.studies[comparison.measurement.study].vocabulary()
    words, operator = sides(comparison.compare)
    least, most = targets(comparison, table, claimed=claimed)
    parts: list[dict[str, Any]] = []
    floor = 0.4 if operator != "/" else 1.0
    for i, side in enumerate(words):
        cell = {**comparison.models, **vocabulary.side(side, table)}
        one = vocabulary.cells({k: v[:1] if isinstance(v, list) else v for k, v in cell.items()})[0]
        solved: dict[str, float] = {}
        for seed in SEEDS:
            quantity = least + (most - least) * seed / len(SEEDS)
            if len(words) == 1:
                value = quantity
            else:
                value = floor if i else quantity * floor if operator == "/" else floor + quantity
            if not (i and solved):  # all models of the second side have one value
                solved = inverse(comparison.measurement.expression, table, value)
            parts.append({"model": str(seed), **one, "seed": seed, **solved})
    frame = pd.DataFrame(parts).reindex(columns=table.names)
    fine = {"accuracy": 1.0, "failed": 0, "diverged": False}
    return frame.assign(
        **{
            name: frame[name].astype(object).where(frame[name].notna(), value)
            for name, value in fine.items()
            if name in frame
        }
    )


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_can_come_out_as_claimed_and_opposite(name: str):
    comparison = COMPARISONS[name]
    study, _, table_name = comparison.measurement.table.partition(".")
    table = CONFIG.studies[study].TABLES[table_name]
    of = [table[column] for column in expression.columns_in(comparison.measurement.expression)]
    is_count = all(column.role == "count" for column in of)
    for claimed in (True, False):
        if not claimed and name in ONE_SIDED:
            continue
        made = rows(comparison, table, claimed=claimed)
        given = sample(comparison, made, table, CONFIG.studies[study].vocabulary())
        found = result(comparison, given, is_count=is_count, level=0.95)
        assert found.outcome == ("as claimed" if claimed else "opposite"), (found, given.values[:5])


def test_the_kept_verdicts_follow_from_the_kept_tables():
    kept = read(ROOT / "evidence/claims.json")
    folders = {name: ROOT / "evidence" / name for name in CONFIG.studies}
    plan = Plan(CONFIG.digests, read_frozen(ROOT / "evidence"))
    now = verdicts(CLAIMS, CONFIG.studies, CONFIG.level, folders, plan)
    again = Verdicts.model_validate_json(now.model_dump_json())
    assert again == kept, "run: python scripts/evidence.py --judge"
