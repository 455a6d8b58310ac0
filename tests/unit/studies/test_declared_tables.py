"""Declared tables: what a file must be like, and where its columns come from."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from normscope.columns import SHARE, Column, Table, count, flag, key, text
from normscope.errors import Explained
from normscope.io.tables import as_declared, check, read_table, write_tables
from normscope.studies.folder import declared_tables

TABLE = Table(
    "one trained model",
    (
        key("arm", "arm"),
        key("seed", "seed", int),
        Column("accuracy", "accuracy", range=SHARE),
        count("parameters", "parameters"),
        flag("failed", "whether it failed"),
        text("note", "what else is known"),
    ),
    "normscope.train.session.train",
)


def frame() -> pd.DataFrame:
    rows = [("NA", 1, 0.5, 10, True, "NA"), ("b", 1, None, None, False, None)]
    table = pd.DataFrame(rows, columns=TABLE.names)
    return table.astype({"parameters": "Int64"})


def changed(column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.astype({column: object}).assign(**{column: value})


def test_a_table_is_read_as_it_was_written(tmp_path: Path):
    """Also where a text reads NA, and where numbers are missing."""
    write_tables(tmp_path, {"runs": frame()})
    again = read_table(tmp_path / "runs.csv", TABLE)
    pd.testing.assert_frame_equal(again, frame(), check_dtype=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="accuracy"), "it lacks accuracy"),
        (lambda t: t.assign(more=1), "more not declared"),
        (lambda t: t.assign(arm="b"), "several rows have arm b, seed 1"),
        (changed("accuracy", 1.01), r"accuracy has 1.01, which is outside \[0.0, 1.0\]"),
        (changed("accuracy", "high"), "accuracy has 'high', which is not float"),
        (changed("parameters", 1.5), "parameters has 1.5, which is not a whole number"),
        (changed("failed", "yes"), "failed has 'yes', which is not bool"),
        (changed("note", 3), "note has 3, which is not str"),
        (changed("seed", None), "seed is missing in a row"),
    ],
)
def test_a_table_that_does_not_fit_its_declaration_is_named(change, words):
    check("runs", frame(), TABLE)
    with pytest.raises(Explained, match=f"runs.csv does not fit its declaration: {words}"):
        check("runs", change(frame()), TABLE)


def test_tables_are_those_that_are_declared_with_columns_in_declared_order():
    shuffled = {"runs": frame()[TABLE.names[::-1]]}
    assert list(as_declared(shuffled, {"runs": TABLE})["runs"]) == TABLE.names
    with pytest.raises(Explained, match="not both: chosen, runs"):
        as_declared(shuffled, {"chosen": TABLE})


@pytest.mark.parametrize("study", declared_tables())
def test_a_study_declares_each_column_once_with_a_meaning_and_a_function_that_exists(study):
    for table in declared_tables()[study].values():
        assert len(table.by_name) == len(table.columns)
        for column in table.columns:
            assert column.meaning
            assert column.meaning[-1] != "."
            module, _, function = table.source_of(column.name).rpartition(".")
            assert callable(getattr(import_module(module), function)), column.name
