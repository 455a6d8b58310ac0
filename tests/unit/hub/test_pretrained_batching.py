"""Prompts and their batches."""

import itertools
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import PROMPTS, tokenizer

from normscope.errors import Explained
from normscope.hub.batching import (
    BATCH_TOKENS,
    PADDING,
    PromptTokens,
    batches,
    group_by_length,
    tokenize,
)
from normscope.hub.prompts import Prompt, PromptsError, read_prompts

LENGTHS = st.lists(st.integers(1, 40) | st.integers(1, 3 * BATCH_TOKENS), max_size=60)
BOS, EOS = 1, 2


def prompt(text: str) -> Prompt:
    return Prompt("set", "category", "category-1", text, None)


@given(LENGTHS)
def test_groups_hold_every_index_once_within_the_limits_and_are_as_large_as_possible(lengths):
    groups = group_by_length(lengths)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    real = [[lengths[i] for i in group] for group in groups]
    for group in real:
        padded = max(group) * len(group)
        assert sum(group) >= (1 - PADDING) * padded * (1 - 1e-12)
        assert padded <= BATCH_TOKENS or len(group) == 1
    for group, following in itertools.pairwise(real):
        padded = group[0] * (len(group) + 1)
        assert sum(group) + following[0] < (1 - PADDING) * padded or padded > BATCH_TOKENS


@given(st.lists(st.lists(st.integers(3, 99), min_size=1, max_size=30), min_size=1, max_size=20))
def test_batches_hold_every_sequence_with_padding_on_the_right(rows):
    sequences = [PromptTokens(prompt(str(i)), "off", tuple(row)) for i, row in enumerate(rows)]
    made = batches(sequences, "cpu")
    assert sorted(s.prompt.text for b in made for s in b.sequences) == sorted(
        str(i) for i in range(len(rows))
    )
    for batch in made:
        assert batch.tokens.dtype == torch.long
        assert batch.tokens.shape == batch.mask.shape
        for i, sequence in enumerate(batch.sequences):
            n = len(sequence.tokens)
            assert tuple(batch.tokens[i, :n].tolist()) == sequence.tokens
            assert batch.mask[i].tolist() == [1] * n + [0] * (batch.mask.shape[1] - n)
            assert int(batch.last[i]) == n - 1
            assert int(batch.tokens[i, batch.last[i]]) == sequence.tokens[-1]


def test_prompts_are_tokenized_with_and_without_bos():
    tokens = tokenizer()
    prompts = read_prompts(PROMPTS)
    sequences, _ = tokenize(tokens, prompts)
    assert len(sequences) == 2 * len(prompts)
    by_key = {(s.prompt.set, s.prompt.name, s.bos): s.tokens for s in sequences}
    for p in prompts:
        off, on = by_key[p.set, p.name, "off"], by_key[p.set, p.name, "on"]
        assert on == (BOS, *off)
        assert BOS not in off
        assert tokens.decode(list(off)) == p.text


@pytest.mark.parametrize(
    ("adds", "expected"),
    [("$A", False), ("<s> $A", True), ("$A </s>", None), ("<s> $A </s>", None)],
)
def test_whether_the_tokenizer_adds_bos_is_reported(adds, expected):
    prompts = [prompt("The capital"), prompt("Water boils at")]
    sequences, adds_bos = tokenize(tokenizer(adds=adds), prompts)
    assert adds_bos is expected
    for s in sequences:  # whatever the tokenizer adds by default
        assert EOS not in s.tokens
        assert s.tokens.count(BOS) == (1 if s.bos == "on" else 0)


def test_a_prompt_without_tokens_is_an_error_that_names_it():
    with pytest.raises(Explained, match="no token of the prompt ''"):
        tokenize(tokenizer(), [prompt("The capital"), prompt("")])


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
