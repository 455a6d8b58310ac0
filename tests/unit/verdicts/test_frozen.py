"""What is post hoc, and what a digest covers."""

import pytest
from ledger_recipes import entry

from normscope.verdicts.frozen import Frozen, Plan, digest

SETTINGS = {"config.yaml": "1" * 64, "config/paper.yaml": "2" * 64}
CONTRAST = {"table": "made.runs", "measure": "loss", "cells": {"arm": "a"}}
TEST = digest(entry(contrast=CONTRAST))


def plan(frozen: str = TEST, settings: str = "2" * 64) -> Plan:
    """The present test is ``TEST``."""
    registered = Frozen(commit="a" * 40, settings=SETTINGS, statements={"key": frozen})
    return Plan({"key": TEST, "new": TEST}, registered, settings)


def test_a_verdict_is_not_post_hoc_if_its_test_and_settings_were_frozen():
    assert [plan(settings=settings).why_post_hoc("key") for settings in SETTINGS.values()] == [
        ""
    ] * 2


@pytest.mark.parametrize(
    ("made", "key", "why"),
    [
        (Plan({"key": TEST}), "key", "was not frozen"),
        (plan(), "new", "was not frozen"),
        (plan(settings="3" * 64), "key", "its settings are not those that were frozen"),
        (plan("0" * 16), "key", "was changed after it had been frozen"),
    ],
)
def test_any_other_verdict_is_post_hoc(made, key, why):
    assert why in made.why_post_hoc(key)


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
