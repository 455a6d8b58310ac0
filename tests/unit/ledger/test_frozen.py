"""Confirmatory and exploratory verdicts, and what a digest covers."""

import pytest
from ledger_recipes import entry

from normscope.ledger.frozen import Frozen, Line, Registry, Seen, digest, digest_of_cases

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


CASE = {"reads": "holds", "n": 6, "effect": 0.25, "low": 0.1, "high": None}
FOUND = digest_of_cases({"stated": {"cases": {"": CASE}}})


@pytest.mark.parametrize(
    ("change", "seeds", "found"),
    [
        ({}, [1, 2], FOUND),
        ({"status": "exploratory"}, [1, 2], FOUND),
        ({"digest": "0" * 16}, [1, 2], FOUND),
        ({"statement": "other"}, [1, 2], FOUND),
        ({"result": None}, [1, 2], FOUND),  # an older line
        ({}, [1], FOUND),  # some of the seeds
        ({}, [1, 2], "0" * 16),
    ],
)
def test_a_confirmatory_verdict_stays_one_only_with_the_same_test_and_data(change, seeds, found):
    """After another freeze, which makes its own seeds used ones."""
    kept = {"status": "confirmatory", "result": FOUND} | change
    made = registry(TEST, line((1, 2), OTHER, "key").model_copy(update=kept))
    is_same = not change and (seeds, found) == ([1, 2], FOUND)
    assert made.is_confirmed("key", seeds, found) == is_same


@pytest.mark.parametrize(
    ("frozen", "change", "is_another"),
    [(COMMIT, {}, True), (OTHER, {}, False), (COMMIT, {"result": None}, False),
     (COMMIT, {"digest": "0" * 16}, False), (COMMIT, {"seeds": (1,)}, False)],
)  # fmt: skip
def test_another_result_of_the_same_test_and_seeds_is_found(frozen, change, is_another):
    """The first one counts, also if a later line has the present one."""
    first = line((1, 2), frozen, "key").model_copy(update={"result": "0" * 16} | change)
    again = line((1, 2), frozen, "key").model_copy(update={"result": FOUND})
    assert registry(TEST, first, again).is_another("key", [1, 2], FOUND) == is_another
    assert not registry(TEST, again, again).is_another("key", [1, 2], FOUND)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({}, True),
        ({"reads": "fails"}, False),  # of a fact, whose numbers are the same
        ({"n": 5}, False),
        ({"effect": 0.2501}, False),
        ({"effect": 0.25 + 1e-9}, True),  # the last digits of another chip
        ({"low": None}, False),
        ({"high": 0.3}, False),
        ({"reads": "holds: in other words"}, True),
    ],
)
def test_a_result_is_what_all_cases_found_and_not_their_names(change, is_same):
    two = digest_of_cases({"a": {"cases": {"x": CASE, "y": CASE}}})
    readings = {"b": {"cases": {"": CASE}}, "c": {"cases": {"": CASE | change}}}
    assert (digest_of_cases(readings) == two) == is_same


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
