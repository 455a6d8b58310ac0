"""What is wrong in the statements of a file, told before any job starts. No pandas."""

from collections.abc import Collection, Iterator, Mapping

from normscope.errors import suggest
from normscope.ledger.comparison import EVERY, GREATEST, OTHERS, Cells, Contrast
from normscope.ledger.entry import Claims, Entry
from normscope.ledger.vocabulary import Vocabulary

OPEN = {  # the words for values that a key of a contrast may say
    "less": (OTHERS, GREATEST),
    "over": (OTHERS, GREATEST),
    "where": (EVERY,),
}


def problems(
    claims: Claims,
    vocabularies: Mapping[str, Vocabulary],
    functions: Mapping[str, str],
    figures: Collection[str] | None = None,
) -> list[str]:
    """A line for each fault: the key, what is wrong, and the nearest right word.

    Args:
        vocabularies: of every study, by its name.
        functions: the study of every key that a function tests.
        figures: names of figures, which entries are shown by; without them none is looked up.
    """
    lines = []
    for key, entry in claims.claims.items():
        faults = _in_entry(key, entry, vocabularies, functions, figures)
        lines += [f"claims.{key}{place}: {fault}" for place, fault in faults]
    for key, study in functions.items():
        if key not in claims.claims:
            near = suggest(key, claims.claims)
            lines.append(f"claims.{key} is missing: studies/{study}/claims.py tests it; {near}")
    return lines


Faults = Iterator[tuple[str, str]]  # place in an entry, what is wrong there


def _in_entry(
    key: str,
    entry: Entry,
    vocabularies: Mapping[str, Vocabulary],
    functions: Mapping[str, str],
    figures: Collection[str] | None,
) -> Faults:
    if entry.study not in vocabularies:
        yield ".study", f"unknown study {entry.study!r}; {suggest(entry.study, vocabularies)}"
    if figures is not None and entry.figure not in figures:
        yield ".figure", f"unknown figure {entry.figure!r}; {suggest(entry.figure, figures)}"
    if key in functions and functions[key] != entry.study:
        yield ".study", f"is {entry.study}, and studies/{functions[key]}/claims.py tests it"
    if entry.contrast is None:
        if key not in functions:
            near = suggest(key, functions)
            yield (
                "",
                "nothing tests it: give it a contrast, or write a function marked "
                f'@claim("{key}") in studies/{entry.study}/claims.py; {near}',
            )
        return
    study, _, table = entry.contrast.table.partition(".")
    tables = {f"{s}.{t}": (v, v.columns[t]) for s, v in vocabularies.items() for t in v.columns}
    if entry.contrast.table not in tables:
        near = suggest(entry.contrast.table, tables)
        yield ".contrast.table", f"unknown table {study}.{table}; {near}"
        return
    yield from _in_contrast(entry, entry.contrast, *tables[entry.contrast.table])


def _in_contrast(
    entry: Entry, contrast: Contrast, vocabulary: Vocabulary, columns: Collection[str]
) -> Faults:
    """Columns, cells and values that the contrast's table does not have."""
    named = {f".contrast.{place}": names for place, names in contrast.columns().items()}
    if entry.test == "fact":  # of every row by itself
        del named[".contrast.replicates"]
    for place, names in named.items():
        for name in names:
            if name not in columns:
                near = suggest(name, columns)
                yield place, f"{contrast.table} has no column {name!r}; {near}"
    for place, cells in contrast.all_cells().items():
        words = OPEN.get(place.rpartition(".")[2], ())
        for column, fault in _in_cells(cells, vocabulary, columns, words):
            yield f".contrast.{place}.{column}", fault


def _in_cells(
    cells: Cells, vocabulary: Vocabulary, columns: Collection[str], words: Collection[str]
) -> Faults:
    for column, given in cells.items():
        names, values = vocabulary.names.get(column, {}), vocabulary.values.get(column)
        if column not in columns and not names:
            near = suggest(column, [*columns, *vocabulary.names])
            yield column, f"the table has no such column; {near}"
            continue
        is_listed = values is not None or column not in columns
        for value in given if isinstance(given, list) else [given]:
            known = [*names, *(values or ()), *words]
            if is_listed and value not in known:
                yield column, f"unknown value {value!r}; {suggest(value, known)}"
