"""Errors in the statements, found before any job starts. Needs no pandas."""

import math
from collections.abc import Collection, Iterator, Mapping

from normscope.errors import suggest
from normscope.verdicts import relations, sides
from normscope.verdicts.comparison import SEED, Cells, Contrast
from normscope.verdicts.entry import Claims, Entry
from normscope.verdicts.expression import columns_in, settled
from normscope.verdicts.reading import BY_T, DECISIVE, Reading
from normscope.verdicts.vocabulary import Cell, Value, Vocabulary, agree


def problems(
    claims: Claims,
    vocabularies: Mapping[str, Vocabulary],
    functions: Mapping[str, str],
    figures: Collection[str] | None = None,
) -> list[tuple[str, str]]:
    """The document of each fault, and a line with the key, what is wrong, and the nearest word.

    Args:
        vocabularies: The vocabulary of every study, by name.
        functions: The study of every key that a function tests.
        figures: Names of figures. Without them, the figure of an entry is not looked up.
    """
    lines = []
    for document, key, entry in claims:
        faults = _in_entry(key, entry, vocabularies, functions, figures)
        lines += [(document, f"claims.{key}{place}: {fault}") for place, fault in faults]
    home = {key: document for document, key, _ in claims.every}
    lines += [(home[key], f"claims.{key}{fault}") for key, fault in relations.faults(claims)]
    lines += _repeated(claims)
    entries = claims.entries
    for key, study in functions.items():
        if key not in entries:
            near = suggest(key, entries)
            line = f"claims.{key} is missing: studies/{study}/claims.py tests it; {near}"
            lines.append(("", line))
    return lines


Faults = Iterator[tuple[str, str]]  # key of the entry, and what is wrong


def _repeated(claims: Claims) -> Iterator[tuple[str, str]]:
    """Readings of one document with the same test, which would be counted twice."""
    tested: dict[tuple, str] = {}
    for document, key, entry in claims:
        for name, reading in entry.readings.items():
            if reading.contrast is not None:
                parts = reading.model_dump_json(
                    include=DECISIVE, exclude={"contrast": {"sentence"}}
                )
                place = f"claims.{key}.readings.{name}"
                first = tested.setdefault((document, parts), place)
                if first != place:
                    yield document, f"{place}: has the same test as {first}: remove one of them"


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
    if key not in functions and any(r.contrast is None for r in entry.readings.values()):
        yield (
            "",
            "nothing tests it: give it a contrast, or write a function marked "
            f'@claim("{key}") in studies/{entry.study}/claims.py; {suggest(key, functions)}',
        )
    for name, reading in entry.readings.items():
        for place, fault in _in_reading(reading, vocabularies):
            yield f".readings.{name}{place}", fault
        if reading.reach is not None and _asks_more(reading, entry, vocabularies):
            yield (
                f".readings.{name}.reach",
                f"differs from {reading.reach} in more than the size, training or text of trained "
                "models: make it a reading of the words",
            )


def _asks_more(reading: Reading, entry: Entry, vocabularies: Mapping[str, Vocabulary]) -> bool:
    """Whether a reading asks another question than the one that it extends."""
    assert reading.reach is not None
    base = entry.readings[reading.reach]
    if reading.contrast is None or base.contrast is None:
        return True
    study, _, table = reading.contrast.table.partition(".")
    words = vocabularies.get(study, Vocabulary())
    rest = DECISIVE - {"contrast"}
    return (
        table not in words.extents
        or reading.contrast.without(words.sized) != base.contrast.without(words.sized)
        or reading.model_dump(include=rest) != base.model_dump(include=rest)
    )


def _in_reading(reading: Reading, vocabularies: Mapping[str, Vocabulary]) -> Faults:
    if (contrast := reading.contrast) is None:
        return
    study, _, table = contrast.table.partition(".")
    tables = {f"{s}.{t}": (v, v.columns[t]) for s, v in vocabularies.items() for t in v.columns}
    if contrast.table not in tables:
        near = suggest(contrast.table, tables)
        yield ".contrast.table", f"unknown table {study}.{table}; {near}"
        return
    yield from _in_contrast(reading, contrast, *tables[contrast.table])


def _in_contrast(
    reading: Reading, contrast: Contrast, vocabulary: Vocabulary, columns: Collection[str]
) -> Faults:
    """Unknown columns, cells and values, and sides that cannot be compared."""
    faults = list(_in_words(reading, contrast, vocabulary, columns))
    if not faults:
        faults += [(f".contrast.{at}", what) for at, what in sides.faults(contrast, vocabulary)]
        faults += _in_numbers(reading, contrast, vocabulary)
    if not faults and reading.test != "fact":
        faults += _in_grid(contrast, vocabulary)
    yield from faults


