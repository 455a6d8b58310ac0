"""What a release renews: dvc.lock and the metrics that Git tracks are those of its version."""

import hashlib
import json
import re

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
