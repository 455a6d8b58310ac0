"""What README.md shows and names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def test_linked_files_are_there():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"(?:config|src|benchmarks)/[\w./]+\w", TEXT)))
)
def test_named_files_are_there(path: str):
    assert (ROOT / path).exists()


def test_make_targets_are_there():
    targets = re.findall(r"^make (\w+)", TEXT, re.MULTILINE)
    assert targets == ["results", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_table_has_a_row_for_every_arm_of_the_default_grid():
    table = TEXT.partition("<!-- results")[2].partition("<!-- end of results")[0]
    rows = re.findall(r"^\| .+ \| \d+ \| [\d.]+ \|", table, re.MULTILINE)
    assert len(rows) == 10
