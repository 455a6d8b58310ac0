"""Scripts of the paper on residual gain: LaTeX that TeX takes, macros, the page, the manifest."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import depth_pages
import pandas as pd
import pytest
import yaml
from depth_recipes import depth_grid
from jacobian_evidence import GRID
from latex_recipes import GAINS, rows_of
from pretrained_claimed import DATA, REFERENCES, model, published, tables
from pretrained_evidence import MISSING, grid, run, write_missing, write_model
from test_jacobian_section import tables as of_backward
from test_jacobian_summary import C, P
from test_pretrained_summary import FACTS, GONE, gains_of_runs, models, runs
from test_recall_claims import cells, recall
from test_recall_summary import NO_BEST, NO_FACTORS
from test_summary import row as arm_row

from normscope.csvfile import write_csv
from normscope.recipe import Model, Training

ROOT = DATA.parent
LATEX = {"pretrained": 7 + 1, "norms": 1, "h25": 1, "twins": 1, "sensitivity": 5}
FIGURES = (
    "loss curves gain notebook decisive slice factors sweep jacobian surrogates residual "
    "comparison final_norm blocks sensitivity beside signals spectra trainability textbook"
).split()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """The tables of all parts, as the workflow has them."""
    root = tmp_path_factory.mktemp("paper")
    of = {"arms": pd.DataFrame([arm_row(val_loss=1.9)]), "gains": pd.DataFrame([GAINS])}
    of |= {"cells": cells({}), "best": NO_BEST, "factors": NO_FACTORS, "stream": gains_of_runs(6)}
    of |= {"runs": runs(6).assign(val_loss=1.9, val_loss_window_sd=0.2)}
    of |= {f"jacobian/{name}": table for name, table in of_backward().items()}
    of_models = tables([*published(), model("opt-125m", 0.1)])
    of |= {f"pretrained/{name}": table for name, table in of_models.items()}
    of |= {"pretrained/models": models(FACTS, GONE)}
    for name, table in of.items():
        write_csv(root / f"{name}.csv", table)
    for name in FIGURES:
        (root / f"{name}.txt").write_text(f"Caption of {name}.\n")
    depth_pages.write(root)
    return root


def files(place: Path, *names: str) -> list[object]:
    return [word for name in names for word in (f"--{name}", place / f"{name}.csv")]


def tex(place: Path, out: Path, of_models: Path | None = None) -> Path:
    """Rule latex."""
    words = files(place, "arms", "gains", "cells", "factors")
    words += ["--jacobian", place / "jacobian", "--pretrained", of_models or place / "pretrained"]
    words += ["--depth", place / "depth", "--textbook", place / "textbook"]
    run("latex", [*words, "--published", P, "--corrected", C, "--out", out])
    return out


@pytest.fixture(scope="module")
def out(place, tmp_path_factory) -> Path:
    return tex(place, tmp_path_factory.mktemp("tex"))


def test_latex_writes_five_tables_of_pretrained_models(out):
    for name, n in LATEX.items():
        rows = rows_of((out / "tables" / f"{name}.tex").read_text())
        assert len(rows) == 1 + n, name
        assert not [row for row in rows if re.search(r"(?<!\\)[_%#]|nan", row)]
    text = (out / "tables" / "twins.tex").read_text()
    assert "2.000 to 1.000" in text
    assert "opt-125m" in (out / "tables" / "pretrained.tex").read_text()


def test_tex_prints_less_than_as_it_is_written(out):
    """In text, the default encoding of TeX has an inverted exclamation mark in its place."""
    text = (out / "tables" / "twins.tex").read_text()
    assert not re.search(r"(?<![$])[<>]", text)


def names_of_the_hub() -> list[str]:
    raw = yaml.safe_load((ROOT / "config" / "pretrained.yaml").read_text())
    return [m["name"] for m in raw["pretrained"]["models"]]


def test_macros_of_all_models_have_letters_only_and_are_told_apart(place, tmp_path):
    """All published ones, in every study, and those of the hub, measured here."""
    keys = REFERENCES.dropna(subset="model")[["experiment", "model"]].drop_duplicates()
    rows = [
        model(name, 0.1) | {"experiment": study} for study, name in keys.itertuples(index=False)
    ]
    rows += [model(name, 0.2) for name in names_of_the_hub()]
    shutil.copytree(place / "pretrained", tmp_path / "pretrained")
    write_csv(tmp_path / "pretrained" / "by_model.csv", tables(rows)["by_model"])
    out = tex(place, tmp_path / "out", tmp_path / "pretrained")
    lines = (out / "numbers.tex").read_text().splitlines()
    found = [re.fullmatch(r"\\newcommand\{\\([A-Za-z]+)\}\{[^{}]+\}", line) for line in lines]
    names = [name[1] for name in found if name]
    assert len(names) == len(lines)
    assert len({name.lower() for name in names}) == len(names)
    of_models = [line for line in lines if re.search(r"LastGain\}\{1\.(105|221)\}$", line)]
    assert len(of_models) == len(rows)


def test_the_page_has_the_pretrained_models_with_those_that_are_missing(place, tmp_path):
    config = json.loads((DATA / "nanogpt_cpu.json").read_text())
    of_model = Model.model_validate(config["model"]).model_dump()
    training = config["training"] | {"eval_every": 1, "precision": "fp32"}
    training = Training.model_validate(training | missing_of(training)).model_dump()
    text = json.dumps({"model": of_model, "training": training})
    (tmp_path / "config.json").write_text(text)
    meta = {"sha256": {"train.bin": "0"}, "vocab_size": 65, "train_tokens": 9, "val_tokens": 2}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    words = files(place, "runs", "arms", "gains", "cells", "best", "factors", "stream")
    words += ["--published", DATA / "published.csv", "--references", DATA / "nanogpt_cpu.json"]
    words += ["--references-of-gain", DATA / "reference_gains.csv", "--figures", place]
    words += ["--template", ROOT / "workflow" / "report" / "summary.md"]
    words += ["--dataset", tmp_path / "meta.json", "--config", tmp_path / "config.json"]
    words += ["--recall", recall().model_dump_json(), "--grid", GRID.model_dump_json()]
    words += ["--jacobian", place / "jacobian", "--pretrained", place / "pretrained"]
    words += ["--depth", place / "depth", "--textbook", place / "textbook"]
    words += ["--depth-grid", depth_pages.grid()]
    words += ["--baseline", "layernorm-pre", "--level", 0.95, "--out", tmp_path / "summary.md"]
    run("summary", words)
    page = (tmp_path / "summary.md").read_text()
    assert "| opt-125m | OPT | LayerNorm, 12 blocks" in page
    assert "| gone | G | not measured: no network |" in page
    assert "| LayerNorm dampens: the last block of every model" in page
    for name in FIGURES:
        assert f"(figures/{name}.svg)" in page
        assert f"Caption of {name}." in page
    assert "{" not in page.partition("## Residual gain")[2]


def missing_of(training: dict[str, Any]) -> dict[str, Any]:
    """Values for what a training needs beside the published settings."""
    fields = Training.model_fields.items()
    return {name: 1 for name, field in fields if field.is_required() and name not in training}


def test_the_manifest_has_every_model_with_why_it_is_missing(tmp_path):
    write_model(tmp_path / "measured", "here")
    write_missing(tmp_path / "measured", "gone")
    of = recall().trained(), GRID.trained(), depth_grid().recipes()
    for folder, names in zip(("recall", "jacobian", "depth"), of, strict=True):
        for name in names:
            path = tmp_path / folder / name / "config.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"name": name}))
    run_config = tmp_path / "runs" / "layernorm-pre-1" / "config.json"
    run_config.parent.mkdir(parents=True)
    run_config.write_text("{}")
    (tmp_path / "meta.json").write_text("{}")
    config = {"recall": recall().model_dump(), "jacobian": GRID.model_dump()}
    config |= {"depth": depth_grid().model_dump()}
    config |= {"pretrained": json.loads(grid("here", "gone"))}
    words = [run_config, "--recall", tmp_path / "recall", "--jacobian", tmp_path / "jacobian"]
    words += ["--depth", tmp_path / "depth"]
    words += ["--pretrained", tmp_path / "measured", "--config", json.dumps(config)]
    words += ["--dataset", tmp_path / "meta.json", "--sources", DATA / "reference_gains.csv"]
    run("manifest", [*words, "--out", tmp_path / "manifest.json"])
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert found["pretrained"]["gone"] == {"missing": MISSING}
    assert found["pretrained"]["here"]["parameters"] == 134515008
    assert found["pretrained"]["here"]["transformers"] == "5"
    assert set(found["pretrained"]) == {"here", "gone"}
    assert set(found["runs"]) == {"layernorm-pre-1", *of[0], *of[1], *of[2]}
