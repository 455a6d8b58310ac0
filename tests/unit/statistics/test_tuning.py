"""Settings chosen by other seeds: against a loop over seeds, and what noise gains by choosing."""

import math

import numpy as np
import pandas as pd
import pytest

from normscope.statistics.tuning import choose, commonest_setting

RATES = (0.001, 0.003, 0.01)


def table(losses: np.ndarray) -> pd.DataFrame:
    """One row per model, from losses (seeds, rates)."""
    return pd.DataFrame(
        {"arm": "a", "seed": seed, "learning_rate": rate, "loss": losses[i, j]}
        for j, rate in enumerate(RATES)
        for i, seed in enumerate(range(7, 7 + len(losses)))
    )


def test_every_seed_has_the_rate_that_is_best_over_the_others():
    losses = np.random.default_rng(0).normal(2, 0.1, (6, 3))
    picked = choose(table(losses), ["arm"], by="loss").set_index("seed")
    for i, seed in enumerate(range(7, 13)):
        best = np.delete(losses, i, axis=0).mean(axis=0).argmin()
        assert picked.loc[seed, "learning_rate"] == RATES[best]
        assert picked.loc[seed, "loss"] == losses[i, best]


@pytest.mark.parametrize(
    ("best", "rates", "at_edge"), [(0, 3, True), (1, 3, False), (2, 3, True), (0, 2, False)]
)
def test_the_least_and_the_greatest_of_three_are_at_the_edge(best: int, rates: int, at_edge: bool):
    losses = np.full((4, 3), 2.0)
    losses[:, best] = 1.0
    tried = table(losses)
    picked = choose(tried[tried["learning_rate"].isin(RATES[:rates])], ["arm"], by="loss")
    assert commonest_setting(picked) == {"rate": RATES[best], "at_edge": at_edge}


def test_rates_are_compared_on_seeds_that_have_them_all():
    """Seed 9 was trained at one rate alone, seed 8 chooses by seed 7."""
    losses = table(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [0.0, 9.0, 9.0]]))
    some = losses[(losses["seed"] != 9) | (losses["learning_rate"] == 0.003)]
    picked = choose(some, ["arm"], by="loss").set_index("seed")["learning_rate"]
    assert picked.to_dict() == {7: 0.01, 8: 0.001, 9: 0.003}


def test_a_rate_whose_loss_is_unknown_is_not_chosen():
    """Without its NaN, the first rate would be the best by far."""
    losses = np.array([[math.nan, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 2.0, 3.0]])
    picked = choose(table(losses), ["arm"], by="loss").set_index("seed")["learning_rate"]
    assert picked.to_dict() == {7: 0.001, 8: 0.003, 9: 0.003}


def piloted(losses: list[float], edges: list[bool | None]) -> pd.DataFrame:
    """Two models per rate, whose own losses are least at the first, and the pilot's columns."""
    models = table(np.array([[1.0, 9.0, 9.0]] * 2))
    of_rate = dict(zip(RATES, zip(losses, edges, strict=True), strict=True))
    known = [of_rate[rate] for rate in models["learning_rate"]]
    return models.assign(
        pilot_loss=[loss for loss, _ in known],
        pilot_edge=pd.Series([edge for _, edge in known], dtype=object),
    )


@pytest.mark.parametrize(
    ("losses", "rate", "at_edge"),
    [([3.0, 2.0, 1.0], 0.01, True), ([3.0, 2.0, math.nan], 0.003, False)],  # NaN: one diverged
)
def test_pilot_models_choose_one_rate_for_all_seeds(losses, rate, at_edge):
    picked = choose(piloted(losses, [True, False, True]), ["arm"], by="loss")
    assert picked["seed"].tolist() == [7, 8]
    assert (picked["learning_rate"] == rate).all()
    assert (picked["at_edge"] == at_edge).all()


def test_without_pilot_models_of_every_rate_the_other_seeds_choose():
    models = piloted([math.nan, 2.0, 1.0], [None, False, True])
    assert (choose(models, ["arm"], by="loss")["learning_rate"] == RATES[0]).all()
