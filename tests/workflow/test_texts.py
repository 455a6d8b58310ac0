"""A second text: a protocol that names it is trained, measured and tabulated on it."""

import hashlib
import json
import math
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import Project, corpus

import normscope

CHARACTERS = "stuvwxyz \r\n"
RUN = {"protocol": "other", "arms": ["layernorm"], "placements": ["pre"]}


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    """The made project with a protocol on a second text, which has other characters."""
    project = made.copy(tmp_path / "project")
    text = corpus().translate(str.maketrans("abcdefgh", CHARACTERS[:8])).replace(" x", "\r\nx")
    (project.root / "other.txt").write_bytes(text.encode())
    digest = hashlib.sha256(text.encode()).hexdigest()
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    config["texts"]["second"] = {
        "sha256": digest,
        "sources": [{"kind": "path", "path": "other.txt"}],
    }
    main = config["main"]
    main["protocols"]["other"] = main["protocols"]["small"] | {"text": "second"}
    main["runs"].append(RUN | {"learning_rates": [0.003], "seeds": [1]})
    main["gain"]["protocols"].append("other")
    (project.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return project


def test_a_protocol_on_a_second_text(project: Project, made: Project):
    planned = project.planned("results/main/tables/runs.csv", "results/paper/manifest.json")
    tables = {"main_tables": 1, "manifest": 1}
    assert planned == {"text_second": 1, "main_train": 1, "main_probe": 1} | tables
    project.snakemake("main", "results/paper/manifest.json")
    results = project.root / "results"

    meta = json.loads((results / "dataset/second/meta.json").read_text())
    assert set(meta["characters"]) == set(CHARACTERS)
    manifest = json.loads((results / "paper/manifest.json").read_text())
    assert manifest["texts"] == {"second": meta}
    assert manifest["config"]["main"]["protocols"]["other"]["text"] == "second"

    model = normscope.load("main.other-layernorm-pre-0.003-1", results=results)
    assert model.get_submodule("token_embedding").weight.shape[0] == len(CHARACTERS)

    runs = pd.read_csv(results / "main/tables/runs.csv", keep_default_na=False, na_values=[""])
    other = runs[runs["protocol"] == "other"].set_index("arm")
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
