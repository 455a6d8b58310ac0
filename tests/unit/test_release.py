"""What a release and its README promise."""

import hashlib
import json
import re
import runpy
from difflib import ndiff
from pathlib import Path

import pandas as pd
import pytest
import yaml
from processes import ROOT

METRICS = ROOT / "metrics"


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_dvc_lock_and_metrics_are_those_of_the_latest_release():
    """By the version that the metrics name, and the hash that dvc.lock has of them."""
    released = re.search(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert released is not None
    how = "make a release as CONTRIBUTING.md says (Versions): dvc repro, then commit its records"
    version = METRICS / "version.txt"
    assert version.is_file(), how
    assert version.read_text().strip() == released[1], how
    # a directory's hash in DVC: that of the list of its files, as JSON
    files = {str(path.relative_to(METRICS)): path for path in METRICS.rglob("*") if path.is_file()}
    entries = [{"md5": md5(files[name].read_bytes()), "relpath": name} for name in sorted(files)]
    stages = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
    recorded = {out["path"]: out["md5"] for out in stages["paper"]["outs"]}
    assert recorded.get("metrics") == f"{md5(json.dumps(entries).encode())}.dir", how


def test_the_evidence_can_be_trained_again():
    """``make verify`` reads its settings with the present code, and finds every model's job."""
    verify = runpy.run_path(str(ROOT / "scripts/verify.py"))
    manifest = json.loads((ROOT / "evidence/manifest.json").read_text())
    trained = verify["trainings"](verify["configuration"](manifest))
    kept = pd.read_csv(ROOT / "evidence/models.csv")
    jobs = {*zip(trained["study"], trained["name"], strict=True)}
    assert {*zip(kept["study"], kept["job"], strict=True)} == jobs


README = runpy.run_path(str(ROOT / "docs/readme.py"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)


@pytest.mark.parametrize("page", README["PAGES"], ids=lambda p: p.name)
def test_a_page_shows_what_the_evidence_has(page: Path):
    text = page.read_text()
    now = README["refresh"](text, README["tables"]())
    stale = [line for line in ndiff(text.splitlines(), now.splitlines()) if line[0] in "+-"]
    assert stale == [], "make readme"


def test_an_answer_that_the_evidence_no_longer_supports_is_an_error():
    kept = README["read"](ROOT / "evidence/claims.json")
    findings = README["load_findings"](ROOT / "data/findings.yaml", kept.statements)
    empty = [one.model_copy(update={"results": {}}) for one in kept.verdicts]
    with pytest.raises(ValueError, match=r"^needed: A norm helps; .* is now "):
        README["answer_table"](kept.model_copy(update={"verdicts": empty}), findings)
