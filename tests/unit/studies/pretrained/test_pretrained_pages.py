"""Residual gain of pretrained models in tables: what they show, and what is missing."""

import math
from typing import Any

import pandas as pd
import pytest
from page_recipes import config, shown
from pretrained_claimed import REFERENCES, TWIN, cells, compared, frame, model, published, studies

from normscope.paper.markdown import pipe_table
from normscope.paper.section import declared_numbers, named
from normscope.paper.table import PageTable
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.measures import METRICS
from normscope.studies.pretrained.pages import (
    entropy_table,
    gain_table,
    h25_table,
    model_table,
    norm_table,
    section,
    sensitivity_table,
    twin_table,
)
from normscope.studies.pretrained.statistics import by_model
from normscope.studies.pretrained.tables import TABLES

NAN = math.nan
FACTS: dict[str, Any] = {"model": "opt-125m", "family": "OPT", "base": NAN, "class": "Made"}
FACTS |= {"norm": "LayerNorm", "n_layers": 12, "n_embd": 768, "n_heads": 12, "n_kv_heads": 12}
FACTS |= {"grouped_queries": False, "head_dim": 64, "rho": 0.1875, "rho_as_published": 0.1875}
FACTS |= {"parameters": 125239296, "stored": "F16", "computed": "fp32", "streamed": False}
FACTS |= {"device": "cpu", "threads": 2, "source": "hub facebook/opt-125m", "commit": "27dcfa7"}
FACTS |= {"tokenizer_adds_bos": True, "missing": NAN}
GONE = dict.fromkeys(FACTS, NAN) | {"model": "gone", "family": "G", "missing": "no network"}


