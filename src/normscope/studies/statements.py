"""The statements of all studies: what is checked before any job, and the tests of the ledger."""

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path

from normscope.errors import Explained
from normscope.studies.folder import FOLDER
from normscope.studies.sources import marked_tests
from normscope.studies.study import Study
from normscope.verdicts.check import problems
from normscope.verdicts.entry import Claims, load
from normscope.verdicts.frozen import digests


def load_checked(
    paths: Collection[Path], studies: Mapping[str, Study], figures: Collection[str] | None = None
) -> Claims:
    """Read statements that these studies can test and these figures can show. Needs no pandas.

    Args:
        paths: The files of the documents, ``data/claims/*.yaml``.
        studies: The studies of the configuration, by name.
        figures: Names of figures. Without them, the figure of an entry is not looked up.

    Raises:
        Explained: Entries are wrong. Each line names the file, the key and the closest match.
    """
    claims = load(paths)
    tested = {key: test.study for key, test in marked_tests().items()}
    vocabularies = {name: study.vocabulary() for name, study in studies.items()}
    files = {path.stem: str(path) for path in paths}
    if wrong := problems(claims, vocabularies, tested, figures):
        raise Explained(
            "\n".join(f"{files.get(document, 'data/claims')}: {line}" for document, line in wrong)
        )
    return claims


def digests_of(claims: Claims) -> dict[str, str]:
    """The digest of every statement's test, by key."""
    return digests(claims, {key: test.code for key, test in marked_tests().items()})


def import_tests(studies: Collection[str]) -> None:
    """Import the functions that test statements of these studies."""
    for name in studies:
        if (FOLDER / name / "claims.py").exists():
            importlib.import_module(f"normscope.studies.{name}.claims")
