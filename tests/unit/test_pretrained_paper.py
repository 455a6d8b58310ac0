"""The paper on residual gain: LaTeX, macros, the page, and the manifest."""

import json
import re
import shutil
from pathlib import Path

import paper_pages
import pytest
import yaml
from depth_recipes import depth_grid
from jacobian_evidence import GRID
from latex_recipes import rows_of
from paper_pages import RECALL
from pretrained_claimed import DATA, REFERENCES, model, tables
from pretrained_evidence import MISSING, run, section, write_missing, write_model

from normscope.io.csvfile import write_csv
from normscope.studies.main.pages import FIGURES

ROOT = DATA.parent
LATEX = {"pretrained": 7 + 1, "norms": 1, "h25": 1, "twins": 1, "sensitivity": 5}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """The frame of small tables of all parts, with what it is made of."""
    root = paper_pages.write(tmp_path_factory.mktemp("paper") / "of")
    paper_pages.judge(root)
    paper_pages.collect(root)
    return root


def tex(place: Path, out: Path) -> Path:
    """Rule latex."""
    run("latex", ["--frame", place / "frame.json", "--out", out])
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
    rows = rows_of(text)[1:]
    assert any("textless" in row or "$<$" in row for row in rows)  # p of 1e-9
    assert not [row for row in rows if re.search(r"(?<![$])[<>]", row)]


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
    root = shutil.copytree(place, tmp_path / "of")
    write_csv(root / "pretrained" / "by_model.csv", tables(rows)["by_model"])
    paper_pages.collect(root)
    lines = (tex(root, tmp_path / "out") / "numbers.tex").read_text().splitlines()[1:]
    found = [re.fullmatch(r"\\newcommand\{\\([A-Za-z]+)\}\{.+\}", line) for line in lines]
    names = [name[1] for name in found if name]
    assert len(names) == len(lines)
    assert len({name.lower() for name in names}) == len(names)
    # exp 0.1 and 0.2
    of_models = [line for line in lines if re.search(r"LastGain\}\{.*1\.(105|221)\}+$", line)]
    assert len(of_models) == len(rows)


def test_the_page_has_the_pretrained_models_with_those_that_are_missing(place):
    page = paper_pages.print_page(place)
    assert "| opt-125m | OPT | LayerNorm, 12 blocks" in page
    assert "| gone | G | not measured: no network |" in page
    assert "| LayerNorm dampens: the last block of every model" in page
    for name in FIGURES:
        assert f"(figures/{name}.svg)" in page
        assert f"Caption of {name}." in page
    assert "{" not in page.partition("## Residual gain")[2]


def test_the_manifest_has_every_model_with_why_it_is_missing(tmp_path):
    write_model(tmp_path / "measured", "here")
    write_missing(tmp_path / "measured", "gone")
    of = RECALL.trained(), GRID.trained(), depth_grid().recipes()
    for folder, names in zip(("recall", "jacobian", "depth"), of, strict=True):
        for name in names:
            path = tmp_path / folder / name / "config.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"name": name}))
    run_config = tmp_path / "runs" / "layernorm-pre-1" / "config.json"
    run_config.parent.mkdir(parents=True)
    run_config.write_text("{}")
    (tmp_path / "meta.json").write_text("{}")
    config = {"recall": RECALL.model_dump(), "jacobian": GRID.model_dump()}
    config |= {"depth": depth_grid().model_dump()}
    config |= {"pretrained": section("here", "gone").model_dump(mode="json")}
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
