"""The statements of all studies: what is checked before any job, and the tests of the ledger."""

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path

from normscope.errors import Explained
from normscope.ledger.check import problems
from normscope.ledger.entry import Claims, load
from normscope.studies.folder import FOLDER
from normscope.studies.sources import marked_tests
from normscope.studies.study import Study


def load_checked(
    path: Path, studies: Mapping[str, Study], figures: Collection[str] | None = None
) -> Claims:
    """The statements of a file, which these studies can test and these figures show. No pandas.

    Args:
        path: data/claims.yaml.
        studies: the configuration's, by name.
        figures: names of figures; without them an entry's figure is not looked up.

    Raises:
        Explained: entries are wrong; each with what is, and the nearest right word.
    """
    claims = load(path)
    tested = {key: test.study for key, test in marked_tests().items()}
    vocabularies = {name: study.vocabulary() for name, study in studies.items()}
    if wrong := problems(claims, vocabularies, tested, figures):
        raise Explained("\n".join(f"{path}: {line}" for line in wrong))
    return claims


def import_tests(studies: Collection[str]) -> None:
    """Import the functions that test statements of these studies."""
    for name in studies:
        if (FOLDER / name / "claims.py").exists():
            importlib.import_module(f"normscope.studies.{name}.claims")
