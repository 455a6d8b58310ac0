"""Results of a run are kept, its models are retrained, and the page of another run shows them."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from project import ROOT, Project

from normscope.verdicts.verdict import read

STUDIES = ["norms", "main", "recall", "jacobian", "depth", "textbook", "pretrained"]


def script(made: Project, name: str, *flags: object, ok: bool = True) -> str:
    """Run a script of the made project and return its output."""
    words = ("env", "PYTHONPATH=src", "python", f"scripts/{name}.py", *map(str, flags))
    return made.run(*words, ok=ok)


@pytest.fixture(scope="module")
def kept(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of the made project's run."""
    folder = tmp_path_factory.mktemp("kept") / "evidence"
    script(made, "evidence", "--name", "config.yaml", "--out", folder)
    return folder


def verified(made: Project, evidence: Path, *, ok: bool) -> str:
    """The output of verify.py for one model."""
    return script(made, "verify", "--evidence", evidence, "--share", 0.001, ok=ok)


def test_a_run_is_kept_with_a_row_for_every_model(made: Project, kept: Path):
    run = json.loads((kept / "run.json").read_text())
    assert run["configuration"] == "config.yaml"
    assert run["studies"].keys() == set(STUDIES)
    assert sum(one["core_hours"] for one in run["studies"].values()) > 0
    paper = made.root / "results/paper"
    one, other = (read(at / "claims.json").verdicts for at in (kept, paper))  # frozen in one alone
    assert [v.results for v in one] == [v.results for v in other]
    manifests = [json.loads((at / "manifest.json").read_text()) for at in (kept, paper)]
    for key in ("config", "studies", "dataset", "texts", "packages"):
        assert manifests[0][key] == manifests[1][key]
    models = pd.read_csv(kept / "models.csv")
    sums = (made.root / "results").glob("*/models/*/metrics.csv")
    assert len(models) == sum(len(pd.read_csv(path)) for path in sums)
    assert not models.duplicated(["study", "job", "seed"]).any()
    figures = {path.name for path in (kept / "figures").iterdir()}
    assert "loss.svg" in figures


def test_a_study_alone_is_kept_and_statements_are_judged_from_all_tables(
    made: Project, kept: Path, tmp_path: Path
):
    """The evidence of a run with one study of another run in it becomes that of the run again."""
    copy = shutil.copytree(kept, tmp_path / "evidence")
    models = pd.read_csv(copy / "models.csv", dtype=str)
    models[models["study"] != "recall"].to_csv(copy / "models.csv", index=False)
    shutil.rmtree(copy / "recall")
    for file in ("claims.json", "figures/decisive.svg"):
        (copy / file).unlink()
    script(made, "evidence", "recall", "--name", "config.yaml", "--out", copy)
    now, before = (json.loads((folder / "manifest.json").read_text()) for folder in (copy, kept))
    ledgers = [json.loads((folder / "claims.json").read_text()) for folder in (copy, kept)]
    assert ledgers[0] == ledgers[1]
    assert now["config"] == before["config"]
    assert now["studies"]["recall"] == before["studies"]["recall"]
    assert now["studies"]["main"].pop("origin")["sources_sha256"] == before["sources_sha256"]
    assert now["studies"]["main"] == before["studies"]["main"]
    assert {(path.name, path.read_bytes()) for path in copy.glob("*/*")} == {
        (path.name, path.read_bytes()) for path in kept.glob("*/*")
    }
    assert (copy / "models.csv").read_text() == (kept / "models.csv").read_text()
    assert (copy / "run.json").read_text() == (kept / "run.json").read_text()


def test_models_trained_again_end_where_they_did(made: Project, kept: Path):
    said = verified(made, kept, ok=True)
    assert "differs" not in said
    assert "changed since" not in said
    models = pd.read_csv(kept / "models.csv")
    models.assign(val_loss=models["val_loss"] + 100).to_csv(kept / "models.csv", index=False)
    assert "differs" in verified(made, kept, ok=False)
    models.to_csv(kept / "models.csv", index=False)


def test_the_page_of_another_run_says_that_it_is_one(made: Project):
    """The made project contains the evidence of the real project next to its tiny run."""
    text = (made.root / "results/paper/summary.md").read_text()
    run = json.loads((ROOT / "evidence/run.json").read_text())
    assert "their results are those of the evidence, a larger run" in " ".join(text.split())
    assert "(from the evidence)" in text
    assert all(one["chip"] not in text for one in run["studies"].values())


def test_evidence_that_is_taken_away_or_added_changes_the_page_alone(made: Project):
    ledger = made.root / "evidence/claims.json"
    away = ledger.with_suffix(".away")
    ledger.rename(away)
    try:
        assert made.planned().keys() == {"manifest", "render"}
    finally:
        away.rename(ledger)
