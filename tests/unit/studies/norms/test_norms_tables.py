"""Tables of the study of norms: differences over texts, and the learning rates that were tried."""

import math

import pandas as pd
import pytest
from scipy import stats

from normscope.studies.cells import Cell
from normscope.studies.norms.recipe import NormsTables
from normscope.studies.norms.tabulate import compare, tried

RATES = {0.001: 2.0, 0.002: 1.5, 0.005: None}  # None: a pilot model diverged
RECIPE = NormsTables(
    jobs={},
    texts={},
    eval_tokens={},
    level=0.95,
    arm="layernorm",
    placement="pre",
    rates=[(Cell("width_64", "rmsnorm", "pre", rate), loss) for rate, loss in RATES.items()],
)
ABOVE = {
    1: 0.1,
    2: 0.3,
    101: -0.1,
    102: -0.1,
    201: 0.5,
}  # the last has no LayerNorm to compare with


def models(*texts: str) -> pd.DataFrame:
    """RMSNorm above LayerNorm by ``ABOVE``; each hundred of seeds learns the next text."""
    rows = [
        {"arm": arm, "seed": seed, "text": texts[seed // 100 % len(texts)], "capped_loss": loss}
        for seed, above in ABOVE.items()
        for arm, loss in (("layernorm", 2.0 + seed / 1000), ("rmsnorm", 2.0 + seed / 1000 + above))
        if arm == "rmsnorm" or seed != 201
    ]
    shared = {"protocol": "width_64", "placement": "pre", "learning_rate": 0.002}
    return pd.DataFrame(rows).assign(**shared, failed=0, pilot_edge=False)


@pytest.mark.parametrize(
    ("texts", "units", "worse"),
    [(("a", "b", "c"), [0.2, -0.1], 0.5), (("a",), [0.1, 0.3, -0.1, -0.1], 0.5)],
    ids=["texts are the unit", "seeds are, of one text"],
)
def test_a_difference_is_paired_by_seed_and_averaged_over_the_models_of_a_text(texts, units, worse):
    reference, row = compare(models(*texts), RECIPE).to_dict("records")
    low, high = stats.t.interval(0.95, len(units) - 1, stats.tmean(units), stats.sem(units))
    assert row["difference"] == pytest.approx(stats.tmean(units))
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high))
    assert (row["n"], row["texts"], row["worse"]) == (5, len(texts), worse)
    assert (row["rate"], row["at_edge"]) == (0.002, False)
    assert math.isnan(reference["difference"])
    assert math.isnan(reference["worse"])


def test_the_best_rate_is_marked_and_one_at_which_a_model_diverged_has_no_loss():
    table = tried(RECIPE)
    assert list(table["is_best"]) == [False, True, False]
    assert table["loss"].isna().tolist() == [False, False, True]
    assert tried(RECIPE.model_copy(update={"rates": []})).empty
