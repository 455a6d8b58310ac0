"""What README, CONTRIBUTING and the pages of the site show and name is there."""

import re
import runpy
import subprocess
import sys
from difflib import ndiff
from pathlib import Path

import pytest
from processes import ROOT

README = runpy.run_path(str(ROOT / "docs/readme.py"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)


@pytest.mark.parametrize("page", README["PAGES"], ids=lambda p: p.name)
def test_a_page_shows_what_the_evidence_has(page: Path):
    text = page.read_text()
    now = README["refreshed"](text, README["tables"]())
    stale = [line for line in ndiff(text.splitlines(), now.splitlines()) if line[0] in "+-"]
    assert stale == [], "make readme"


def test_the_first_python_example_of_the_readme_runs_as_typed():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    command = [sys.executable, "-c", blocks[0]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "LayerNorm" in done.stdout
