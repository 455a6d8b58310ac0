"""The statements of all studies: what is checked before any job, and their verdicts."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from normscope.columns import Table
from normscope.errors import Explained, suggest
from normscope.nn.recipe import PLACEMENTS
from normscope.studies.study import Study
from normscope.verdicts.comparison import Comparison, sides
from normscope.verdicts.document import Claims, Statement, load
from normscope.verdicts.expression import columns_in


def load_checked(
    paths: Collection[Path],
    studies: Mapping[str, Study],
    figures: Collection[str] | None = None,
) -> Claims:
    """Read statements that these studies can test and these figures can show. Needs no pandas.

    Args:
        paths: The files of the documents, ``data/claims/*.yaml``.
        figures: Names of figures. Without them, the figure of a statement is not looked up.

    Raises:
        Explained: A statement is wrong. Each line names the file, the key and the closest match.
    """
    claims = load(paths)
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
    table = table_of(comparison, studies)
    vocabulary = studies[comparison.measurement.study].vocabulary()
    for name in columns_in(comparison.measurement.expression):
        if name not in table.by_name:
            raise Explained(f"measure: no column {name!r}; {suggest(name, table.names)}")
        if table[name].kind is str:
            raise Explained(f"measure: {name} is text: give a column of numbers")
    words, _ = sides(comparison.compare)
    cells = [{**comparison.models, **vocabulary.side(side, table)} for side in words]
    for cell in cells:
        for column, given in cell.items():
            known = vocabulary.values_of(column)
            if column not in table.by_name and column not in vocabulary.names:
                raise Explained(f"models: no column {column!r}; {suggest(column, table.names)}")
            for value in given if isinstance(given, list) else [given]:
                if known and value not in known:
                    raise Explained(f"models: {column} has no {value!r}; {suggest(value, known)}")
    first, *others = map(vocabulary.cells, cells)
    if first and first in others:
        raise Explained("compare: both sides are the same models")


def table_of(comparison: Comparison, studies: Mapping[str, Study]) -> Table:
    """The declaration of the table that a comparison reads."""
    study, _, name = comparison.measurement.table.partition(".")
    if study not in studies:
        raise Explained(f"measure: no study is {study!r}; {suggest(study, studies)}")
    tables = studies[study].TABLES
    if name not in tables:
        raise Explained(f"measure: {study} has no table {name!r}; {suggest(name, tables)}")
    return tables[name]


def models_in_words(comparison: Comparison, studies: Mapping[str, Study]) -> str:
    """The models of a comparison for readers: its sides, and what they share."""
    study, table = studies[comparison.measurement.study], table_of(comparison, studies)
    names, operator = sides(comparison.compare)
    cells = [*(study.vocabulary().side(side, table) for side in names), comparison.models]
    *compared, shared = (
        ", ".join(
            filter(None, (_in_words(column, value, table, study) for column, value in cell.items()))
        )
        for cell in cells
    )
    between = f" {operator.replace('-', '−')} "
    return "; ".join(filter(None, [between.join(compared), shared]))


def _in_words(column: str, value: Any, table: Table, study: Study) -> str:
    """A value of a column as its table labels it, or a list of them."""
    if isinstance(value, list):
        return " and ".join(_in_words(column, one, table, study) for one in value)
    known = table.by_name.get(column)
    label = known.label if known else ""
    if column == "placement":
        label = {**PLACEMENTS, "none": ""}  # an arm without a norm says so
    elif column == "protocol":
        titles = getattr(study, "titles", {})
        label = {value: titles.get(value, str(value).replace("_", " "))}
    if isinstance(label, str):
        name = known.heading if known else column
        return (label or f"{name.replace('_', ' ')} {{}}").format(value)
    return label.get(value, str(value))


def sources(
    statements: Iterable[tuple[str, str, Statement]], studies: Mapping[str, Study]
) -> dict[str, dict[str, Any]]:
    """Where each statement comes from, by its key, as JSON has it.

    Returns:
        ``test``: the entry; ``tables``: what it reads, as ``study.table``; ``code``: dotted names
        of the functions that compute what it reads; ``models``: those of each comparison, in words.
    """
    places = {}
    for document, key, statement in statements:
        code = [
            table_of(comparison, studies).source_of(column)
            for comparison in statement.comparisons.values()
            for column in columns_in(comparison.measurement.expression)
        ]
        places[key] = {
            "test": f"data/claims/{document}.yaml: {key}",
            "tables": statement.tables,
            "code": list(dict.fromkeys(code)),
            "models": {
                name: models_in_words(comparison, studies)
                for name, comparison in statement.comparisons.items()
            },
        }
    return places
