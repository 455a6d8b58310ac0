"""How far verdicts reach: readings of other sizes and texts, and effects along sizes."""

from typing import Any

import pandas as pd
import pytest
from ledger_recipes import RAW, UNFROZEN, document, entry
from normscope.verdicts.claim import Evidence
from normscope.verdicts.entry import Claims
from normscope.verdicts.judgement import Judgement, find_all, judge
from normscope.verdicts.record import NOT_ASKED, record
from processes import ROOT

from normscope.config import load
from normscope.pilot import read_project
from normscope.verdicts.frozen import digest
from normscope.verdicts.vocabulary import Extent, Vocabulary

SIZES = {
    "small": Extent(2, 64, 300, "one"),
    "long": Extent(2, 64, 2000, "one"),
    "large": Extent(4, 128, 2000, "one"),
    "novel": Extent(2, 64, 300, "two"),
}
CONTRAST = {
    "table": "made.runs",
    "measure": "loss",
    "cells": {"protocol": "small", "arm": "none"},
    "less": {"arm": "layernorm"},
}
SMALL, LONG, LARGE = "2 x 64 (300 steps)", "2 x 64 (2,000 steps)", "4 x 128 (2,000 steps)"
NOISE = (-0.02, -0.01, 0.0, 0.0, 0.01, 0.02)  # of six seeds


class Study:
    """One table, whose protocols have sizes."""

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            columns={"runs": ["protocol", "arm", "seed", "loss"]},
            values={"protocol": SIZES, "arm": ("none", "layernorm")},
            extents={"runs": [({"protocol": name}, extent) for name, extent in SIZES.items()]},
            sized=("protocol",),
        )


def readings(**others: Any) -> dict[str, Any]:
    """The reading ``stated``, and what other readings give."""
    elsewhere = {
        name: {"reach": "stated", "contrast": {"cells": {"protocol": name}}} | changes
        for name, changes in others.items()
    }
    return {"stated": {"contrast": CONTRAST, "restated": "At 2 x 64."}, **elsewhere}


def judged(effects: dict[str, float], *others: str, **changes: Any) -> Judgement:
    """A statement on six seeds per protocol, whose loss without a norm is higher by an effect."""
    rows = [
        {"protocol": protocol, "arm": arm, "seed": seed, "loss": 2 + (arm == "none") * (effect + e)}
        for protocol, effect in effects.items()
        for arm in ("none", "layernorm")
        for seed, e in enumerate(NOISE)
    ]
    table = pd.DataFrame(rows, columns=["protocol", "arm", "seed", "loss"])
    stated = readings(**{name: {} for name in others})
    claims = Claims({"paper": document({"key": RAW | {"readings": stated} | changes})})
    evidence = Evidence({"made": {"runs": table}}, {"made": Study()}, 0.95)
    (one,) = judge(find_all(claims, evidence), 0.05)
    return one


def kept(*effects_and_others: Any, **changes: Any) -> dict[str, Any]:
    """The statement as claims.json has it."""
    return record(judged(*effects_and_others, **changes), UNFROZEN)


def test_a_statement_that_holds_at_one_size_and_fails_at_another_depends():
    row = kept({"small": 0.5, "large": -0.5}, "large")
    assert row["verdict"] == "depends"
    assert row["reason"].startswith("stated holds; large fails")
    assert kept({"small": 0.5, "large": 0.5}, "large")["verdict"] == "holds"
    assert judged({"small": 0.5, "large": 0.0}, "large").why.endswith("(large)")


def test_a_reading_of_models_that_the_run_lacks_decides_nothing():
    row = kept({"small": 0.5, "novel": 0.5}, "large", "novel")
    assert row["verdict"] == "holds"
    assert [reading["alone"] for reading in row["readings"].values()] == [
        *("holds", NOT_ASKED, "holds")
    ]
    assert row["reach"] == [SIZES["small"]._asdict(), SIZES["novel"]._asdict()]
    # the document's words are about models that the run lacks
    assert kept({"large": 0.5}, "large")["verdict"] == "undecided"
    # one side alone is no data either
    one = judged({"small": 0.5}, "large")
    assert list(one.claim.asked) == ["stated"]