def _in_grid(contrast: Contrast, vocabulary: Vocabulary) -> Faults:
    """Sides with several models of one seed, among those that the configuration trains.

    Tables without a grid, and columns that are computed from results, cannot be checked.
    """
    grid = vocabulary.grids.get(contrast.table.partition(".")[2], ())
    settings = contrast.best.columns if contrast.best else []
    apart = [SEED, *contrast.distinguished_by, *settings]
    named = {*apart, *contrast.cells, *(contrast.other or {})}
    if not all(named - vocabulary.names.keys() <= row.keys() for row in grid):
        return
    needed = columns_in(contrast.measure)
    known = [row for row in grid if not any(_is_nan(row.get(name)) for name in needed)]
    for cells in contrast.sides:
        chosen = [row for cell in vocabulary.cells(cells) for row in known if agree(row, cell)]
        first: dict[tuple, Cell] = {}
        for row in chosen:
            twin = first.setdefault(tuple(row.get(key) for key in apart), row)
            if twin is not row:
                yield ".contrast.cells", contrast.ambiguity(twin, row)
                return


def _is_nan(value: Value | None) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _in_words(
    reading: Reading, contrast: Contrast, vocabulary: Vocabulary, columns: Collection[str]
) -> Faults:
    named = {f".contrast.{place}": names for place, names in contrast.columns().items()}
    if reading.test != "fact":  # which tests every row alone
        named[".contrast.table"] = [SEED]
    numbers = [column for column in columns if vocabulary.is_number(column)]
    for place, names in named.items():
        for name in names:
            if name not in columns:
                near = suggest(name, columns)
                yield place, f"{contrast.table} has no column {name!r}; {near}"
            elif place.removeprefix(".contrast.") in contrast.numbers and name not in numbers:
                yield place, f"{name} is text, and a number is needed; {suggest(name, numbers)}"
    for place, cells in contrast.all_cells().items():
        for column, fault in _in_cells(cells, vocabulary, columns):
            yield f".contrast.{place}.{column}", fault


def _in_cells(cells: Cells, vocabulary: Vocabulary, columns: Collection[str]) -> Faults:
    for column, given in cells.items():
        names, values = vocabulary.names.get(column, {}), vocabulary.values.get(column)
        if column not in columns and not names:
            near = suggest(column, [*columns, *vocabulary.names])
            yield column, f"the table has no such column; {near}"
            continue
        is_listed = values is not None or column not in columns
        for value in given if isinstance(given, list) else [given]:
            known = [*names, *(values or ())]
            if is_listed and value not in known:
                yield column, f"unknown value {value!r}; {suggest(value, known)}"
            elif not is_listed and (kind := _other_kind(value, vocabulary.is_number(column))):
                yield column, f"{value!r} is {kind}"


def _other_kind(value: Value, is_number: bool) -> str:
    """Why a column cannot have a value; empty if it can."""
    if not is_number:
        return "" if isinstance(value, str) else "not text, which the column has: put it in quotes"
    if isinstance(value, str | bool):
        return "not a number, which the column has: write it without quotes"
    return "" if math.isfinite(value) else "not finite"


def _in_numbers(reading: Reading, contrast: Contrast, vocabulary: Vocabulary) -> Faults:
    """Bounds and checks whose outcome does not depend on the data."""
    low, high = sides.span(contrast, vocabulary)
    if reading.test in BY_T and math.isfinite(low) and math.isfinite(high):
        yield (
            ".test",
            f"{reading.test}: the quantity lies between {low:g} and {high:g}, where Student's t "
            "does not keep its level: give median, or sign_flip for differences between outcomes",
        )
    if answer := _foregone(reading, low, high):
        yield (
            ".bound",
            f"{reading.limit:g}: the quantity lies between {low:g} and {high:g}, so that the "
            f"statement {answer} whatever was measured",
        )
    for i, need in enumerate(contrast.needs):
        if (answer := settled(need.check, vocabulary.ranges)) is not None:
            yield (
                f".contrast.needs.{i}.check",
                f"{need.check!r} is {'true' if answer else 'false'} whatever was measured",
            )


def _foregone(reading: Reading, low: float, high: float) -> str:
    """The verdict if the range of the quantity determines it; empty otherwise."""
    least, most = reading.margins
    if reading.direction == "within":
        return "fails" if most < low or least > high else "holds" * (least <= low and high <= most)
    if reading.direction == "less":
        return "fails" if least <= low else "holds" * (high < least)
    return "fails" if most >= high else "holds" * (low > most)
