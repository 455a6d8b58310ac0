"""What a card measures, and says of losses and learning rates, on what the tests write."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import stored_models
import torch
from pydantic import ValidationError
from recipes import recipe as stack_of

from normscope.custom_arms import name_card_norms
from normscope.io.texts import DATASET, text_of
from normscope.nn.arms import Row, add
from normscope.nn.recipe import Custom, Norm
from normscope.pages.drawing import Look
from normscope.statistics.levels import FEWEST
from normscope.statistics.summary import select
from normscope.studies.card import pages, tabulate
from normscope.studies.card.grid import COMPARED, UNTRAINED, Card, Regime, budgets
from normscope.studies.card.probe import measure_alone, probe
from normscope.studies.card.recipe import CardTables, NormProbe
from normscope.studies.stage import ProbeInputs
from normscope.studies.study import Settings

LOOK = Look(width_mm=160, font_pt=9, level=0.95)
SEEDS = range(11, 19)
NOISE = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 0.0]


def recipe() -> CardTables:
    return Card(norm=["dyt"]).tabulation(Settings(level=0.95, baseline=[]))


def models(losses: dict[tuple[str, str], float], failed: int = 0) -> pd.DataFrame:
    """Runs of arms under regimes, with these mean losses and the same noise by seed."""
    rows = [
        {
            "arm": arm,
            "regime": regime,
            "seed": seed,
            "text": f"text_{i}",
            "learning_rate": 0.01,
            "at_edge": False,
            "capped_loss": loss + (0 if arm == "layernorm" else noise),
            "failed": int(arm != "layernorm" and i < failed),
        }
        for (arm, regime), loss in losses.items()
        for i, (seed, noise) in enumerate(zip(SEEDS, NOISE, strict=True))
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("difference", "failed", "reads"),
    [
        (0.3, 0, "worse"),
        (0.03, 0, "same, within 0.05 nats"),
        (-0.3, 0, "better"),
        (0.3, 5, "5 of 8 models fail"),
        (0.3, 1, "1 of 8 models fail"),
    ],
)
def test_readings_of_a_difference(difference: float, failed: int, reads: str):
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 2.0 + difference}, failed)
    by_arm = tabulate.compare(runs, recipe()).set_index("arm")
    assert by_arm.loc["dyt", "difference"] == pytest.approx(difference)
    assert by_arm.loc["dyt", "reads"] == reads
    assert by_arm.loc["layernorm", "reads"] == "the reference"


def test_few_or_scattered_models_decide_nothing():
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 2.3})
    few = tabulate.compare(runs[runs["seed"] < 16], recipe()).set_index("arm")
    assert few.loc["dyt", "reads"] == "too few texts"
    assert math.isnan(few.loc["dyt", "resolved"])  # pyright: ignore[reportArgumentType]
    scattered = runs.assign(capped_loss=runs["capped_loss"] + 5 * (runs["seed"] % 2))
    scattered.loc[scattered["arm"] == "layernorm", "capped_loss"] = 4.5
    wide = tabulate.compare(scattered, recipe()).set_index("arm")
    assert wide.loc["dyt", "reads"] == "undecided"


def test_the_seeds_of_a_text_are_one_unit():
    runs = models({("layernorm", "short"): 2.0, ("dyt", "short"): 2.3})
    twice = pd.concat([runs, runs.assign(seed=runs["seed"] + 50)])
    twice["capped_loss"] += (twice["arm"] == "dyt") * np.where(twice["seed"] > 50, 0.1, -0.1)
    once, both = (select(tabulate.compare(one, recipe()), arm="dyt") for one in (runs, twice))
    shared = ["texts", "difference", "difference_low", "difference_high", "resolved", "reads"]
    pd.testing.assert_frame_equal(both[shared], once[shared])
    assert [*once["n"], *both["n"]] == [8, 16]


@pytest.mark.parametrize(
    ("losses", "failed", "start", "end"),
    [
        ((2.0, 2.0, 2.0), 0, "DyT trains as well as LayerNorm here", "nats, n = 8 texts"),
        ((2.3, 2.3, 2.3), 0, "DyT trains worse than LayerNorm here", "nats, n = 8 texts"),
        ((1.7, 1.7, 1.7), 8, "DyT trains less reliably than LayerNorm here", "nats, n = 8 texts"),
        (
            (2.3, 1.7, 2.3),
            0,
            "DyT trains better than LayerNorm after 1,000 steps: −0.300 ",
            "nats, n = 8 texts; 300 steps: worse; 4 blocks: worse",
        ),
    ],
)
def test_the_answer_of_a_card_rests_on_the_longest_training(losses, failed, start, end):
    rows = {("layernorm", regime): 2.0 for regime in COMPARED}
    rows |= {("dyt", regime): loss for regime, loss in zip(COMPARED, losses, strict=True)}
    runs = models(rows, failed)

    def headline(runs: pd.DataFrame, norm: str = "dyt") -> str:
        tables = {"compared": tabulate.compare(runs, recipe())}
        return pages.headline(
            pages.Cards(Card(norm=["dyt"]), tables, pd.DataFrame(), LOOK, {}), norm
        )

    assert headline(runs).startswith(start)
    assert headline(runs).endswith(end)
    assert "is the norm that the others are compared with" in headline(runs, "layernorm")
    few = runs[runs["seed"] < 16].assign(failed=0)
    assert headline(few).startswith("DyT may train better or worse than LayerNorm here")
    for arm in ("layernorm", "dyt"):  # a better rate may lie beyond, of either
        at_edge = runs.assign(at_edge=runs["arm"] == arm)
        assert "at the learning rates tried" in headline(at_edge)


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_backward_pass_that_is_no_derivative_is_named(
    is_exact: bool, request: pytest.FixtureRequest
):
    request.addfinalizer(add)
    custom = Custom(name="n.py:N", code="0", is_exact=is_exact)
    add(Row("mine", "Mine", "n.py:N", {"statistic": "custom", "custom": custom.model_dump()}))
    rows = {(arm, regime): 2.0 for arm in ("layernorm", "mine") for regime in COMPARED}
    tables = {"compared": tabulate.compare(models(rows), recipe())}
    tables["runs"] = tables["trials"] = pd.DataFrame({"parameters": [1], "text": [DATASET]})
    cards = pages.Cards(Card(norm=["mine"]), tables, pd.DataFrame(), LOOK, {})
    assert pages.page_words(cards, "mine")["inexact"] != is_exact


def test_ranges_of_learning_rates():
    losses = {0.001: 2.04, 0.003: 2.0, 0.01: 2.2, 0.03: 2.01, 0.1: 4.0}
    trials = pd.DataFrame(
        {"arm": "dyt", "learning_rate": r, "val_loss": x, "failed": int(x > 3)}
        for r, x in losses.items()
    )
    runs = pd.DataFrame({"arm": "dyt", "learning_rate": 0.003, "failed": [0, 0]})
    (row,) = tabulate.sensitivity(trials, runs).to_dict("records")
    # 0.03 is as good, but not in the range without a gap
    ends = {"from": 0.001, "to": 0.003, "stable": 0.03, "largest": 0.1}
    assert row == {"arm": "dyt", "best": 0.003, **ends}
    (row,) = tabulate.sensitivity(trials.assign(failed=1), runs).to_dict("records")
    assert all(math.isnan(row[key]) for key in ("from", "to", "stable"))


def test_a_rate_at_which_a_compared_model_failed_is_not_stable():
    trials = pd.DataFrame(
        {"arm": "dyt", "learning_rate": r, "val_loss": x, "failed": 0}
        for r, x in {0.01: 2.2, 0.03: 2.0}.items()
    )
    runs = pd.DataFrame({"arm": "dyt", "learning_rate": 0.03, "failed": [0, 1]})
    (row,) = tabulate.sensitivity(trials, runs).to_dict("records")
    assert (row["best"], row["stable"]) == (0.03, 0.01)


def test_the_reported_rate_is_the_one_that_was_trained():
    pilots = pd.DataFrame(
        {
            "arm": "dyt",
            "regime": "short",
            "learning_rate": [0.001, 0.001, 0.003, 0.003, 0.01, 0.01],
            "val_loss": [2.2, 2.2, 2.1, 2.1, 1.9, math.nan],
        }
    )
    (row,) = tabulate.best_rates(pilots).to_dict("records")
    assert (row["learning_rate"], row["at_edge"]) == (0.003, False)


def test_budgets_can_decide_what_they_compare():
    for name, regimes in budgets().items():
        resolved = Card(norm=["dyt"], budget=name).resolution()
        assert {*COMPARED} <= {*regimes}
        assert name == "demo" or all(nats < 0.05 for nats in resolved.values())
        config = Card(norm=["dyt"], budget=name)
        # the folder of the default text, which comes first, has those of the others
        assert all(texts[0] == DATASET for texts in config.job_texts().values())
        for sweep in config.trainings().values():
            assert not {*sweep.seeds} & {*sweep.pilot_seeds}
            tested, piloted = (
                Counter(text_of(sweep.texts, seed) for seed in seeds)
                for seeds in (sweep.seeds, sweep.pilot_seeds)
            )
            assert len({*tested.values()}) == 1  # as many models of each text
            assert name == "demo" or not tested.keys() & piloted.keys()
    assert Regime().training.learning_rate == 0.001
    assert UNTRAINED >= FEWEST


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ({"norm": []}, "at least 1 item"),
        ({"norm": ["dyt", "dyt"]}, "given twice: dyt"),
        ({"norm": ["nonsense"]}, "unknown arm 'nonsense'"),
        ({"norm": ["dyt"], "budget": "5 mn"}, "no budget '5 mn'; did you mean 5 min?"),
        ({"norm": ["dyt"], "seeds": 3}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_cards(card: dict[str, Any], reason: str):
    with pytest.raises(ValidationError, match=re.escape(reason)):
        Card.model_validate(card)


def test_classes_become_arms():
    raw: dict[str, Any] = {
        "arms": {"mine": {"module": "a.py:Mine", "label": "Mine"}},
        "card": {
            "norm": "x/a.py:MyNorm torch.nn:LayerNorm  b.py:LayerNorm\nc.py:Dyt d.py:_Null dyt "
            "mine a.py:Mine my  norms/it's.py:N"
        },
    }
    name_card_norms(raw)
    names = "my_norm layer_norm b_layer_norm c_dyt norm_null dyt mine a_mine n"
    assert raw["card"]["norm"] == names.split()
    assert raw["arms"] == {
        "mine": {"module": "a.py:Mine", "label": "Mine"},
        "my_norm": {"module": "x/a.py:MyNorm"},
        "layer_norm": {"module": "torch.nn:LayerNorm"},
        "b_layer_norm": {"module": "b.py:LayerNorm"},
        "c_dyt": {"module": "c.py:Dyt"},
        "norm_null": {"module": "d.py:_Null"},
        "a_mine": {"module": "a.py:Mine"},
        "n": {"module": "my  norms/it's.py:N"},
    }
    unchanged: list[Any] = [{}, {"card": None}, {"card": {}}, {"card": {"norm": 3}}, []]
    for other in unchanged:
        name_card_norms(other)


@pytest.mark.parametrize(("losses", "sound"), [([1.5, None], [1]), ([None, None], [])])
def test_models_that_diverged_count_at_their_start_alone(losses, sound, tmp_path: Path, data: Path):
    stack = stack_of("dyt", "pre", seeds=[1, 2])
    stored_models.write(tmp_path / "models", stack, losses)
    measured = NormProbe(
        norm=stack.norm, texts=[DATASET], windows=2, depths=[3], inits=["gpt2"], seeds=[3]
    )
    inputs = ProbeInputs(models=tmp_path, name="models", data=data)
    tables = probe(measured, inputs, torch.device("cpu"))
    layers = tables["layers"].groupby("state")["seed"].unique().map(sorted).to_dict()
    assert layers == {"start": [1, 2]} | ({"trained": sound} if sound else {})
    assert tables["outputs"]["seed"].tolist() == sound
    assert tables["outputs"].notna().all(axis=None)


@pytest.mark.parametrize(("factor", "scale"), [("self.gain", 0), ("0", math.nan)])
def test_a_norm_whose_output_is_zero_at_the_start_is_measured_with_other_gains(
    factor, scale, tmp_path: Path
):
    (tmp_path / "n.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class N(nn.Module):\n"
        "    def __init__(self, d):\n"
        "        super().__init__()\n"
        "        self.gain = nn.Parameter(torch.zeros(d))\n"
        "    def forward(self, x):\n"
        f"        return {factor} * x / x.square().mean(-1, keepdim=True).sqrt()\n"
    )
    custom = Custom(name="n.py:N", folder=str(tmp_path), code="0")
    measured = NormProbe(
        norm=Norm(statistic="custom", custom=custom),
        **{"texts": [DATASET], "windows": 2, "depths": [3], "inits": ["gpt2"], "seeds": [3]},
    )
    row = measure_alone(measured, 32)
    assert row["scale"] == pytest.approx(scale, abs=1e-9, nan_ok=True)
    assert row["nearest"] == ("" if math.isnan(scale) else "rmsnorm")
