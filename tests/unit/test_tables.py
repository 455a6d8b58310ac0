"""Tables: CSV of fixed bytes, LaTeX that TeX takes, numbers for people."""

import math
import re
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.arms import ARMS
from normscope.csvfile import write_csv
from normscope.recipe import Placement
from normscope.tables import interval, latex, macro, markdown, number, run_key


def test_csv_reads_back_with_nine_digits_and_unix_lines(tmp_path):
    table = pd.DataFrame({"arm": ["a", "b,c"], "loss": [1 / 3, math.nan], "n": [1, 2]})
    write_csv(tmp_path / "t.csv", table)
    raw = (tmp_path / "t.csv").read_bytes()
    assert raw == b'arm,loss,n\na,0.333333333,1\n"b,c",,2\n'
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), table, rtol=1e-9)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("placement", get_args(Placement))
def test_run_key_takes_a_name_apart(arm, placement):
    key = run_key(f"{arm}-{placement}-1337")
    assert key == {"arm": arm, "placement": placement, "seed": 1337}


@given(st.floats(-100, 100), st.integers(0, 6))
def test_numbers_read_back(value, digits):
    assert float(number(value, digits).replace("−", "-")) == pytest.approx(
        value, abs=0.5 * 10**-digits * (1 + 1e-9)
    )


@pytest.mark.parametrize(
    ("value", "signed", "plain"),
    [(0.1234, "+0.123", "0.123"), (-1.5, "−1.500", "−1.500"), (math.nan, "–", "–")],
)
def test_numbers_have_a_minus_sign_and_a_dash_for_none(value, signed, plain):
    assert number(value, sign=True) == signed
    assert number(value) == plain


def test_intervals_have_brackets_and_a_dash_for_none():
    assert interval(-0.1, 0.25) == "[−0.100, 0.250]"
    assert interval(-0.1, 0.25, sign=True) == "[−0.100, +0.250]"
    assert interval(math.nan, math.nan) == "–"


def test_markdown_is_a_pipe_table():
    table = pd.DataFrame({"arm": ["a", "b"], "n": [1, 2]})
    assert markdown(table).splitlines() == [
        "| arm | n |",
        "| --- | --- |",
        "| a | 1 |",
        "| b | 2 |",
    ]


def test_latex_is_a_balanced_booktabs_tabular():
    table = pd.DataFrame({"arm": ["a", "b"], "loss": ["1.9", "−2.0"], "interval": ["–", "[1, 2]"]})
    lines = [line.strip() for line in latex(table).splitlines()]
    assert lines[0] == r"\begin{tabular}{lll}"
    assert lines[-1] == r"\end{tabular}"
    rules = [line for line in lines if line.endswith("rule")]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == 3
    assert all(row.count("&") == 2 for row in rows)
    assert rows[1:] == [r"a & 1.9 & -- \\", r"b & $-$2.0 & [1, 2] \\"]


@pytest.mark.parametrize("special", "_%&#")
def test_latex_escapes_what_tex_reads_as_markup(special):
    text = latex(pd.DataFrame({f"r{special}mean": [f"manual{special}l2"]}))
    assert rf"manual\{special}l2 \\" in text
    assert rf"r\{special}mean \\" in text


@pytest.mark.parametrize("columns", [[], ["arm", "loss"]])
def test_latex_of_an_empty_table_is_a_row_that_says_none(columns):
    """A tabular without a column has no row to rule."""
    lines = latex(pd.DataFrame([], columns=columns)).split("\n")
    assert lines[0] == r"\begin{tabular}{l}"
    rows = [line for line in lines if line.endswith(r"\\")]
    assert rows == [r" \\", r"none \\"]


WORDS = ("loss", "loss low", "loss high", "growth", "last gain")


def test_macros_of_all_runs_have_names_of_letters_and_no_two_the_same():
    lines = [
        macro((arm, placement, word), "1.0")
        for arm in ARMS
        for placement in get_args(Placement)
        for word in WORDS
    ]
    names = {re.fullmatch(r"\\newcommand\{\\([A-Za-z]+)\}\{1\.0\}", line) for line in lines}
    assert None not in names
    assert len({name[1] for name in names if name}) == len(lines)


def test_macros_spell_digits_and_hold_an_ascii_number():
    line = macro(("manual_l2", "pre", "loss low"), "−1.899")
    assert line.isascii()
    assert line == r"\newcommand{\normscopeManualLtwoPreLossLow}{-1.899}"
