"""What a user adds: a text and a figure. Norms in files are in ``test_card``."""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import Project, corpus, stats

import normscope

CHARACTERS = "stuvwxyz \r\n"
RUN = {"protocol": "other", "arms": ["layernorm"], "placements": ["pre"]}


@pytest.fixture
def with_text(made: Project, tmp_path: Path) -> Project:
    """The made project with a protocol on two texts, the second of which has other characters."""
    with_text = made.copy(tmp_path / "project")
    text = corpus().translate(str.maketrans("abcdefgh", CHARACTERS[:8])).replace(" x", "\r\nx")
    (with_text.root / "other.txt").write_bytes(text.encode())
    digest = hashlib.sha256(text.encode()).hexdigest()
    config = yaml.safe_load((with_text.root / "config.yaml").read_text())
    config["texts"]["second"] = {
        "sha256": digest,
        "sources": [{"kind": "path", "path": "other.txt"}],
    }
    main = config["main"]
    config["pilot"] = {"texts": ["austen"]}
    main["protocols"]["other"] = main["protocols"]["small"] | {"texts": ["second", "dataset"]}
    main["runs"].append(RUN | {"learning_rates": [0.003], "seeds": [1, 101]})
    main["gain"]["protocols"].append("other")
    (with_text.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return with_text


def test_a_protocol_on_two_texts(with_text: Project, made: Project):
    planned = with_text.planned("results/main/tables/runs.csv", "results/paper/manifest.json")
    tables = {"main_tables": 1, "manifest": 1}
    assert planned == {"text_second": 1, "main_train": 2, "main_probe": 2} | tables
    with_text.snakemake("main", "results/paper/manifest.json")
    results = with_text.root / "results"

    meta = json.loads((results / "dataset/second/meta.json").read_text())
    assert set(meta["characters"]) == set(CHARACTERS)
    manifest = json.loads((results / "paper/manifest.json").read_text())
    assert manifest["texts"] == {"second": meta}
    assert manifest["config"]["main"]["protocols"]["other"]["texts"] == ["second", "dataset"]

    model = normscope.load("main.other-layernorm-pre-0.003-1", results=results)
    assert model.get_submodule("token_embedding").weight.shape[0] == len(CHARACTERS)

    runs = pd.read_csv(results / "main/tables/runs.csv", keep_default_na=False, na_values=[""])
    other = runs[runs["protocol"] == "other"]
    assert dict(zip(other["seed"], other["text"], strict=True)) == {1: "second", 101: "dataset"}
    other = other[other["text"] == "second"].set_index("arm")
    # the ceiling of losses is that of the second text: the first has 9 characters
    ceiling = other["val_loss"].clip(upper=math.log(len(CHARACTERS)))
    assert list(other["capped_loss"]) == pytest.approx(list(ceiling))
    assert other["gain_first"].notna().all()
    # models of the default text are what they were
    before = pd.read_csv(
        made.root / "results/main/tables/runs.csv", keep_default_na=False, na_values=[""]
    )
    pd.testing.assert_frame_equal(runs[runs["protocol"] != "other"], before)
    corpora = pd.read_csv(results / "main/tables/corpus.csv").set_index("text")["characters"]
    assert corpora.to_dict() == {"dataset": 9, "second": len(CHARACTERS)}


STUDY = "src/normscope/studies/main"
ENTRY = """

worst:
  title: The worst run
  caption: "The greatest loss, {of} all: 'shown' as a \\"point\\"."
  tables: [runs, recall.runs]
  params: {seeds: {config: recall.published.seeds}}
"""
DRAWING = """
from normscope.pages import style


def draw(tables, look, seeds):
    figure, axes = style.canvas(look.width_mm, 40, 1, 1)
    axes[0, 0].plot(tables["runs"]["val_loss"].max(), len(tables["recall.runs"]), "o")
    return figure, f"n: {seeds}."
"""


@pytest.fixture
def with_figure(made: Project) -> Iterator[Project]:
    """The made project with an additional figure."""
    registry = (made.root / STUDY / "figures.yaml").read_text()
    drawing = made.root / STUDY / "figures/worst.py"
    drawing.write_text(DRAWING)
    with made.edited(f"{STUDY}/figures.yaml", registry, registry + ENTRY):
        yield made
    drawing.unlink()


def test_a_new_figure_is_an_entry_and_a_drawing(with_figure: Project):
    plan = with_figure.snakemake("-n")
    assert stats(plan).keys() == {"figure_worst", "manifest", "render"}
    (inputs,) = re.findall(r"rule figure_worst:\n +input: (.*)", plan)
    tables = [f"results/{study}/tables/runs.csv" for study in ("main", "recall")]
    assert [path for path in inputs.split(", ") if path.endswith(".csv")] == tables
    with_figure.snakemake("results/paper/figures/worst.svg")
    caption = with_figure.root / "results/paper/figures/worst.txt"
    assert caption.read_text() == ("The greatest loss, {of} all: 'shown' as a \"point\". n: [1].\n")


def test_a_wrong_entry_stops_before_any_job(with_figure: Project):
    with with_figure.edited(f"{STUDY}/figures.yaml", "[runs, recall.runs]", "[rums]"):
        output = with_figure.snakemake("-n", ok=False)
    assert "worst.tables" in output
    assert "mean runs?" in output
    assert "Traceback" not in output
    assert "Job stats" not in output
