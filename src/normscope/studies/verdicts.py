"""The verdicts that follow from the tables of all studies, in a run or in the evidence."""

from collections.abc import Mapping
from pathlib import Path

from normscope.io.tables import Tables
from normscope.studies.study import Study
from normscope.verdicts.document import Claims
from normscope.verdicts.frozen import Plan
from normscope.verdicts.verdict import StudyData, Verdicts, judge


def verdicts(
    claims: Claims,
    studies: Mapping[str, Study],
    level: float,
    folders: Mapping[str, Path],
    plan: Plan,
) -> Verdicts:
    """The content of claims.json.

    Args:
        folders: The folder with the tables of every study, by name. A comparison that reads a table
            which is missing has no data.
        plan: What was registered before the data existed.
    """
    measured = {}
    for name, study in studies.items():
        folder = folders[name]
        made = {t: d for t, d in study.TABLES.items() if (folder / f"{t}.csv").is_file()}
        measured[name] = StudyData(Tables(folder, made), study.TABLES, study.vocabulary())
    return judge(claims, measured, level=level, plan=plan)
