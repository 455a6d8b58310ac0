"""Models of the decisive test under which the notebook's statements hold or fail, for tests."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from processes import SCRIPTS

from normscope.ledger.claim import Claim
from normscope.ledger.entry import load
from normscope.ledger.judgement import judge
from normscope.studies.recall.claims import claims
from normscope.studies.recall.grid import Recall
from normscope.studies.recall.measures import HEIGHTS, MEASURES
from normscope.studies.recall.tables import by_cell

NAN = math.nan
ENTRIES = load(SCRIPTS.parent / "data" / "claims.yaml").claims
PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
RATE = 0.001  # of all corrected runs
CORRECTED = (*PUBLISHED, "layernorm_plain", "manual_l2_affine")
ALONE, RANK = "accuracy_without_context", "effective_rank_query"
MEASURED = (*MEASURES, *HEIGHTS)

KEYS = (
    "copy_is_recall",
    "unit_l2_cannot_learn",
    "affine_is_expressive",
    "unit_l2_is_flat",
    "none_collapses",
    "norms_are_needed",
)
RECALL_IS, L2_FAILS, AFFINE, FLAT, COLLAPSE, NEEDED = CLAIMS = range(6)
BOTH = [RECALL_IS, L2_FAILS, FLAT, COLLAPSE, NEEDED]  # decided under the notebook's protocol too
OWN, NOW = "own", "verdict"
SEEDED = CLAIMS[1:]  # tested over seeds
CASES = [*((claim, OWN) for claim in BOTH), *((claim, NOW) for claim in SEEDED)]

OPEN = "undecided: p is above 0.05"
SELECTION = "undecided: runs diverged, and the others are a selection"
LN, BN, L2 = "the pair with LayerNorm", "the pair with BatchNorm", "the pair with Unit L2"
RADIUS = "the pair with radius sqrt(d)"

# the same for every seed, or a value a seed, over and over
Changes = dict[tuple[str, str], float | tuple[float, ...]]
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
# against one arm, where there are several
FAILS: dict[int, Changes] = {
    RECALL_IS: {**HOLDS[RECALL_IS], ("batchnorm", ALONE): 0.8},
    L2_FAILS: {("manual_l2", "accuracy"): 0.95},
    AFFINE: HOLDS[AFFINE] | {("layernorm_plain", "calibrated_loss"): 0.05},
    FLAT: HOLDS[FLAT] | {("batchnorm", "sharpness"): 11.0},
    COLLAPSE: HOLDS[COLLAPSE] | {("manual_l2", RANK): 1.0},
    NEEDED: HOLDS[NEEDED] | {("none", "loss"): 0.5},
}
FAILS_WHERE = {
    AFFINE: f"depends: fails for {RADIUS}; holds for {L2}",
    FLAT: f"depends: holds for {LN}; fails for {BN}",
    COLLAPSE: f"depends: holds for {LN}, {BN}; fails for {L2}",
}
FAILS_EVERYWHERE: dict[int, Changes] = FAILS | {
    AFFINE: HOLDS[AFFINE] | {("manual_l2_affine", "calibrated_loss"): 2.1},
    FLAT: HOLDS[FLAT] | {("manual_l2", "sharpness"): 19.0},
    COLLAPSE: HOLDS[COLLAPSE] | {("none", RANK): 3.1},
}
# three seeds far on the side where it holds, three on the other: so is their mean; the sums of
# sign flips that are as far are those of the three: p is 8/64
SPREAD: dict[int, Changes] = {
    RECALL_IS: HOLDS[RECALL_IS] | {("none", ALONE): (0.1, 0.7)},
    L2_FAILS: {("manual_l2", "accuracy"): (0.05, 0.95)},
    AFFINE: {
        ("manual_l2", "calibrated_loss"): 2.0,
        ("manual_l2_affine", "calibrated_loss"): (0.1, 2.1),
        ("layernorm_plain", "calibrated_loss"): 2.0,
    },
    FLAT: {
        ("layernorm", "sharpness"): 3.0,
        ("batchnorm", "sharpness"): 3.0,
        ("manual_l2", "sharpness"): (3.0, 7.0),
    },
    COLLAPSE: HOLDS[COLLAPSE] | {("none", RANK): (1.0, 3.1)},
    NEEDED: HOLDS[NEEDED] | {("none", "loss"): (3.5, 0.5)},
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


def row(cell: tuple[str, str, float], seed: int, changes: Changes) -> dict[str, Any]:
    """A model of recall.csv, all of 1 but for changes."""
    found: dict[str, Any] = dict(zip(("task", "arm", "learning_rate"), cell, strict=True))
    found |= {"seed": seed, "diverged_at": NAN}
    for measure in ("diverged_at", *MEASURED):
        planted = changes.get((cell[1], measure), found.get(measure, 1.0))
        found[measure] = planted[seed % len(planted)] if isinstance(planted, tuple) else planted
    return found


def runs(changes: Changes, *, was: int = 1, now: int = 6) -> pd.DataFrame:
    """recall.csv: changes are of both protocols."""
    there = [(("copy", arm, rate), was) for arm, rate in PUBLISHED.items()]
    there += [(("recall", arm, RATE), now) for arm in CORRECTED]
    return pd.DataFrame([row(cell, seed, changes) for cell, n in there for seed in range(n)])


def cells(changes: Changes, *, was: int = 1, now: int = 6) -> pd.DataFrame:
    """recall_cells.csv of these runs."""
    return by_cell(runs(changes, was=was, now=now), 0.95)


def lost(arm: str, seeds: Sequence[int]) -> Changes:
    """Some of 7 seeds diverged."""
    gone: dict[str, tuple[float, ...]] = {
        m: tuple(NAN if s in seeds else 1.0 for s in range(7)) for m in MEASURED
    }
    at = tuple(3.0 if s in seeds else NAN for s in range(7))
    return {(arm, measure): values for measure, values in (gone | {"diverged_at": at}).items()}


@functools.cache
def evaluated(changes: tuple, was: int, now: int) -> list[Claim]:
    return claims(runs(dict(changes), was=was, now=now), recall(), ENTRIES, 0.95)


def found(changes: Changes, claim: int, *, was: int = 1, now: int = 6) -> Claim:
    return evaluated(tuple(changes.items()), was, now)[claim]


def verdict(changes: Changes, claim: int, column: str, *, was: int = 1, now: int = 6) -> str:
    """Of a claim, under changes that plant it or under those of all claims that go together."""
    return getattr(found(changes, claim, was=was, now=now), column)


def judged(changes: Changes, claim: int, now: int) -> str:
    """Of all its cases together, alone in a ledger."""
    (judgement,) = judge([found(changes, claim, now=now)], 0.05)
    return judgement.verdict


def together(planted: dict[int, Changes], claim: int) -> Changes:
    """What is planted for a claim with all that goes with it: one table for many claims."""
    if claim == L2_FAILS:
        return planted[claim]
    parts = [changes for other, changes in planted.items() if other != L2_FAILS]
    return {key: value for part in parts for key, value in part.items()}
