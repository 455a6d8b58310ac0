"""Verdicts on the notebook's statements: planted numbers under which each holds, fails, is open."""

import functools
import math
from typing import Any

import pandas as pd
import pytest

from normscope.arms import ARMS
from normscope.recall.claims import claims
from normscope.recall.grid import Recall
from normscope.recall.measures import HEIGHTS, MEASURES

NAN = math.nan
PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
RATE = 0.001  # of all corrected runs
CORRECTED = (*PUBLISHED, "layernorm_plain", "manual_l2_affine")
ALONE, RANK = "accuracy_without_context", "effective_rank_query"

RECALL_IS, L2_FAILS, AFFINE, FLAT, COLLAPSE, NEEDED = range(6)
BOTH = [RECALL_IS, L2_FAILS, FLAT, COLLAPSE, NEEDED]  # decided under the notebook's protocol too
WAS, NOW = "its verdict", "verdict"
CASES = [*((claim, WAS) for claim in BOTH), *((claim, NOW) for claim in range(6))]

Changes = dict[tuple[str, str], float | tuple[float, float, float]]
HOLDS: dict[int, Changes] = {
    RECALL_IS: {(arm, ALONE): 0.4 for arm in PUBLISHED},
    L2_FAILS: {("manual_l2", "accuracy"): 0.5},
    AFFINE: {
        ("manual_l2", "calibrated_loss"): 2.0,
        ("manual_l2_affine", "calibrated_loss"): 0.1,
        ("layernorm_plain", "calibrated_loss"): 0.5,
    },
    FLAT: {
        ("layernorm", "sharpness"): 3.0,
        ("batchnorm", "sharpness"): 9.0,
        ("manual_l2", "sharpness"): 5.0,
    },
    COLLAPSE: {**{(arm, RANK): 3.0 for arm in PUBLISHED}, ("none", RANK): 2.0},
    NEEDED: {("none", "loss"): 2.0, ("layernorm", "loss"): 1.0},
}
FAILS: dict[int, Changes] = {
    RECALL_IS: {**HOLDS[RECALL_IS], ("batchnorm", ALONE): 0.8},
    L2_FAILS: {("manual_l2", "accuracy"): 0.95},
    AFFINE: HOLDS[AFFINE] | {("layernorm_plain", "calibrated_loss"): 0.05},
    FLAT: HOLDS[FLAT] | {("batchnorm", "sharpness"): 11.0},
    COLLAPSE: HOLDS[COLLAPSE] | {("manual_l2", RANK): 1.0},
    NEEDED: HOLDS[NEEDED] | {("none", "loss"): 0.5},
}
# the same mean as where it holds, one end of one interval on the other side
OVERLAP: dict[int, Changes] = {
    RECALL_IS: HOLDS[RECALL_IS] | {("none", ALONE): (0.4, 0.1, 0.7)},
    L2_FAILS: {("manual_l2", "accuracy"): (0.5, 0.05, 0.95)},
    AFFINE: HOLDS[AFFINE] | {("layernorm_plain", "calibrated_loss"): (0.5, 0.05, 0.95)},
    FLAT: HOLDS[FLAT] | {("batchnorm", "sharpness"): (9.0, 7.0, 11.0)},
    COLLAPSE: HOLDS[COLLAPSE] | {("batchnorm", RANK): (3.0, 1.5, 4.5)},
    NEEDED: HOLDS[NEEDED] | {("none", "loss"): (2.0, 0.5, 3.5)},
}
NEEDS: dict[int, list[str]] = {
    RECALL_IS: list(PUBLISHED),
    L2_FAILS: ["manual_l2", "layernorm"],
    AFFINE: ["manual_l2", "manual_l2_affine", "layernorm_plain"],
    FLAT: ["manual_l2", "layernorm", "batchnorm"],
    COLLAPSE: list(PUBLISHED),
    NEEDED: ["none", "layernorm"],
}
LEARNERS: dict[int, list[str]] = NEEDS | {
    L2_FAILS: ["layernorm"],
    AFFINE: ["layernorm_plain"],
    NEEDED: ["layernorm"],
}


