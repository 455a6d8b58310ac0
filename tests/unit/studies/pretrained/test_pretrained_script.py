"""Tables and JSON document of made-up measurements of pretrained models."""

import gc
import json
import math
import runpy
import sys
import zlib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from processes import ROOT, SCRIPTS, flags
from recall_recipes import by

from normscope.hub.prompts import read_prompts
from normscope.io.csvfile import write_csv
from normscope.io.files import write_json
from normscope.io.tables import Tables
from normscope.measure.residual import site_names
from normscope.statistics.summary import select
from normscope.studies.pretrained.grid import Pretrained
from normscope.studies.pretrained.measures import (
    GAIN_COLUMNS,
    INSIDE,
    INSIDE_COLUMNS,
    KEY,
    METRICS,
    NORM_COLUMNS,
    POSITIONS,
    PREDICTION,
    PROBED,
)
from normscope.studies.pretrained.statistics import read_measurements
from normscope.studies.pretrained.tables import TABLES
from normscope.studies.study import Settings

DATA = ROOT / "data"
PROMPTS = [p for p in read_prompts(DATA / "prompts.yaml") if p.set == "benchmark"]
DOCUMENT = "residual_gain.json"
MISSING = "no space left: remove | something,\nor wait"
FACTS = {"class": "Made", "norm": "LayerNorm", "n_layers": 3, "n_embd": 8, "n_heads": 2}
FACTS |= {"n_kv_heads": 2, "grouped_queries": False, "head_dim": 4, "rho": 0.5}
FACTS |= {"rho_as_published": 0.5, "parameters": 134515008, "stored": "F32", "computed": "fp32"}
FACTS |= {"streamed": False, "device": "cpu", "threads": 1, "source": "directory made"}
FACTS |= {"commit": None, "tokenizer_adds_bos": False, "missing": None}
# predicted tokens that a CSV file may lose
TOKENS = ("NA", "null", "nan", "\n", ",", '"', " the", "", "\u2028", "1")


def write_model(folder: Path, bos: tuple[str, ...] = ("off",), **facts: Any) -> None:
    """The files that the probe of a model writes, with random norms."""
    rng = np.random.default_rng(zlib.crc32(folder.name.encode()))
    keys = pd.DataFrame(product([p.name for p in PROMPTS], bos, POSITIONS), columns=KEY)
    gains = keys.assign(tokens=7, entropy=rng.uniform(1, 5, len(keys)), top_prob=0.5)
    gains["entropy_as_published"] = gains["entropy"]
    gains["top_token"] = [TOKENS[i % len(TOKENS)] for i in range(len(gains))]
    gains.loc[gains["positions"] != "last", list(PREDICTION)] = np.nan
    gains[list(METRICS)] = rng.lognormal(0.2, 0.1, (len(gains), len(METRICS)))
    sites = pd.DataFrame(enumerate(site_names(3, final_norm=True)), columns=["depth", "site"])
    norms = keys.merge(sites, how="cross")
    norms["log_gain"] = rng.normal(0.2, 0.1, len(norms))
    norms["norm"] = np.exp(norms["log_gain"])
    norms.loc[norms["depth"] == 0, "log_gain"] = np.nan
    write_csv(folder / "gains.csv", gains[GAIN_COLUMNS])
    write_csv(folder / "norms.csv", norms[NORM_COLUMNS])
    inside = norms.query("positions == 'last' and depth in (1, 2, 3)").copy()
    inside[list(INSIDE)] = rng.uniform(0, 1, (len(inside), len(INSIDE)))
    inside.loc[:, "sink"] = inside["sink"].where(inside["depth"] != 2)  # one without attention
    write_csv(folder / "inside.csv", inside[INSIDE_COLUMNS])
    write_json(folder / "model.json", FACTS | facts)


def write_missing(folder: Path) -> None:
    """The files of a model that could not be measured."""
    for name, columns in PROBED.items():
        write_csv(folder / f"{name}.csv", pd.DataFrame(columns=columns))
    write_json(folder / "model.json", {"missing": MISSING})


def study(*models: str, **bases: str) -> Pretrained:
    """The configuration of models by their names; ``bases`` are models with their base."""
    source = {"kind": "directory", "path": "made"}
    rows = [
        {"name": name, "family": f"F {name[0]}", "base": base, "source": source}
        for name, base in (dict.fromkeys(models) | bases).items()
    ]
    values = {"models": rows, "memory_gb": 1, "threads": 1, "resamples": 99}
    return Pretrained.model_validate(values)


def run(name: str, arguments: list[str]) -> None:
    """A script of the project in this process."""
    script = SCRIPTS / f"{name}.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *arguments])
        runpy.run_path(str(script), run_name="__main__")


def collect(place: Path, models: Pretrained, out: str = "out") -> Path:
    """Make the tables and the document of the models in ``place``; returns their folder."""
    recipe = models.tabulation(Settings(level=0.95, baseline=[]))
    files = json.dumps({name: str(DATA / name) for name in Pretrained.STAGES.files})
    words = flags(recipe=recipe, models=place, probes=place, out=place / out, files=files)
    gc.freeze()  # statsmodels collects garbage at every correction, longer than all the rest
    run("make_tables", ["pretrained", *words])
    run("residual_gain", flags(tables=place / out, out=place / out / DOCUMENT))
    gc.unfreeze()
    return place / out


