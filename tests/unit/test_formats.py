"""How numbers are printed, and CSV of fixed bytes."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.formats import SCIENTIFIC, SIGNIFICANT, decimals
from normscope.io.csvfile import write_csv


def test_csv_reads_back_with_nine_digits_and_unix_lines(tmp_path):
    table = pd.DataFrame({"arm": ["a", "b,c"], "loss": [1 / 3, math.nan], "n": [1, 2]})
    write_csv(tmp_path / "t.csv", table)
    raw = (tmp_path / "t.csv").read_bytes()
    assert raw == b'arm,loss,n\na,0.333333333,1\n"b,c",,2\n'
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), table, rtol=1e-9)


@given(st.floats(-100, 100), st.integers(0, 6))
def test_numbers_read_back(value, digits):
    assert float(decimals(digits).text(value).replace("−", "-")) == pytest.approx(
        value, abs=0.5 * 10**-digits * (1 + 1e-9)
    )


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (math.nan, "–"),
        (0.0, "< 0.000001"),
        (9.9e-7, "< 0.000001"),
        (1e-6, "0.00000100"),
        (-2.5, "−2.50"),
        (1234.5678, "1,235"),
        (-9876543.0, "−9,876,543"),
    ],
)
def test_three_digits_over_all_magnitudes(value, reads):
    assert SIGNIFICANT.text(value) == reads


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (0.0, "0"),
        (math.nan, "–"),
        (1e-4, "0.000100"),
        (9.99e-5, "9.99e-05"),
        (9999.0, "9,999"),
        (1e4, "1.00e+04"),
        (5e-324, "4.94e-324"),
    ],
)
def test_numbers_that_would_be_zeros_or_many_digits_are_powers_of_ten(value, reads):
    assert SCIENTIFIC.text(value) == reads
