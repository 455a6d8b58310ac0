"""Confirmatory and exploratory verdicts, and what a digest covers."""

import pytest
from ledger_recipes import entry

from normscope.ledger.frozen import Frozen, Line, Registry, digest

COMMIT, OTHER = "a" * 40, "b" * 40
CONTRAST = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a"}}
TEST = digest(entry(contrast=CONTRAST))


def registry(frozen: str | None = TEST, *lines: Line) -> Registry:
    """The present test is ``TEST``."""
    kept = None
    if frozen is not None:
        kept = Frozen(
            commit=COMMIT, configuration="a.yaml", settings="", statements={"key": frozen}
        )
    return Registry({"key": TEST}, kept, lines)


def line(seeds: tuple[int, ...], frozen: str | None = None, statement: str = "other") -> Line:
    return Line(
        statement=statement, digest=TEST, seeds=seeds, verdict="holds", n=6, p=0.01,
        frozen=frozen, commit=COMMIT,
    )  # fmt: skip


def test_a_verdict_is_confirmatory_if_its_test_was_frozen_and_its_seeds_are_fresh():
    assert registry().why_exploratory("key", [1, 2]) == ""
    assert registry(TEST, line((1, 2), COMMIT)).why_exploratory("key", [1, 2]) == ""  # the same run
    assert registry(TEST, line((3, 4), OTHER)).why_exploratory("key", [1, 2]) == ""


@pytest.mark.parametrize(
    ("made", "seeds", "why"),
    [
        (registry(None), [1], "was not frozen"),
        (registry("0" * 16), [1], "was changed after it had been frozen"),
        (registry(), [], "its data existed before"),
        (registry(TEST, line((2, 3))), [1, 2], "earlier runs used its seeds 2"),
        (registry(TEST, line((2, 3), OTHER)), [2, 3], "earlier runs used its seeds 2, 3"),
    ],
)
def test_any_other_verdict_is_exploratory(made, seeds, why):
    assert why in made.why_exploratory("key", seeds)


def test_a_statement_that_was_not_among_the_frozen_ones_is_exploratory():
    both = registry()
    both.digests = {"key": TEST, "new": TEST}
    assert "was not frozen" in both.why_exploratory("new", [1])


@pytest.mark.parametrize(
    "change",
    [
        {"bound": 0.1},
        {"direction": "less"},
        {"margin": 0.1, "margin_because": "planted"},
        {"test": "sign_flip"},
        {"holds_in": "any"},
        {"primary": True},
        {"study": "other"},
        {"contrast": {**CONTRAST, "measure": "accuracy"}},
        {"contrast": {**CONTRAST, "cells": {"arm": "b"}}},
        {"contrast": {**CONTRAST, "needs": [{"check": "loss < 1", "why": "lost"}]}},
        {"readings": {"stated": {}, "other": {"bound": 1.0}}},
        {"readings": {"renamed": {}}},
    ],
)
def test_what_decides_changes_the_digest(change):
    assert digest(entry(**{"contrast": CONTRAST} | change)) != TEST


def test_the_function_that_tests_a_statement_is_part_of_its_digest():
    assert digest(entry(contrast=CONTRAST), "code") != TEST


@pytest.mark.parametrize(
    "words", ["statement", "where", "quantity", "criterion", "figure", "bound_because"]
)
def test_words_do_not_change_the_digest(words):
    assert digest(entry(contrast=CONTRAST, **{words: "other words"})) == TEST
    sentence = {**CONTRAST, "sentence": "{first}"}
    assert digest(entry(contrast=sentence)) == TEST
