"""Confirmatory and exploratory verdicts, and what a digest covers."""

import pytest
from ledger_recipes import entry

from normscope.ledger.frozen import Frozen, Line, Registry, Seen, digest

COMMIT, OTHER = "a" * 40, "b" * 40
SETTINGS = {"config.yaml": "1" * 64, "config/paper.yaml": "2" * 64}
PILOT = Seen(by="pilot runs", seeds=[7, 8])
CONTRAST = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a"}}
TEST = digest(entry(contrast=CONTRAST))


def registry(frozen: str | None = TEST, *lines: Line, settings: str = "2" * 64) -> Registry:
    """The present test is ``TEST``."""
    kept = None
    if frozen is not None:
        kept = Frozen(commit=COMMIT, settings=SETTINGS, statements={"key": frozen})
    return Registry({"key": TEST, "new": TEST}, kept, lines, [PILOT], settings)


def line(seeds: tuple[int, ...], frozen: str | None = None, statement: str = "other") -> Line:
    return Line(
        statement=statement, digest=TEST, seeds=seeds, verdict="holds", n=6, p=0.01,
        frozen=frozen, commit=COMMIT,
    )  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS.values())
def test_a_verdict_is_confirmatory_if_its_run_was_frozen_and_its_seeds_are_fresh(settings):
    for lines in ([], [line((1, 2), COMMIT)], [line((3, 4), OTHER)]):  # the second is the same run
        made = registry(TEST, *lines, settings=settings)
        assert made.why_exploratory("key", [1, 2]) == ""


@pytest.mark.parametrize(
    ("made", "seeds", "why"),
    [
        (registry(None), [1], "was not frozen"),
        (registry(settings="3" * 64), [1], "its settings are not those that were frozen"),
        (registry(settings=""), [1], "its settings are not those that were frozen"),
        (registry("0" * 16), [1], "was changed after it had been frozen"),
        (registry(), [], "its data existed before"),
        (registry(TEST, line((2, 3))), [1, 2], "earlier runs used its seeds 2"),
        (registry(TEST, line((2, 3), OTHER)), [2, 3], "earlier runs used its seeds 2, 3"),
        (registry(), [1, 8], "pilot runs used its seeds 8"),
        (
            registry(TEST, line((2, 7))),
            [2, 7, 8],
            "earlier runs used its seeds 2, 7; pilot runs used its seeds 8",
        ),
    ],
)
def test_any_other_verdict_is_exploratory(made, seeds, why):
    assert why in made.why_exploratory("key", seeds)


@pytest.mark.parametrize(
    ("change", "seeds", "n", "p"),
    [
        ({}, [1, 2], 6, 0.01),
        ({"status": "exploratory"}, [1, 2], 6, 0.01),
        ({"digest": "0" * 16}, [1, 2], 6, 0.01),
        ({"statement": "other"}, [1, 2], 6, 0.01),
        ({}, [1], 6, 0.01),  # some of the seeds
        ({}, [1, 2], 6, 0.011),  # other models of them
        ({}, [1, 2], 5, 0.01),
    ],
)
def test_a_confirmatory_verdict_stays_one_only_with_the_same_test_and_data(change, seeds, n, p):
    """After another freeze, which makes its own seeds used ones."""
    confirmed = line((1, 2), OTHER, "key").model_copy(update={"status": "confirmatory", **change})
    made = registry(TEST, confirmed)
    is_same = not change and (seeds, n, p) == ([1, 2], 6, 0.01)
    assert made.is_confirmed("key", seeds, n, p) == is_same


def test_a_statement_that_was_not_among_the_frozen_ones_is_exploratory():
    assert "was not frozen" in registry().why_exploratory("new", [1])


@pytest.mark.parametrize(
    "change",
    [
        {"bound": 0.1},
        {"direction": "less"},
        {"margin": 0.1, "margin_because": "planted"},
        {"test": "sign_flip"},
        {"holds_in": "any"},
        {"holds_in": "any", "refutable": False},
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
    "words",
    [
        *("statement", "where", "quantity", "criterion", "figure", "bound_because"),
        *("regime", "off_label", "uncompared"),
    ],
)
def test_words_do_not_change_the_digest(words):
    assert digest(entry(contrast=CONTRAST, **{words: "other words"})) == TEST
    assert digest(entry(contrast=CONTRAST, refines=["another"])) == TEST
    sentence = {**CONTRAST, "sentence": "{first}"}
    assert digest(entry(contrast=sentence)) == TEST
