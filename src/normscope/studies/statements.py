"""The statements of all studies: what is checked before any job, and their verdicts."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from normscope.columns import Table
from normscope.errors import Explained, suggest
from normscope.studies.study import Study
from normscope.verdicts.comparison import Comparison, sides
from normscope.verdicts.document import Claims, Statement, load
from normscope.verdicts.expression import columns_in


def load_checked(
    paths: Collection[Path],
    studies: Mapping[str, Study],
    figures: Collection[str] | None = None,
    disputes: Path | None = None,
) -> Claims:
    """Read statements that these studies can test and these figures can show. Needs no pandas.

    Args:
        paths: The files of the documents, ``data/claims/*.yaml``.
        studies: The studies of the configuration, by name.
        figures: Names of figures. Without them, the figure of a statement is not looked up.
        disputes: The file of the pairs of statements that cannot both hold.

    Raises:
        Explained: A statement is wrong. Each line names the file, the key and the closest match.
    """
    claims = load(paths, disputes)
    files = {path.stem: str(path) for path in paths}
    wrong = [
        f"{files[document]}: {key}{problem}"
        for document, key, statement in claims
        for problem in _problems(statement, studies, figures)
    ]
    if wrong:
        raise Explained("\n".join(wrong))
    return claims


def _problems(
    statement: Statement, studies: Mapping[str, Study], figures: Collection[str] | None
) -> Iterator[str]:
    for name, comparison in statement.comparisons.items():
        place = f".also.{name}" if name else ""
        try:
            _check(comparison, studies)
        except Explained as e:
            yield f"{place}: {e}"
            return  # the same problem would follow for what is laid over it
    if figures is not None and statement.figure and statement.figure not in figures:
        yield f".figure: no figure is {statement.figure!r}; {suggest(statement.figure, figures)}"


def _check(comparison: Comparison, studies: Mapping[str, Study]) -> None:
    """Check the names that a comparison uses.

    Raises:
        Explained: A table, column or value is unknown, or both sides are the same models.
    """
    table = declared(comparison, studies)
    vocabulary = studies[comparison.measured.study].vocabulary()
    for name in columns_in(comparison.measured.expression):
        if name not in table.by_name:
            raise Explained(f"measure: no column {name!r}; {suggest(name, table.names)}")
        if table[name].kind is str:
            raise Explained(f"measure: {name} is text: give a column of numbers")
    words, _ = sides(comparison.compare)
    cells = [{**comparison.models, **vocabulary.side(side, table)} for side in words]
    for cell in cells:
        for column, given in cell.items():
            known = vocabulary.known(column)
            if column not in table.by_name and column not in vocabulary.names:
                raise Explained(f"models: no column {column!r}; {suggest(column, table.names)}")
            for value in given if isinstance(given, list) else [given]:
                if known and value not in known:
                    raise Explained(f"models: {column} has no {value!r}; {suggest(value, known)}")
    first, *others = map(vocabulary.cells, cells)
    if first and first in others:
        raise Explained("compare: both sides are the same models")


def declared(comparison: Comparison, studies: Mapping[str, Study]) -> Table:
    """The declaration of the table that a comparison reads.

    Raises:
        Explained: There is no such table.
    """
    study, _, name = comparison.measured.table.partition(".")
    if study not in studies:
        raise Explained(f"measure: no study is {study!r}; {suggest(study, studies)}")
    tables = studies[study].TABLES
    if name not in tables:
        raise Explained(f"measure: {study} has no table {name!r}; {suggest(name, tables)}")
    return tables[name]


def sources(claims: Claims, studies: Mapping[str, Study]) -> dict[str, dict[str, Any]]:
    """Where each statement comes from, by its key, as JSON has it.

    Args:
        claims: The statements.
        studies: Which declare the tables.

    Returns:
        ``test``: the entry; ``tables``: what it reads, as ``study.table``; ``code``: dotted names
        of the functions that compute what it reads.
    """
    places = {}
    for document, key, statement in claims:
        code = [
            declared(comparison, studies).source_of(column)
            for comparison in statement.comparisons.values()
            for column in columns_in(comparison.measured.expression)
        ]
        places[key] = {
            "test": f"data/claims/{document}.yaml: {key}",
            "tables": statement.tables,
            "code": list(dict.fromkeys(code)),
        }
    return places