def recall(arms: dict[str, float] = PUBLISHED) -> Recall:
    """Chance is 1/20 in the copy task and 1/4 in the recall task."""
    sizes = {"entities": 4, "steps": 5}
    raw = {
        "tasks": {
            "copy": {"kind": "copy", "attributes": 5, **sizes},
            "recall": {"kind": "recall", "attributes": 4, **sizes},
        },
        "published": {
            "task": "copy",
            "arms": [{"arm": arm, "learning_rate": rate} for arm, rate in arms.items()],
            "seeds": [1],
        },
        "corrected": {"task": "recall", "learning_rate": RATE},
        "runs": [
            {
                "task": "recall",
                "arms": list(dict.fromkeys([*arms, *CORRECTED])),
                "learning_rates": [RATE],
                "seeds": [1],
            }
        ],
        "directions": 1,
    }
    return Recall.model_validate(raw, strict=True)


def row(cell: tuple[str, str, float], measure: str, value: Any, n: int) -> dict[str, Any]:
    mean, low, high = value if isinstance(value, tuple) else (value, value, value)
    if n < 2:
        low = high = NAN
    keys = dict(zip(("task", "arm", "learning_rate"), cell, strict=True))
    lost = math.isnan(mean)
    row = {"measure": measure, "n": 0 if lost else n, "diverged": n if lost else 0}
    return keys | row | {"mean": mean, "low": low, "high": high}


def cells(changes: Changes, *, was: int = 1, now: int = 6) -> pd.DataFrame:
    """recall_cells.csv: all of 1, but for changes, which are of both protocols."""
    there = [(("copy", arm, rate), was) for arm, rate in PUBLISHED.items()]
    there += [(("recall", arm, RATE), now) for arm in CORRECTED]
    rows = [
        row(cell, measure, changes.get((cell[1], measure), 1.0), n)
        for cell, n in there
        for measure in (*MEASURES, *HEIGHTS)
    ]
    return pd.DataFrame(rows)


@functools.cache
def evaluated(changes: tuple, was: int, now: int) -> pd.DataFrame:
    return claims(cells(dict(changes), was=was, now=now), recall())


def verdict(changes: Changes, claim: int, column: str, *, was: int = 1, now: int = 6) -> str:
    """Of a claim, under changes that plant it or under those of all claims that go together."""
    return evaluated(tuple(changes.items()), was, now)[column].iloc[claim]


def together(planted: dict[int, Changes], claim: int) -> Changes:
    """What is planted for a claim with all that goes with it: one table for many claims."""
    if claim == L2_FAILS:
        return planted[claim]
    parts = [changes for other, changes in planted.items() if other != L2_FAILS]
    return {key: value for part in parts for key, value in part.items()}


def test_the_statements_and_their_columns():
    found = claims(cells({}), recall())
    columns = ["claim", "test", "as published", "its verdict", "corrected", "verdict"]
    assert list(found.columns) == columns
    for claim, word in enumerate(("recall", "fails", "affine", "flat", "collapse", "needs")):
        assert word in found["claim"].iloc[claim]


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_a_claim_holds_and_fails_as_planted(claim, column):
    assert verdict(together(HOLDS, claim), claim, column) == "holds"
    assert verdict(together(FAILS, claim), claim, column) == "fails"


@pytest.mark.parametrize("claim", BOTH)
def test_under_the_notebooks_protocol_two_seeds_are_enough(claim):
    assert verdict(together(HOLDS, claim), claim, WAS, was=2) == "holds"
    assert verdict(together(FAILS, claim), claim, WAS, was=2) == "fails"


@pytest.mark.parametrize("planted", [HOLDS, FAILS])
def test_one_arm_that_differs_in_two_ways_decides_nothing_of_the_affine_part(planted):
    reads = verdict(together(planted, AFFINE), AFFINE, WAS, was=6)
    assert reads == "undecided: the two are confounded"


def test_nearer_to_chance_than_to_1_is_asked_with_the_chance_of_the_task():
    """Halfway between chance and 1: 0.525 for copy, 0.625 for recall."""
    changes: Changes = {(arm, ALONE): 0.6 for arm in PUBLISHED}
    reads = [verdict(changes, RECALL_IS, column) for column in (WAS, NOW)]
    assert reads == ["fails", "holds"]


