"""Where each statement is tested, which tables it reads, and which code computes them."""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from normscope.columns import Table
from normscope.io.provenance import code_digest
from normscope.studies.folder import FOLDER
from normscope.studies.study import Study
from normscope.verdicts.entry import Claims
from normscope.verdicts.expression import columns_in


class Test(NamedTuple):
    """A function that tests a statement, marked with ``@claim``.

    Args:
        study: whose module ``claims`` has it.
        function: its dotted name.
        tables: that it reads, as ``study.table``.
        code: a digest of its module's statements, without comments and docstrings.
    """

    study: str
    function: str
    tables: tuple[str, ...]
    code: str


def marked_tests() -> dict[str, Test]:
    """The functions that test statements, by the statement's key, without importing them."""
    tests = {}
    for path in sorted(FOLDER.glob("*/claims.py")):
        study = path.parent.name
        body = ast.parse(path.read_bytes()).body
        functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        for name, function in functions.items():
            for mark in function.decorator_list:
                match mark:
                    case ast.Call(func=ast.Name(id="claim"), args=[ast.Constant(value=str(key))]):
                        tables = dict.fromkeys(_tables(name, functions, {name}))
                        dotted = f"normscope.studies.{study}.claims.{name}"
                        tests[key] = Test(study, dotted, tuple(tables), code_digest([path]))
    return tests


def _tables(name: str, functions: Mapping[str, ast.FunctionDef], seen: set[str]) -> Iterator[str]:
    """The tables that a function asks for, itself or through functions of its module."""
    for node in ast.walk(functions[name]):
        match node:
            case ast.Call(func=ast.Attribute(attr="table"), args=[ast.Constant(value=str(table))]):
                yield table
            case ast.Name(id=other) if other in functions and other not in seen:
                seen.add(other)
                yield from _tables(other, functions, seen)


def sources(claims: Claims, studies: Mapping[str, Study]) -> dict[str, dict]:
    """Where each statement comes from, by its key, as JSON has it.

    Args:
        claims: the statements.
        studies: which declare the tables.

    Returns:
        ``test``: the entry; ``tables``: what it reads, as ``study.table``; ``code``: dotted names
        of the functions that test it and that compute what it reads.
    """
    functions = marked_tests()

    def declared(table: str) -> Table:
        study, _, name = table.partition(".")
        return studies[study].TABLES[name]

    places = {}
    for document, key, entry in claims:
        tables, code = [], []
        for reading in entry.readings.values():
            if (contrast := reading.contrast) is not None:
                tables.append(contrast.table)
                columns = columns_in(str(contrast.measure))
                code += [declared(contrast.table).source_of(column) for column in columns]
        if key in functions:
            tables += functions[key].tables
            code.append(functions[key].function)
            code += [declared(table).source for table in functions[key].tables]
        unique = {"tables": list(dict.fromkeys(tables)), "code": list(dict.fromkeys(code))}
        places[key] = {"test": f"data/claims/{document}.yaml: {key}", **unique}
    return places
