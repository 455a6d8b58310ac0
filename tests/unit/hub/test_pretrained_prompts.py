"""The file of prompts: the content of the published one, and errors."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from pretrained_models import PROMPTS

from normscope.hub.prompts import PromptsError, read_prompts


def test_the_prompts_are_those_of_the_published_table():
    published = pd.read_csv(PROMPTS.parent / "reference_prompts.csv")
    ours = {(p.set, p.category, p.text) for p in read_prompts(PROMPTS)}
    rows = published[["experiment", "category", "prompt"]].itertuples(index=False)
    expected = {tuple(row) for row in rows if row.experiment == "benchmark"}
    assert expected == {row for row in ours if row[0] == "benchmark"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"sets": {"a": {"B": {"prompts": ["x"], "entropy": "low"}}}}, "entropy"),
        ({"sets": {"a": {"B": {"prompts": []}}}}, "prompts"),
        ({"sets": {"a": {"B": {"prompts": [""]}}}}, "prompts.0"),
        ({"sets": {}}, "sets"),
        ("sets: {a: {B: {prompts: [Yes, 1984]}}}", "sets.a.B.prompts.1: .*1984.*in quotes"),
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
