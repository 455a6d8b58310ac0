"""The file of prompts: the content of the published one, and errors."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from pretrained_models import PROMPTS

from normscope.hub.prompts import PromptsError, read_prompts


def test_there_are_25_prompts_in_5_categories_and_3_canonical_ones():
    table = pd.DataFrame([vars(p) for p in read_prompts(PROMPTS)])
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
    ("content", "words"),
    [
        ({"sets": {"a": {"B": {"prompts": ["x"]}}}, "more": 1}, "more"),
        ({"sets": {"a": {"B": {"prompts": ["x"], "entropy": "low"}}}}, "entropy"),
        ({"sets": {"a": {"B": {"prompts": []}}}}, "prompts"),
        ({"sets": {"a": {"B": {"prompts": [""]}}}}, "prompts.0"),
        ({"sets": {}}, "sets"),
        ("sets: {a: {B: {prompts: [Yes, 1984]}}}", "sets.a.B.prompts.1: .*1984.*in quotes"),
        ("", "prompts.yaml"),
        ("sets: [", "prompts.yaml"),
        ("a: !!python/name:os.x", "prompts.yaml"),
        (
            {"sets": {"a": {"B": {"prompts": ["x y"]}, "C": {"prompts": ["x y"]}}}},
            "'x y' in the set a",
        ),
        ({"sets": {s: {"B": {"prompts": [s]}} for s in ("a", "c")}}, "B-1"),
    ],
    ids=str,
)
def test_an_invalid_file_is_an_error_that_names_it_and_the_key(tmp_path, content, words):
    path = Path(tmp_path, "prompts.yaml")
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(PromptsError, match=words) as e:
        read_prompts(path)
    assert str(e.value).startswith(f"{path}")
    assert "\n" not in str(e.value)
