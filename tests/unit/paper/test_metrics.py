"""What DVC shows: names that last, one number a cell, and errors that say what to write."""

from pathlib import Path

import pytest
import yaml
from processes import ROOT

from normscope.config import load as load_config
from normscope.errors import Explained
from normscope.io.yamlfile import read_yaml
from normscope.paper.metrics import Metric, cells, check, curves, load, nested
from normscope.paper.statements import verdicts
from normscope.studies.folder import FOLDER

ENTRY = {"table": "arms", "keys": ["arm", "rate"], "value": "loss"}
LOSS = {"study": "main"} | ENTRY
NAN = float("nan")


def registered(place: Path, entries: dict[str, object]) -> None:
    """Read and check the entries of one study."""
    (place / "main").mkdir()
    (place / "main/metrics.yaml").write_text(yaml.safe_dump(entries))
    check(place, load(place, ["main"]), {"main": ["arms", "runs"]})


def row(arm: str, rate: float, loss: float, step: int = 0) -> dict[str, object]:
    return {"arm": arm, "rate": rate, "step": step, "loss": loss}


def test_what_the_workflow_registers_is_right():
    config = load_config(read_yaml(ROOT / "config.yaml"))
    tables = {name: study.TABLES for name, study in config.studies.items()}
    check(FOLDER, load(FOLDER, tables), tables)


def test_dvc_has_a_plot_of_every_metric_and_of_nothing_else():
    plots = read_yaml(ROOT / "dvc.yaml")["plots"]
    drawn = {path for plot in plots for path in plot}
    metrics = load(FOLDER, [path.parent.name for path in FOLDER.glob("*/metrics.yaml")])
    ends = {name: ".csv" if metric.along is None else "" for name, metric in metrics.items()}
    assert drawn == {f"metrics/plots/{name}{end}" for name, end in ends.items()}


def test_a_name_has_no_dot_and_does_not_depend_on_other_rows():
    metric = Metric.model_validate(LOSS)
    one = cells("loss", metric, [row("pythia-6.9b", 0.001, 2.0)])
    assert nested(one) == {"pythia-6_9b": {"0_001": 2.0}}
    more = cells("loss", metric, [row("none", 1.0, 3.0), row("pythia-6.9b", 0.001, 2.0)])
    assert nested(more) == {"none": {"1": 3.0}, "pythia-6_9b": {"0_001": 2.0}}


def test_a_number_that_is_none_has_no_metric():
    assert cells("loss", Metric.model_validate(LOSS), [row("none", 1.0, NAN)]) == {}


def test_a_curve_is_the_mean_of_what_stands_at_a_step():
    metric = Metric.model_validate(LOSS | {"keys": ["arm"], "along": "step"})
    rows = [row("a", 1, 3.0, 10), row("a", 2, 5.0, 10), row("a", 1, 9.0, 5), row("a", 2, NAN, 5)]
    expected = [{"step": 5, "loss": 9.0}, {"step": 10, "loss": 4.0}]
    assert curves("loss", metric, rows) == {("a",): expected}


@pytest.mark.parametrize(
    ("change", "rows", "words"),
    [
        ({"keys": ["arm"]}, [row("a", 1, 2.0), row("a", 2, 2.0)], "several rows of a"),
        ({"value": "lose"}, [row("a", 1, 2.0)], "no column lose; it has arm, rate, step, loss"),
        ({"keys": ["arm"]}, [row("a.b", 1, 2.0), row("a b", 1, 2.0)], "several rows of a_b"),
        ({"keys": ["rate"], "value": "arm"}, [row("a", 1, 2.0)], "'a' where a number is needed"),
    ],
)
def test_an_entry_that_does_not_fit_its_table_is_named(change, rows, words):
    with pytest.raises(Explained, match=f"metric loss: main.arms has .*{words}"):
        cells("loss", Metric.model_validate(LOSS | change), rows)


def test_a_table_that_no_study_has_is_named_with_the_nearest(tmp_path: Path):
    with pytest.raises(Explained, match=r"loss.unknown table of main 'arm'; did you mean arms\?"):
        registered(tmp_path, {"loss": ENTRY | {"table": "arm"}})


def test_two_curves_of_one_name_are_an_error():
    metric = Metric.model_validate(LOSS | {"keys": ["arm", "kind"], "along": "step"})
    rows = [row("a-b", 1, 2.0) | {"kind": "c"}, row("a", 1, 2.0) | {"kind": "b-c"}]
    with pytest.raises(Explained, match=r"two cells of main\.arms are both called a-b-c"):
        curves("loss", metric, rows)


def test_the_name_of_the_ledger_s_numbers_is_taken(tmp_path: Path):
    with pytest.raises(Explained, match="verdicts: the ledger's numbers have this name"):
        registered(tmp_path, {"verdicts": ENTRY})


def test_every_verdict_is_counted_also_where_no_statement_has_it():
    claims = [{"key": "a", "verdict": "holds"}, {"key": "b", "verdict": "holds"}]
    shown = verdicts({"claims": claims})
    assert shown["count"] == {"holds": 2, "fails": 0, "undecided": 0}
    assert shown["statement"] == {"a": "holds", "b": "holds"}