def models(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(rows, FACTS)


def read(table: pd.DataFrame, folder) -> pd.DataFrame:
    """The table as the workflow reads it: columns with missing values hold floats."""
    table.to_csv(folder / "table.csv", index=False)
    return pd.read_csv(folder / "table.csv")


def is_whole(table: PageTable) -> bool:
    """No cell is empty or says nan."""
    return not any(cell == "" or "nan" in cell.lower() for row in table.texts() for cell in row)


def test_a_model_is_told_in_words():
    (row,) = shown(model_table(models(FACTS)))
    assert row == {
        "model": "opt-125m",
        "family": "OPT",
        "is": "LayerNorm, 12 blocks, width 768, 12 heads of 64, rho 0.1875; 125 million "
        "parameters, stored as F16, computed in fp32; tokenizer puts BOS; hub facebook/opt-125m, "
        "commit 27dcfa7",
    }
    changes = {"grouped_queries": True, "n_kv_heads": 4, "streamed": True, "commit": NAN}
    (row,) = shown(model_table(models(FACTS | changes | {"tokenizer_adds_bos": False})))
    assert "12 heads of 64, 4 for keys, rho" in row["is"]
    assert "computed in fp32, streamed; tokenizer puts no BOS" in row["is"]
    assert row["is"].endswith("hub facebook/opt-125m")


@pytest.mark.parametrize("reason", ["no network", "a | b", "||", "first line\nsecond line"])
def test_missing_models_are_named_with_their_reasons_among_the_others(tmp_path, reason):
    rows = models(GONE | {"missing": reason}, FACTS, GONE | {"model": "gated"})
    table = model_table(read(rows, tmp_path))
    assert table.cells(0) == ["gone", "opt-125m", "gated"]
    first, second, _ = (row["is"] for row in shown(table))
    assert first == f"not measured: {reason}"
    assert "12 blocks, width 768" in second
    assert "125 million" in second
    assert is_whole(table)
    assert len(pipe_table(table).splitlines()) == 2 + 3


def test_a_gain_is_as_published_then_corrected():
    one = {"mean": 1.25, "t": 3.841, "log_gain": math.log(1.2), "low": 0.0, "high": math.log(1.5)}
    rows = shown(gain_table(frame([*published(), model("a", 0.1) | one], model("", 0))))
    assert len(rows) == 7 + 1
    assert rows[-1] == {
        "study": "measured",
        "model": "a",
        "norm": "LayerNorm",
        "dtype": "fp32",
        "n prompts": "25",
        "mean": "1.2500",
        "sd": "0.050",
        "t against 1": "+3.84",
        "by the published rule": "REJECTED",
        "geometric mean": "1.2000",
        "interval": "[1.000, 1.500]",
        "reads": "above 1",
    }


@pytest.mark.parametrize("form", [gain_table, entropy_table])
def test_published_numbers_have_a_row_a_study_and_model_and_no_nan(form, tmp_path):
    table = form(read(studies()[1], tmp_path))
    last = REFERENCES[REFERENCES["metric"] == "last_gain"]
    keys = list(zip(last["experiment"], last["model"], strict=True))
    assert sorted(map(tuple, table.select("study", "model").texts())) == sorted(keys)
    assert is_whole(table)


def test_one_prompt_leaves_dashes(tmp_path):
    observations = pd.DataFrame(
        [["measured", "a", "A", "LayerNorm", "fp32", "Novel", "a b", 2, 1.5, 1.25]],
        columns="experiment model family norm dtype category prompt words entropy gain".split(),
    )
    table = read(by_model(observations, 0.95, 99), tmp_path)
    (row,) = shown(gain_table(table))
    assert (row["mean"], row["geometric mean"]) == ("1.2500", "1.2500")
    assert {row[k] for k in ("sd", "t against 1", "interval", "reads")} == {"–"}
    (row,) = shown(entropy_table(table))
    assert set(row.values()) == {"a", "measured", "–"}


def test_norms_are_a_row_a_comparison_and_unit_with_dashes_where_there_is_no_test():
    none = dict.fromkeys(("difference", "low", "high", "prompts", "p", "smallest"), NAN)
    one, other = shown(norm_table(frame([compared(), compared(**none)], compared())))
    assert (one["p"], one["difference of log-gains"]) == ("0.010", "+0.400")
    assert one["interval over prompts"] == "[+0.300, +0.500]"
    dashes = ("p", "difference of log-gains", "interval over prompts", "smallest p")
    assert {other[k] for k in dashes} == {"–"}


def test_twins_stand_with_their_factor():
    (row,) = shown(twin_table(frame([TWIN], TWIN)))
    assert (row["mean gains"], row["factor"]) == ("2.000 to 1.000", "0.500")
    assert (row["interval"], row["Holm p"]) == ("[0.250, 1.000]", "< 0.000001")


def test_h25_is_a_row_a_study_and_metric_without_nan(tmp_path):
    accuracy = h25.accuracy(h25.published_models(REFERENCES, 0.95), 0.95)
    table = h25_table(read(accuracy, tmp_path))
    assert len(table.rows) == len(accuracy)
    assert is_whole(table)
    (row,) = [row for row in shown(table) if row["study"] == "h25"]
    assert (row["models (families)"], row["right"]) == ("16 (7)", "7")
    assert (row["by the published rule"], row["share"]) == ("FALSIFIED", "0.44 [0.20, 0.70]")


def test_cells_of_sensitivity_have_a_dash_where_nothing_was_measured(tmp_path):
    table = frame([*cells("a"), *cells("b", bos=("off", "on"))], cells("")[0])
    lost = (table["model"] == "a") & (table["metric"] == "gain_with_final_norm")
    table.loc[lost, ["n", "log_gain", "low", "high", "reads"]] = NAN
    whole = sensitivity_table(read(table, tmp_path))
    assert len(whole.rows) == 2 * len(METRICS)
    assert is_whole(whole)
    rows = {row["gain"]: row for row in shown(whole) if row.pop("model") == "a"}
    assert {v for r in rows.values() for k, v in r.items() if k.startswith("BOS")} == {"–"}
    lost_row = rows["final norm / penultimate block"]
    assert {v for k, v in lost_row.items() if k != "gain"} == {"–"}
    assert rows["last block"]["no BOS, last"] == "1.11, above 1"  # exp 0.1 is 1.105


def test_a_section_has_every_table_also_where_nothing_was_measured():
    tables: dict[str, Any] = {"models": models(FACTS, GONE), "twins": frame([TWIN], TWIN)}
    tables |= {"by_model": frame([*published(), model("opt-125m", 0.1)], model("", 0))}
    tables |= {
        "by_norm": frame([compared()], compared()),
        "sensitivity": frame(cells("a"), cells("")[0]),
    }
    tables |= {"h25": h25.accuracy(h25.published_models(REFERENCES, 0.95), 0.95)}
    whole = config()
    part = section(whole.pretrained, tables, whole.settings)
    assert list(part.tables) == "models gains entropy norms twins h25 sensitivity".split()
    numbers = named(declared_numbers(TABLES["by_model"], tables["by_model"]))
    assert str(numbers["opt-125m measured last gain"]) == "1.1052"  # exp 0.1
    empty = {name: tables[name][:0] for name in ("models", "sensitivity", "twins")}
    none = section(whole.pretrained, tables | empty, whole.settings)
    assert [len(none.tables[name].rows) for name in empty] == [0, 0, 0]
    assert none.tables["gains"] == part.tables["gains"]
