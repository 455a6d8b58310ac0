"""The file of prompts: the content of the published one, and errors."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from pretrained_models import PROMPTS

from normscope.errors import Explained
from normscope.hub.prompts import PromptsError, read_prompts

CONTENT = {"sets": {"a": {"B": {"prompts": ["one two", "three"]}, "C": {"prompts": ["four"]}}}}


def written(folder: Path, content: object) -> Path:
    path = folder / "prompts.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def refused(path: Path, *parts: str) -> None:
    """Check that there is one error, which names the file."""
    with pytest.raises(PromptsError) as e:
        read_prompts(path)
    assert isinstance(e.value, Explained)
    for part in (str(path), *parts):
        assert part in str(e.value)


def test_there_are_25_prompts_in_5_categories_and_3_canonical_ones():
    prompts = read_prompts(PROMPTS)
    table = pd.DataFrame([vars(p) for p in prompts])
    sizes = table.groupby(["set", "category"]).size().to_dict()
    categories = ["Factual", "Syntactic", "Cliche", "Novel", "Nonsense"]
    expected = {("benchmark", c): 5 for c in categories}
    assert sizes == expected | {("canonical", "Canonical"): 3}
    assert table["name"].is_unique
    of_categories = table.drop_duplicates(["set", "category"]).set_index("category")
    assert list(of_categories["complexity"][:5]) == [1, 5, 2, 4, 3]
    assert list(of_categories["expected_entropy"][:5]) == "medium medium low high very_high".split()


def test_the_prompts_are_those_of_the_published_table():
    published = pd.read_csv(PROMPTS.parent / "reference_prompts.csv")
    ours = {(p.set, p.category, p.text) for p in read_prompts(PROMPTS)}
    rows = published[["experiment", "category", "prompt"]].itertuples(index=False)
    expected = {tuple(row) for row in rows if row.experiment == "benchmark"}
    assert expected == {row for row in ours if row[0] == "benchmark"}


@pytest.mark.parametrize(
    "content",
    [
        CONTENT | {"more": 1},
        {"sets": {"a": {"B": {"prompts": ["x"], "entropy": "low"}}}},
        {"sets": {"a": {"B": {"prompts": []}}}},
        {"sets": {"a": {"B": {"prompts": [""]}}}},
        {"sets": {"a": {"B": {"prompts": [7]}}}},
        {"sets": {"a": {"B": ["x"]}}},
        {"sets": {}},
        ["x"],
        "",
    ],
    ids=str,
)
def test_an_unknown_or_missing_key_is_an_error(tmp_path, content):
    refused(written(tmp_path, content))


B = "    B:\n      prompts: [x]\n"
DUPLICATES = {
    "a text twice in a set": (
        {"sets": {"a": {"B": {"prompts": ["x y"]}, "C": {"prompts": ["x y"]}}}},
        "'x y' in the set a",
    ),
    "a category in two sets": ({"sets": {s: {"B": {"prompts": [s]}} for s in ("a", "c")}}, "B-1"),
    "a category twice": (f"sets:\n  a:\n{B}{B.replace('x', 'y')}", "B"),
}


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_duplicate_is_an_error_that_names_it(tmp_path, duplicate):
    content, name = DUPLICATES[duplicate]
    refused(written(tmp_path, content), name)


@pytest.mark.parametrize(
    "text", ["sets: [", "sets: {a: b: c}", "\tsets: 1", "a: !!python/name:os.x"]
)
def test_invalid_yaml_is_an_error(tmp_path, text):
    refused(written(tmp_path, text))
