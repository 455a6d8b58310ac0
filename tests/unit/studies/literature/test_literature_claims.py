"""Statements that are no contrast of two cells, and interactions, tested on planted losses."""

import itertools
from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
import pytest
from readings import finding

from normscope.ledger.case import MIXTURE
from normscope.studies.literature.tables import TABLES
from normscope.studies.literature.tabulate import differences

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


FACTORS = ("norm", "placement", "optimizer")
CHANGED = ("layernorm", "post", "small_muon")  # of each factor; the other value is the baseline's


def crossed(*effect: str, failing: Sequence[str] = ()) -> dict[str, pd.DataFrame]:
    """Losses of all eight cells, in which these factors have an effect of 0.3 nats together.

    It is added where all of them are changed. Every factor alone has a large effect. The models of
    the baseline fail in some protocols.
    """
    rows = []
    for is_changed in itertools.product((False, True), repeat=3):
        loss = 2 + sum(size * bit for size, bit in zip((0.5, 0.7, 0.9), is_changed, strict=True))
        loss += 0.3 * all(is_changed[FACTORS.index(factor)] for factor in effect)
        pairs = zip(CHANGED, ("rmsnorm", "pre", "small"), is_changed, strict=True)
        arm, placement, protocol = (new if bit else old for new, old, bit in pairs)
        cell = {"protocol": protocol, "arm": arm, "placement": placement, "learning_rate": 0.01}
        cell |= {"failed": int(protocol in failing and (arm, placement) == ("rmsnorm", "pre"))}
        scatter = 1 if all(is_changed) else 0
        rows += [
            cell | {"seed": seed, "capped_loss": loss + seed + scatter * noise}
            for seed, noise in enumerate(NOISE)
        ]
    return {"literature.differences": differences(pd.DataFrame(rows), "rmsnorm", "pre")}


@pytest.mark.parametrize(
    ("effect", "placement", "norm", "all_three"),
    [
        (["norm", "placement"], "holds", "holds", "holds"),
        (["placement", "optimizer"], "fails", "holds", "holds"),
        (["norm", "optimizer"], "holds", "fails", "holds"),
        (["norm", "placement", "optimizer"], "fails", "fails", "fails"),
    ],
)
def test_each_question_on_interactions_sees_the_factors_that_it_names(
    effect, placement, norm, all_three
):
    """A contrast over other cells, or a sign that is exchanged in one of them, is found.

    Two factors are compared at a value of the third, at which an effect of all three is one of two.
    """
    tables = crossed(*effect)
    answers = [
        finding(*asked, tables).answer
        for asked in (
            ("placement_depends_on_optimizer", "muon"),
            ("norm_depends_on_optimizer", "muon_post"),
            ("norm_placement_and_optimizer", "muon"),
        )
    ]
    assert answers == [placement, norm, all_three]
    (case,) = finding("norm_placement_and_optimizer", "muon", tables).cases.values()
    assert case.effect == pytest.approx(0.3 * (len(effect) == 3), abs=1e-3)


@pytest.mark.parametrize("protocol", ["small", "small_muon"])
def test_an_interaction_is_open_if_a_model_failed_with_which_others_are_compared(protocol):
    """The four cells that are compared at last are trained; the baseline's cell is not."""
    tables = crossed("norm", "placement", "optimizer", failing=[protocol])
    for key, reading in (
        ("placement_depends_on_optimizer", "muon_rmsnorm"),
        ("norm_placement_and_optimizer", "muon"),
    ):
        (case,) = finding(key, reading, tables).cases.values()
        assert case.open == MIXTURE
        assert case.seeds == tuple(range(len(NOISE)))
