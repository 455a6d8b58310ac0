"""Tables and document of made-up measurements of pretrained models, and what is missing."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pretrained_evidence import (
    DOCUMENT,
    MISSING,
    PROMPTS,
    SHAPE,
    TOKENS,
    collect,
    grid,
    log_norms,
    strict,
    write_missing,
    write_model,
    write_two_and_a_missing_one,
)
from recall_recipes import by

from normscope.io.csvfile import write_csv
from normscope.studies.pretrained.grid import PretrainedTables
from normscope.studies.pretrained.measures import GAIN_COLUMNS, METRICS, NORM_COLUMNS, POSITIONS
from normscope.studies.pretrained.statistics import SET, read_measurements

TABLES = (
    "models gains norms observations by_model by_category by_norm twins h25_models h25 sensitivity "
    "layers references"
).split()
BENCHMARK = [p for p in PROMPTS if p.set == SET]


class Made:
    """What the script wrote."""

    def __init__(self, place: Path, write: Callable[[Path], PretrainedTables]) -> None:
        self.measured, self.out = place / "measured", place / "out"
        self.grid = write(self.measured)
        collect(self.measured, self.grid, self.out)

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.out / f"{name}.csv")

    @property
    def results(self) -> Any:
        return strict(self.out / DOCUMENT)


def none_measured(place: Path) -> PretrainedTables:
    write_missing(place, "gone")
    return grid("gone")


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Made:
    return Made(tmp_path_factory.mktemp("two"), write_two_and_a_missing_one)


@pytest.fixture(scope="module")
def none(tmp_path_factory) -> Made:
    return Made(tmp_path_factory.mktemp("none"), none_measured)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Made:
    """A configuration without models."""
    return Made(tmp_path_factory.mktemp("empty"), lambda place: grid())


def test_two_runs_write_the_same_bytes(two, tmp_path):
    collect(two.measured, two.grid, tmp_path)
    first, again = ({p.name: p.read_bytes() for p in d.glob("[!.]*")} for d in (two.out, tmp_path))
    assert set(first) == {f"{name}.csv" for name in TABLES} | {DOCUMENT}
    assert first == again


@pytest.mark.parametrize("scene", ["none", "empty"])
@pytest.mark.parametrize("name", TABLES)
def test_without_a_measured_model_every_table_has_its_header(name, scene, two, request):
    headed, full = request.getfixturevalue(scene).table(name), two.table(name)
    assert set(headed.columns) == set(full.columns)
    if name in ("gains", "norms", "sensitivity", "layers"):
        assert headed.empty
    assert "measured" not in headed.get("experiment", pd.Series(dtype=str)).tolist()


def test_what_is_missing_is_named_with_its_reason(two, none):
    for made, n in ((two, 2), (none, 0)):
        (row,) = [r for r in made.results["not_measured"] if r["model"] == "gone"]
        assert (row["missing"], row["family"]) == (MISSING, "F g")
        assert made.results["n_models"] == n
        models = by(made.table("models"), "model")
        assert models["gone"]["missing"] == MISSING
    assert two.results["n_prompts"] == len(PROMPTS)
    assert [m["model"] for m in two.results["models"]] == ["a-base", "a-tuned"]


def test_statistics_are_of_the_last_token_with_bos_as_the_tokenizer_has_it(two):
    """The base's tokenizer adds BOS, the tuned one's adds neither."""
    rows = by(two.table("by_model").query("experiment == 'measured'"), "model")
    for model, bos in (("a-base", "on"), ("a-tuned", "off")):
        logs = [log_norms(model, p.name, bos, "last", SHAPE["n_layers"]) for p in BENCHMARK]
        steps = np.diff(logs)[:, -2]
        row = rows[model]
        assert row["n"] == 25
        assert row["log_gain"] == pytest.approx(steps.mean(), abs=1e-8)
        assert row["mean"] == pytest.approx(np.exp(steps).mean(), abs=1e-8)
    (pair,) = two.table("twins").query("experiment == 'measured'").to_dict("records")
    assert (pair["base"], pair["tuned"], pair["n"]) == ("a-base", "a-tuned", 25)
    ratio = rows["a-tuned"]["log_gain"] - rows["a-base"]["log_gain"]
    assert pair["log_ratio"] == pytest.approx(ratio, abs=1e-7)


def test_measured_models_take_part_in_the_comparison_of_norms(two):
    rows = by(two.table("by_norm"), "comparison", "unit")
    counts = {key: (row["layernorm"], row["rmsnorm"]) for key, row in rows.items()}
    # 5 published LayerNorm models of 3 families, and one here: the other is tuned from it
    assert counts["measured, else published", "model"] == (5 + 1, 3)
    assert counts["measured, else published", "family"] == (3 + 1, 3)
    assert counts["published, all eight", "model"] == (5, 3)
    assert counts["measured", "model"] == (1, 0)
    assert rows["measured, else published", "model"]["prompts"] == 25


def test_a_model_stands_with_the_one_that_it_was_tuned_from(two, none):
    bases = two.table("by_model").query("experiment == 'measured'").set_index("model")["base"]
    assert bases["a-tuned"] == "a-base"
    assert math.isnan(bases["a-base"])
    twins = none.table("by_model").query("experiment == 'twins'")
    tuned = twins["base"].notna()
    assert tuned.sum() == len(none.table("twins"))
    assert not set(twins.loc[tuned, "model"]) & set(twins["base"])
    others = none.table("by_model").query("experiment != 'twins'")
    assert others["base"].isna().all()


def test_sensitivity_has_the_cells_that_were_measured(two):
    table = two.table("sensitivity")
    cells = {(r["model"], r["bos"]) for r in table.to_dict("records")}
    assert cells == {("a-base", "on"), ("a-base", "off"), ("a-tuned", "off")}
    assert len(table) == 3 * len(POSITIONS) * len(METRICS)
    usual = {(r["model"], r["bos"]) for r in table[table["usual"]].to_dict("records")}
    assert usual == {("a-base", "on"), ("a-tuned", "off")}


def test_predicted_tokens_survive(two):
    rows = [m for m in two.results["measurements"] if m["positions"] == "last"]
    by_prompt = {(m["model"], m["bos"], m["prompt"]): m for m in rows}
    for i, prompt in enumerate(PROMPTS):
        row = by_prompt["a-tuned", "off", prompt.name]
        assert row["top_token"] == TOKENS[i % len(TOKENS)]
        assert (row["text"], row["words"]) == (prompt.text, prompt.words)
        assert row["entropy"] == pytest.approx(1 + 0.1 * i)
    again = read_measurements(two.out / "gains.csv")
    assert set(again.loc[again["positions"] == "last", "top_token"]) == set(TOKENS)
    assert len(again) == 3 * 3 * len(PROMPTS)


@pytest.mark.parametrize("token", ["\r", "\r\n", *TOKENS])
def test_a_token_is_read_as_it_was_written(token, tmp_path):
    table = pd.DataFrame(
        [{"prompt": "p", "top_token": token, "top_prob": 0.5}], columns=GAIN_COLUMNS
    )
    write_csv(tmp_path / "gains.csv", table)
    gains = read_measurements(tmp_path / "gains.csv")
    assert gains[["prompt", "top_token", "top_prob"]].to_numpy().tolist() == [["p", token, 0.5]]


def test_a_norm_that_is_missing_is_read_as_a_number(tmp_path):
    table = pd.DataFrame([{"norm": 1.5}, {"log_gain": 0.1}], columns=NORM_COLUMNS)
    write_csv(tmp_path / "norms.csv", table)
    norms = read_measurements(tmp_path / "norms.csv")
    assert norms["norm"].tolist() == pytest.approx([1.5, np.nan], nan_ok=True)
    assert norms["norm"].dtype == float


def test_results_are_strict_json_of_what_the_tables_say(two, none, empty):
    for made in (two, none, empty):
        document = made.results
        assert len(document["statistics_as_published"]) == len(made.table("by_model"))
        assert len(document["h25"]) == len(made.table("h25"))
        assert len(document["published_validation"]) == 7
    # entropy is of the last token alone
    first = [m for m in two.results["measurements"] if m["positions"] == "first"]
    assert {m["entropy"] for m in first} == {None}
    assert set(two.results["sites"]) == {"a-base", "a-tuned"}
    assert none.results["hypothesis_as_published"]["layernorm_dampening"] == "no data"
    assert two.results["hypothesis_as_published"]["layernorm_dampening"] == "REJECTED"


def test_a_model_without_a_final_norm_is_in_no_comparison_of_norms(tmp_path):
    def write(place: Path) -> PretrainedTables:
        write_model(place, "bare", "none")
        return grid("bare")

    made = Made(tmp_path, write)
    rows = by(made.table("by_norm"), "comparison", "unit")
    assert (rows["measured", "model"]["layernorm"], rows["measured", "model"]["rmsnorm"]) == (0, 0)
    table = made.table("sensitivity")
    assert table.loc[table["metric"] == "gain_with_final_norm", "log_gain"].isna().all()
    assert table.loc[table["metric"] == "last_gain", "log_gain"].notna().all()
    assert "final_norm" not in made.table("layers")["site"].tolist()


def test_a_damaged_folder_is_an_error_that_names_it(tmp_path):
    write_model(tmp_path / "measured", "half")
    path = tmp_path / "measured" / "half" / "model.json"
    facts = json.loads(path.read_text())
    del facts["rho"]
    path.write_text(json.dumps(facts))
    with pytest.raises(SystemExit, match=r"half/model\.json is damaged.*'rho'.*remove"):
        collect(tmp_path / "measured", grid("half"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