@pytest.mark.parametrize("arm", CORRECTED)
def test_a_missing_arm_is_no_data_in_any_order(arm):
    back = CORRECTED.index(arm) % 2
    arms = list(PUBLISHED)[::-1] if back else list(PUBLISHED)
    config = recall({a: PUBLISHED[a] for a in arms})
    table = cells(together(HOLDS, AFFINE)).sample(frac=1, random_state=back)
    for without in (
        table[table["arm"] != arm],
        table.assign(mean=table["mean"].mask(table["arm"] == arm)),
    ):
        found = claims(without, config)
        for claim, column in CASES:
            reads = found[column].iloc[claim]
            if arm in NEEDS[claim]:
                assert reads == "no data", (claim, column)
            elif claim != L2_FAILS:
                assert reads == "holds", (claim, column)


@pytest.mark.parametrize("arm", ["manual_l2", "none"])
def test_a_missing_arm_is_no_data_whatever_the_others_learned(arm):
    low: Changes = {(other, "accuracy"): 0.1 for other in CORRECTED}
    table = cells(together(HOLDS, AFFINE) | low)
    found = claims(table[table["arm"] != arm], recall())
    there = [case for case in CASES if arm in NEEDS[case[0]]]
    assert there
    for claim, column in there:
        assert found[column].iloc[claim] == "no data", (claim, column)


@pytest.mark.parametrize("arm", ["manual_l2", "layernorm", "none"])
def test_an_arm_that_is_not_published_is_no_data(arm):
    config = recall({a: rate for a, rate in PUBLISHED.items() if a != arm})
    found = claims(cells(together(HOLDS, AFFINE)), config)
    for claim, column in CASES:
        if claim in (L2_FAILS, FLAT, NEEDED) and arm in NEEDS[claim]:
            assert found[column].iloc[claim] == "no data"


@pytest.mark.parametrize("arm", CORRECTED)
@pytest.mark.parametrize(("claim", "column"), CASES)
def test_what_did_not_learn_is_not_asked_what_it_is_like(claim, column, arm):
    """What other arms learned does not matter."""
    if claim == L2_FAILS and arm not in ("layernorm", "none"):
        return  # its own measure is the accuracy of manual_l2
    undecided = f"undecided: {ARMS[arm].label} did not learn the task"
    low: Changes = {(arm, "accuracy"): 0.89}
    planted = together(HOLDS, claim)
    reads = verdict(planted | low, claim, column)
    assert reads == (undecided if arm in LEARNERS[claim] else "holds")


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_from_nine_in_ten_a_task_is_learned(claim, column):
    learned: Changes = {(arm, "accuracy"): 0.9 for arm in CORRECTED}
    assert verdict(learned | together(HOLDS, claim), claim, column) == "holds"


@pytest.mark.parametrize(("planted", "n"), [(HOLDS, 3), (HOLDS, 5), (FAILS, 3)])
@pytest.mark.parametrize("claim", range(6))
def test_a_corrected_verdict_needs_six_seeds(claim, planted, n):
    """2^(1 - 6) is 0.031, below 5%; 2^(1 - 5) is 0.0625."""
    changes = together(planted, claim)
    assert verdict(changes, claim, NOW, now=n) == f"undecided: {n} seeds, 6 needed"
    assert verdict(changes, claim, NOW, now=6) == ("holds" if planted is HOLDS else "fails")


@pytest.mark.parametrize("planted", [HOLDS[L2_FAILS], together(HOLDS, AFFINE)])
def test_the_arm_with_the_fewest_seeds_counts(planted):
    """Every claim needs Unit L2 or the baseline without norm."""
    table = cells(planted)
    table.loc[(table["task"] == "recall") & table["arm"].isin(["manual_l2", "none"]), "n"] = 4
    found = list(claims(table, recall())[NOW])
    asked = [L2_FAILS] if planted is HOLDS[L2_FAILS] else set(range(6)) - {L2_FAILS}
    assert {found[claim] for claim in asked} == {"undecided: 4 seeds, 6 needed"}


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_intervals_that_allow_both_answers_decide_nothing(claim, column):
    reads = verdict(together(OVERLAP, claim), claim, column, was=6)
    assert reads == "undecided: intervals overlap"


