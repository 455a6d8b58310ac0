"""Outcomes of models that learned different texts: by hand, from the characters of each text."""

import math
from pathlib import Path

import pandas as pd
import pytest

from normscope.io import dataset
from normscope.studies.outcome import with_outcomes

TEXTS = {"one": "dataset", "two": "second", "short": "third"}
HALVES, QUARTERS = "ab" * 50, "abcd" * 25  # ln 2 and ln 4 per character: uniform is optimal
RISING = "aaab" * 225 + "aaab" * 12 + "b" * 52  # the second half of the last 100 is all b


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = {"": HALVES, "second": QUARTERS, "third": RISING}
    for folder, text in ((tmp_path / name, text) for name, text in texts.items()):
        folder.mkdir(exist_ok=True)
        for name, content in dataset.files(dataset.encode(text)).items():
            (folder / name).write_bytes(content)
    return tmp_path


def test_each_model_is_held_against_the_text_that_it_learned(corpus: Path):
    """The same losses: between ln 2 and ln 4 a model of the first text failed, one of the second
    did not. Detects outcomes by one text for all, and rows in another order."""
    rows = [("two", 1.0), ("one", 1.0), ("two", 9.0), ("one", 0.3), ("two", math.nan)]
    table = pd.DataFrame(rows, columns=["protocol", "val_loss"])
    table = table.assign(diverged_at=[math.nan] * 4 + [7.0])
    made = with_outcomes(table, corpus, TEXTS, dict.fromkeys(TEXTS))
    assert list(made["protocol"]) == ["two", "one", "two", "one", "two"]
    assert list(made["capped_loss"]) == [1.0, math.log(2), math.log(4), 0.3, math.log(4)]
    assert list(made["failed"]) == [0, 1, 1, 0, 1]


def test_a_model_failed_by_the_characters_over_which_its_loss_is(corpus: Path):
    """Their frequencies cost 0.57 nats on the first 48 validation characters, and 1.0 on all."""
    table = pd.DataFrame({"protocol": ["short"], "val_loss": [0.6], "diverged_at": [math.nan]})
    first, every = (
        with_outcomes(table, corpus, TEXTS, {"short": tokens})["failed"].item()
        for tokens in (48, None)
    )
    assert (first, every) == (1, 0)