def results(folder: Path) -> Any:
    """The document, which must be JSON without NaN and infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads((folder / DOCUMENT).read_text(), parse_constant=refuse)


TWO = study("base", "gone", tuned="base")


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """Results of a base model with BOS rows, a tuned one without, and one that is missing."""
    place = tmp_path_factory.mktemp("two")
    write_model(place / "base", ("on", "off"), tokenizer_adds_bos=True)
    write_model(place / "tuned", tokenizer_adds_bos=None, grouped_queries=True, streamed=True)
    write_missing(place / "gone")
    return collect(place, TWO)


@pytest.fixture(scope="module", params=[["gone"], []], ids=["missing", "empty"])
def none(request, tmp_path_factory) -> Path:
    """Results without a measured model."""
    place = tmp_path_factory.mktemp("none")
    for name in request.param:
        write_missing(place / name)
    return collect(place, study(*request.param))


def tables(folder: Path) -> Mapping[str, pd.DataFrame]:
    """The tables, which are compared with their declarations as they are read."""
    return Tables(folder, TABLES)


def test_two_runs_write_the_same_bytes(two):
    again = collect(two.parent, TWO, "again")
    first, second = ({p.name: p.read_bytes() for p in d.glob("[!.]*")} for d in (two, again))
    assert set(first) == {f"{name}.csv" for name in TABLES} | {DOCUMENT}
    assert first == second


def test_without_a_measured_model_the_published_rows_are_left(none):
    for name, table in tables(none).items():
        assert "measured" not in table.get("experiment", pd.Series(dtype=str)).tolist()
        assert (
            table.empty == (name in ("gains", "norms", "sensitivity", "inside")) or name == "models"
        )
    document = results(none)
    assert (document["results"], document["h25_verdict"]) == ({}, "no data")


def test_a_missing_model_is_named_with_its_reason(two):
    assert "gone" not in results(two)["results"]
    assert by(tables(two)["models"], "model")["gone"]["missing"] == MISSING


def test_statistics_are_of_the_last_token_with_bos_as_the_tokenizer_has_it(two):
    """The tokenizer of the base model adds BOS, that of the tuned one does not."""
    rows = by(tables(two)["by_model"].query("experiment == 'measured'"), "model")
    benchmark = [p.name for p in PROMPTS]
    logs = {}
    for model, bos in (("base", "on"), ("tuned", "off")):
        gains = pd.read_csv(two.parent / model / "gains.csv").set_index("prompt").loc[benchmark]
        gains = gains[(gains["bos"] == bos) & (gains["positions"] == "last")]["last_gain"]
        logs[model] = np.log(gains)
        assert rows[model]["n"] == len(gains) == 25
        assert rows[model]["log_gain"] == pytest.approx(logs[model].mean(), abs=1e-8)
        assert rows[model]["mean"] == pytest.approx(gains.mean(), abs=1e-8)


def test_measured_models_take_part_in_the_comparison_of_norms(two):
    """5 published LayerNorm models of 3 families, and the base model here."""
    rows = by(tables(two)["by_norm"], "comparison", "unit")
    counts = {key: (row["layernorm"], row["rmsnorm"]) for key, row in rows.items()}
    assert counts["measured, else published", "model"] == (5 + 1, 3)
    assert counts["measured, else published", "family"] == (3 + 1, 3)
    assert counts["published, all eight", "model"] == (5, 3)
    assert counts["measured", "model"] == (1, 0)


@pytest.mark.parametrize("token", ["\r", "\r\n", *TOKENS])
def test_a_token_is_read_as_it_was_written(token, tmp_path):
    row = {"prompt": "p", "top_token": token, "top_prob": 0.5}
    write_csv(tmp_path / "gains.csv", pd.DataFrame([row], columns=GAIN_COLUMNS))
    gains = read_measurements(tmp_path / "gains.csv")
    assert gains[list(row)].to_dict("records") == [row]
    assert math.isnan(gains["last_gain"].item())


def test_the_document_has_the_means_over_prompts_that_the_notebook_saves(two):
    document = results(two)
    assert (two / DOCUMENT).stat().st_size < 20_000
    assert list(document["results"]) == ["base", "tuned"]
    assert document["prompts"] == [p.text for p in PROMPTS]
    for model, bos in (("base", "on"), ("tuned", "off")):
        found = document["results"][model]
        gains, norms = (
            select(pd.read_csv(two.parent / model / f"{name}.csv"), bos=bos, positions="last")
            .set_index("prompt")
            .loc[[p.name for p in PROMPTS]]
            for name in ("gains", "norms")
        )
        values = gains["gain_hidden_states"].to_numpy()
        assert found["gain_no_ln_mean"] == pytest.approx(values.mean(), rel=1e-5)
        assert found["gain_no_ln_std"] == pytest.approx(values.std(), rel=1e-5)
        assert found["is_dampening_no_ln"] == (values.mean() < 1)
        layers = norms.assign(gain=np.exp(norms["log_gain"])).groupby("depth")["gain"].mean()[1:]
        assert found["all_layer_gains"] == pytest.approx(layers.tolist(), rel=1e-5)
        assert (found["n_hidden_states"], found["rho"]) == (4, 0.5)
    # H25 predicts a gain below 1 of both, at a rho of 0.5
    right = sum(one["is_dampening_no_ln"] for one in document["results"].values())
    assert document["h25_accuracy"] == 50 * right