@pytest.mark.parametrize("claim", BOTH)
def test_of_one_seed_the_value_decides(claim):
    assert verdict(together(OVERLAP, claim), claim, WAS, was=1) == "holds"


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_intervals_on_one_side_decide(claim, column):
    """Every value with an interval of 2% around it."""

    def wide(planted: Changes) -> Changes:
        means = [(key, v) for key, v in planted.items() if isinstance(v, float)]
        assert len(means) == len(planted)
        return {key: (v, 0.99 * v, 1.01 * v) for key, v in means}

    for planted, reads in ((HOLDS, "holds"), (FAILS, "fails")):
        assert verdict(wide(together(planted, claim)), claim, column, was=6) == reads


@pytest.mark.parametrize("value", [0.0, -3.0])
@pytest.mark.parametrize("arms", [("manual_l2",), ("batchnorm",), tuple(NEEDS[FLAT])])
def test_a_sharpness_without_a_ratio_is_not_alike(arms, value):
    changes: Changes = HOLDS[FLAT] | {(arm, "sharpness"): value for arm in arms}
    assert [verdict(changes, FLAT, column) for column in (WAS, NOW)] == ["fails"] * 2


@pytest.mark.parametrize(
    ("l2", "reads"), [(4.49, "fails"), (4.5, "holds"), (6.0, "holds"), (6.01, "fails")]
)
def test_a_factor_of_two_is_alike_both_ways(l2, reads):
    """Beside sharpnesses of 3 and 9: from 9 / 2 to 2 x 3."""
    assert verdict(HOLDS[FLAT] | {("manual_l2", "sharpness"): l2}, FLAT, NOW) == reads


@pytest.mark.parametrize("radius", [0.05, 0.3, 5.0])
def test_an_affine_part_that_hurts_is_no_engine(radius):
    """Whatever the radius does."""
    changes: Changes = {
        ("manual_l2", "calibrated_loss"): 0.1,
        ("manual_l2_affine", "calibrated_loss"): 0.2,
        ("layernorm_plain", "calibrated_loss"): radius,
    }
    assert verdict(changes, AFFINE, NOW) == "fails"


def test_the_numbers_behind_a_verdict_are_in_words():
    found = claims(cells({**HOLDS[COLLAPSE], ("none", RANK): 2.5}), recall()).iloc[COLLAPSE]
    for column in ("as published", "corrected"):
        assert "No norm 2.50" in found[column]
        assert "LayerNorm 3.00" in found[column]


def test_the_baseline_is_shown_at_layernorms_rate_where_it_was_trained():
    table = cells({})
    matched = row(("copy", "none", PUBLISHED["layernorm"]), "loss", 7.25, 1)
    both = pd.concat([table, pd.DataFrame([matched])], ignore_index=True)
    words = "without norm at LayerNorm's rate: {}."
    assert words.format("7.25") in claims(both, recall())["as published"].iloc[NEEDED]
    assert words.format("–") in claims(table, recall())["as published"].iloc[NEEDED]


@pytest.mark.parametrize("claim", [L2_FAILS, FLAT])
def test_an_arm_that_is_not_asked_about_may_diverge(claim):
    lost: Changes = {("none", measure): NAN for measure in (*MEASURES, *HEIGHTS)}
    reads = [verdict(together(HOLDS, claim) | lost, claim, column) for column in (WAS, NOW)]
    assert reads == ["holds"] * 2


def test_a_measure_that_is_not_asked_about_may_be_missing():
    changes = together(HOLDS, NEEDED) | {("layernorm", "sharpness"): NAN}
    assert [verdict(changes, NEEDED, column) for column in (WAS, NOW)] == ["holds"] * 2


def test_an_interval_around_an_alike_value_decides_nothing():
    """Both ends of Unit L2's interval are unlike the others, its mean is theirs."""
    changes: Changes = {(arm, "sharpness"): 3.0 for arm in NEEDS[FLAT]}
    changes["manual_l2", "sharpness"] = (3.0, 0.5, 7.0)
    for column in (WAS, NOW):
        assert verdict(changes, FLAT, column, was=6).startswith("undecided")