@pytest.mark.parametrize(
    ("effects", "change"),
    [
        ({"small": 0.5, "long": 0.5, "large": 2.0}, "grows"),
        ({"small": 2.0, "long": 0.5, "large": 0.5}, "shrinks"),
        ({"small": 0.5, "large": -2.0}, "reverses"),
        ({"small": 0.5, "long": 0.505, "large": 0.495}, "stays"),
        # a size in between is higher or lower than both ends, whether these differ or not
        ({"small": 0.5, "long": 2.0, "large": 0.505}, f"changes between {SMALL} and {LONG}"),
        ({"small": -0.5, "long": 2.0, "large": -2.0}, f"changes between {LONG} and {LARGE}"),
        ({"small": 0.5, "long": 0.3, "large": 2.0}, f"changes between {LONG} and {LARGE}"),
        # it differs from one end, and the ends do not differ
        ({"small": 0.5, "long": 0.53, "large": 0.515}, f"changes between {SMALL} and {LONG}"),
        ({"small": 0.5, "long": 0.8}, "grows"),  # of one size, more steps are more
        ({"small": 0.5, "novel": 2.0}, "one size"),
    ],
)
def test_an_effect_is_compared_between_all_sizes(effects, change):
    row = kept(effects, *(name for name in effects if name != "small"))
    assert row["with_size"] == change
    in_order = [name if name != "small" else "stated" for name in SIZES if name in effects]
    is_changing = change not in ("stays", "one size")
    assert [[name for name, _ in line] for line in row["changing"]] == [in_order] * is_changing


def test_several_effects_of_a_statement_change_in_several_ways():
    """The difference has no trend over three sizes, and its ratio falls over two of them."""
    ratio = CONTRAST | {"less": None, "over": {"arm": "layernorm"}}
    others = {
        "ratio": {"contrast": ratio, "scale": "log", "bound": 1.0},
        "ratio_long": {"reach": "ratio", "contrast": {"cells": {"protocol": "long"}}},
    }
    effects = {"small": 2.0, "long": 0.5, "large": 2.0}
    row = kept(effects, readings=readings(long={}, large={}) | others)
    assert row["with_size"] == f"shrinks and changes between {SMALL} and {LONG}"
    assert [[name for name, _ in line] for line in row["changing"]] == [
        ["stated", "long", "large"],
        ["ratio", "ratio_long"],
    ]


def test_effects_of_other_quantities_are_not_compared():
    contrast = CONTRAST | {"cells": {"protocol": "large", "arm": "none"}}
    other = {"other": {"contrast": contrast, "quantity": "another"}}
    row = kept({"small": 0.5, "large": 2.0}, readings=readings() | other)
    assert (row["verdict"], row["with_size"]) == ("holds", "not compared")


def test_a_verdict_reaches_over_the_cases_that_agree_with_it():
    """One size contradicts a statement about all: it fails there alone."""
    cells = {"protocol": ["small", "large"], "arm": "none"}
    stated = {"stated": {"contrast": CONTRAST | {"cells": cells, "each": ["protocol"]}}}
    row = kept({"small": 0.5, "large": -0.5}, readings=stated)
    assert (row["verdict"], row["with_size"]) == ("fails", "reverses")
    assert row["reach"] == [SIZES["large"]._asdict()]


def test_a_reading_takes_what_it_does_not_give_from_the_one_that_it_extends():
    made = entry(readings=readings(large={"margin": 0.1, "margin_because": "a tenth"}))
    large = made.readings["large"]
    assert large.contrast is not None
    assert large.contrast.cells == {"protocol": "large", "arm": "none"}
    assert (large.quote, large.margin, large.restated) == ("Norms help.", 0.1, None)


def test_a_test_that_may_be_left_out_has_another_digest():
    same = readings(large={})
    contrast = CONTRAST | {"cells": {"protocol": "large", "arm": "none"}}
    always = readings() | {"large": {"contrast": contrast}}
    assert digest(entry(readings=same)) != digest(entry(readings=always))


def test_the_extents_of_each_study_follow_from_its_configuration():
    default = load(read_project(ROOT))
    words = {name: study.vocabulary() for name, study in default.studies.items()}

    def extent(study: str, table: str, **cell: Any) -> list[Extent]:
        listed = words[study].extents[table]
        return [e for c, e in listed if all(cell[k] == v for k, v in c.items())]

    assert extent("main", "chosen", protocol="nanogpt") == [Extent(4, 128, 2000, "dataset")]
    assert extent("main", "batches", protocol="small_austen") == [Extent(2, 64, 300, "austen")]
    of_script = Extent(4, 128, 250, "dataset")
    assert extent("jacobian", "surrogates", protocol="published") == [of_script]
    assert extent("recall", "runs", task="recall") == [Extent(1, 64, 300, "synthetic recall")]
    start, trained = ({"state": state, "depth": 12} for state in ("start", "trained"))
    assert extent("depth", "layers", **start) == [Extent(12, 32, 0, "dataset")]
    assert extent("depth", "rates", **trained) == [Extent(12, 32, 560, "dataset")]
    both = [Extent(12, 32, 360, "dataset"), Extent(12, 32, 560, "dataset")]
    assert extent("depth", "warm_ups", depth=12) == both
    warm = {"depth": 12, "warmup_steps": 200, "steps": 360}
    assert extent("depth", "losses", **warm) == both[1:]
    # the columns by which extents are told are columns of their tables
    for vocabulary in words.values():
        for table, listed in vocabulary.extents.items():
            columns = {*vocabulary.columns[table]}
            assert all(cell.keys() <= columns for cell, _ in listed)
