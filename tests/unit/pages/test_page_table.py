"""Tables of pages: cells by column, and the same hostile cells in every medium."""

import math

import pandas as pd
import pytest

from normscope.errors import Explained
from normscope.formats import GENERAL, INTEGER, SCIENTIFIC, SIGNIFICANT, decimals
from normscope.pages.table import (
    Column,
    Field,
    PageTable,
    Quantity,
    at,
    count,
    cross,
    estimate,
    field,
    interval,
    number,
    setting,
    tabulate,
    text,
    yes_no,
)

NAN = math.nan
ROW = {"n": 6, "lost": 2, "none": NAN, "yes": True, "no": False, "word": "a*", "rate": 0.0003}
ROW |= {"mean": -0.5, "low": -1.25, "high": 0.25, "ln": math.log(2)}


@pytest.mark.parametrize(
    ("field", "cell"),
    [
        (text("word"), "a*"),
        (text("none"), "–"),
        (text("", "word", str.upper), "A*"),
        (number("", "rate", GENERAL), "0.0003"),
        (number("", "none", GENERAL), "–"),
        (count("n"), "6"),
        (count("none"), "0"),
        (count("n", diverged="lost"), "6, 2 diverged"),
        (count("n", diverged="no"), "6"),
        (yes_no("", "yes"), "yes"),
        (yes_no("", "no"), "no"),
        (number("", "mean"), "−0.500"),
        (number("", "high", decimals(2, sign=True)), "+0.25"),
        (number("", "ln", decimals(4, log=True)), "2.0000"),
        (interval(""), "[−1.250, 0.250]"),
        (interval("", form=decimals(1, sign=True)), "[−1.2, +0.2]"),
        (interval("", "none", "none"), "–"),
        (estimate(""), "−0.500 [−1.250, 0.250]"),
        (estimate("", low="none"), "−0.500"),
        (estimate("", "none", "none", "none"), "–"),
        (estimate("", form=SCIENTIFIC), "−0.500 [−1.25, 0.250]"),
        (setting("", "rate", "no"), "0.0003"),
        (setting("", "rate", "yes"), "0.0003 (end of the range)"),
        (field("", lambda row: row["ln"] - math.log(2), INTEGER), "0"),
    ],
)
def test_a_column_takes_its_cell_from_a_row_and_prints_it(field: Field, cell):
    assert tabulate("", [ROW], [field]).texts() == [[cell]]


def test_a_table_has_one_row_per_record_and_keeps_values():
    data = pd.DataFrame({"arm": ["a", "b"], "loss": [1.5, NAN]})
    loss = Column("loss", decimals(1))
    table = tabulate("Losses", data, [text("arm"), number("loss", "loss", decimals(1))])
    assert table == PageTable("Losses", (Column("arm"), loss), (("a", 1.5), ("b", None)))
    assert table.cells(1) == [1.5, None]
    assert table.select("loss") == PageTable("Losses", (loss,), ((1.5,), (None,)))
    with pytest.raises(Explained, match="has no column cost; it has arm, loss"):
        table.select("cost")
    assert tabulate("None", data[:0], [text("arm")]).rows == ()


def test_records_are_crossed_in_the_order_in_which_they_come():
    data = pd.DataFrame(
        [["b", "x", 1.0], ["a", "x", 2.0], ["b", "y", 3.0]], columns=["key", "name", "v"]
    )
    cells = [at(name, number(name, "v")) for name in ("x", "y")]
    table = tabulate("", cross(data, ["key"], "name"), [text("key"), *cells])
    assert table.rows == (("b", 1.0, 3.0), ("a", 2.0, None))
    (pairs,) = cross(data, [], ["key", "name"])
    assert at(("b", "y"), number("", "v")).cell(pairs) == 3


@pytest.mark.parametrize(
    ("form", "cells", "is_numeric"),
    [
        (SIGNIFICANT, [0.5, None, -1234.5, 1e-9], True),
        (INTEGER, [None], False),
        (INTEGER, [7, Quantity(1, note=", 2 diverged")], False),
        (INTEGER, [7, "diverged"], False),
        (SIGNIFICANT, [Quantity(1.9, 1.8, 2.0)], False),
        (None, ["1", "2"], False),
    ],
)
def test_a_column_is_numeric_if_all_its_cells_are_plain_numbers(form, cells, is_numeric):
    table = PageTable("", (Column("column", form),), tuple((cell,) for cell in cells))
    assert table.is_numeric(0) == is_numeric
