"""The verdict on a retrained model: it agrees, differs, or lies within its seeds."""

import math

import pandas as pd
import pytest

from normscope.statistics.agreement import agreement, agreements

NAN = math.nan


@pytest.mark.parametrize(
    ("was", "now", "spread", "word"),
    [
        (2.0, 2.019, 0.001, "agrees"),
        (2.0, 1.981, NAN, "agrees"),
        (2.0, 2.03, 0.01, "differs"),  # its seeds lie closer than that
        (2.0, 2.03, NAN, "differs"),
        (2.0, 2.5, 0.2, "within its seeds"),
        (2.0, 2.7, 0.2, "differs"),
        (NAN, NAN, 0.01, "agrees"),  # it diverges here as there
        (NAN, 2.0, 0.5, "differs"),
        (2.0, NAN, 0.5, "differs"),
    ],
)
def test_a_model_that_is_trained_again(was: float, now: float, spread: float, word: str) -> None:
    assert agreement(was, now, spread) == word


def losses(**seeds: float) -> pd.DataFrame:
    """metrics.csv of models, by ``s`` and their seed."""
    return pd.DataFrame({"seed": [int(s[1:]) for s in seeds], "val_loss": list(seeds.values())})


def test_models_of_a_job_are_compared_seed_by_seed():
    was = losses(s1=2.0, s2=2.01, s3=2.02)
    assert agreements(was, losses(s3=2.02, s2=2.06, s1=2.0)) == {
        **{1: "agrees", 2: "differs", 3: "agrees"},
    }
    # the seeds of the cell end on two plateaus
    apart = losses(s1=2.0, s2=2.0, s3=1.0)
    assert agreements(apart, losses(s1=1.0, s2=2.0, s3=1.0))[1] == "within its seeds"


def test_a_model_in_only_one_table_is_missing():
    assert agreements(losses(s1=2.0, s2=2.0), losses(s2=2.0, s3=2.0)) == {
        **{1: "missing", 2: "agrees", 3: "missing"},
    }
    assert set(agreements(losses(s1=2.0).iloc[:0], losses(s1=2.0)).values()) == {"missing"}
