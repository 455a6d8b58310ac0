"""What DVC shows: names that last, one number per cell, and every metric has a plot."""

import pandas as pd
import pytest
from processes import ROOT

from normscope.columns import Column, Metric, Table, key
from normscope.errors import Explained
from normscope.io.yamlfile import read_yaml
from normscope.pages.metrics import ShownColumn, plot, shown_columns, tree_of
from normscope.studies.stage import declared_tables

NAN = float("nan")


def metric(*keys: str, along: str = "", name: str = "loss") -> ShownColumn:
    column = Column("loss", "loss", metric=Metric(name, keys, along))
    table = Table("one arm", (key("arm", "arm"), key("rate", "rate", float), column), "a.b")
    return shown_columns({"main": {"arms": table}})[name]


def row(arm: str, rate: float, loss: float, step: int = 0) -> dict[str, object]:
    return {"arm": arm, "rate": rate, "step": step, "loss": loss}


def test_dvc_has_a_plot_of_every_metric_and_of_nothing_else():
    drawn = {path for plots in read_yaml(ROOT / "dvc.yaml")["plots"] for path in plots}
    assert drawn == {f"metrics/plots/{name}.csv" for name in shown_columns(declared_tables())}


def test_a_name_has_no_dot_and_a_missing_number_has_none():
    one, missing, other = row("pythia-6.9b", 0.001, 2.0), row("a", 2, NAN), row("none", 1.0, 3.0)
    table = plot(metric(), pd.DataFrame([other, one, missing]))
    assert tree_of(table) == {"none": {"1": 3.0}, "pythia-6_9b": {"0_001": 2.0}}
    assert table.to_csv(index=False) == "cell,loss\nnone 1,3.0\npythia-6_9b 0_001,2.0\n"


def test_a_curve_is_the_mean_of_the_numbers_at_a_step():
    rows = [row("a", 1, 3.0, 10), row("a", 2, 5.0, 10), row("a", 1, 9.0, 5), row("a", 2, NAN, 5)]
    table = plot(metric("arm", along="step"), pd.DataFrame(rows))
    assert table.to_csv(index=False) == "cell,step,loss\na,5,9.0\na,10,4.0\n"


@pytest.mark.parametrize("rows", [[("a", 1), ("a", 2)], [("a.b", 1), ("a b", 1)]])
def test_rows_that_dvc_cannot_tell_apart_are_an_error(rows):
    with pytest.raises(Explained, match=r"metric loss: main\.arms has several rows of a"):
        plot(metric("arm"), pd.DataFrame([row(arm, rate, 2.0) for arm, rate in rows]))


@pytest.mark.parametrize("name", ["verdicts", "loss"])
def test_a_name_that_is_taken_is_an_error(name):
    """By the ledger's numbers, or by another metric."""
    columns = [Column(c, c, metric=Metric(m)) for c, m in (("a", "loss"), ("b", name))]
    with pytest.raises(ValueError, match=f"two metrics are called {name}"):
        shown_columns({"main": {"arms": Table("one arm", tuple(columns), "a.b")}})
