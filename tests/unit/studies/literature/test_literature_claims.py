"""Statements that are no contrast of two cells, and interactions, tested on planted losses."""

from itertools import pairwise

import pandas as pd
import pytest
from readings import finding

from normscope.studies.literature.tables import TABLES

CELLS = {
    "norm": {"protocol": "small", "arm": "layernorm_plain", "placement": "pre"},
    "detached": {"protocol": "detached", "arm": "layernorm_plain", "placement": "pre"},
    "none": {"protocol": "small", "arm": "none", "placement": "none"},
}
NOISE = (0.004, -0.003, 0.001, -0.002, 0.003, -0.001, 0.002, -0.004)  # of DetachNorm


def planted(norm: float, detached: float, none: float) -> dict[str, pd.DataFrame]:
    """Losses that differ between seeds by much more than between the cells."""
    rows = [
        CELLS[name] | {"seed": seed, "failed": 0, "capped_loss": loss + seed + share * noise}
        for name, loss, share in (("norm", norm, 0), ("detached", detached, 1), ("none", none, 0))
        for seed, noise in enumerate(NOISE)
    ]
    rows += [CELLS["norm"] | {"arm": "layernorm", "seed": s, "capped_loss": 0.0} for s in range(8)]
    return {"literature.chosen": pd.DataFrame(rows).reindex(columns=TABLES["chosen"].names)}


@pytest.mark.parametrize(
    ("losses", "answer"),
    [
        ((2.0, 2.3, 2.4), "holds"),  # derivatives improve by 0.3, forward normalization by 0.1
        ((2.0, 2.1, 2.4), "fails"),
        ((2.0, 2.4, 2.3), "holds"),  # DetachNorm is worse than no norm, as published on Enwiki8
    ],
)
def test_the_two_improvements_are_compared_seed_by_seed(losses, answer):
    norm, detached, none = losses
    found = finding("derivatives_matter_more", "improvements", planted(*losses))
    assert found.answer == answer
    (case,) = found.cases.values()
    assert case.effect == pytest.approx((detached - norm) - (none - detached), abs=1e-9)
    assert case.n == len(NOISE)


def test_a_seed_without_one_of_the_three_models_is_left_out():
    tables = planted(2.0, 2.3, 2.4)
    table = tables["literature.chosen"]
    is_gone = (table["arm"] == "none") & (table["seed"] == 3)
    tables["literature.chosen"] = table[~is_gone]
    (case,) = finding("derivatives_matter_more", "improvements", tables).cases.values()
    assert case.n == len(NOISE) - 1


@pytest.mark.parametrize(
    ("reading", "order"),
    [
        ("order", ("layernorm", "derf_third", "dyt_two")),
        ("default_alpha", ("layernorm", "derf_half", "dyt_half")),
    ],
)
@pytest.mark.parametrize(
    ("losses", "answers"),
    [
        ((2.0, 2.1, 2.3), ["holds", "holds"]),
        ((2.0, 2.3, 2.1), ["holds", "fails"]),  # above the first, and not above the second
        ((2.2, 2.1, 2.3), ["fails", "holds"]),
    ],
)
def test_an_order_is_that_of_its_neighbors(losses, answers, reading, order):
    cell = {"protocol": "long", "placement": "pre", "failed": 0}
    rows = [
        cell | {"arm": arm, "seed": seed, "fitted_loss": loss + (1 + i) * noise}
        for i, (arm, loss) in enumerate(zip(order, losses, strict=True))
        for seed, noise in enumerate(NOISE)
    ]
    table = pd.DataFrame(rows).reindex(columns=TABLES["chosen"].names)
    found = finding("derf_training_loss_order", reading, {"literature.chosen": table})
    assert [case.answer() for case in found.cases.values()] == answers
    assert list(found.cases) == [f"{b} over {a}" for a, b in pairwise(order)]
    differences = [higher - lower for lower, higher in pairwise(losses)]
    assert [case.effect for case in found.cases.values()] == pytest.approx(differences, abs=1e-3)
