"""The scripts of the Jacobian study, on tiny models: sound, diverged, without norms."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import processes
import pytest
import stored_models
import torch
from recall_recipes import by
from recipes import DATA, recipe

from normscope.measure.names import SURROGATES
from normscope.studies.jacobian.grid import SET_BY_RUNS, Jacobian
from normscope.studies.jacobian.measures import GRADIENT, LAYER, MEASURES
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.studies.study import Settings
from normscope.train.trained import transformers

LAYERS_HEADER = ",".join(["seed", *LAYER, *MEASURES])
GRADIENTS_HEADER = ",".join(["seed", *GRADIENT])
TABLES = Jacobian.TABLES
NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]
WINDOWS = 3
OF_A_CELL = set(SET_BY_RUNS)


def grid(**block: Any) -> Jacobian:
    """LayerNorm under feedback alignment, exact and with two surrogates; 3 seeds, 2 rates."""
    run = recipe(tied_head=False)
    shared = {
        "model": run.model.model_dump(exclude=OF_A_CELL),
        "training": run.training.model_dump(),
    }
    runs = {
        "protocol": "small",
        "arms": ["layernorm"],
        "attention": ["softmax"],
        "feedback": ["fa"],
        "norm_backward": ["exact", "center_scale", "straight_through"],
        "learning_rates": [0.01, 0.1],
        "seeds": [1, 2, 3],
    }
    return Jacobian.model_validate(
        {
            "protocols": {
                "small": {"placement": "pre", **shared},
                "script": {"placement": "pre", **shared},
                "without": {"placement": "none", **shared},
            },
            "published": "script",
            "corrected": "small",
            "runs": [runs | block],
            "windows": WINDOWS,
        }
    )


def decompose(place: Path, data: Path, models: Path, out: Path) -> processes.Script:
    paths = {"models": models.parent, "name": models.name, "data": data, "out": out}
    arguments = processes.flags(recipe=JacobianProbe(windows=WINDOWS), **paths)
    return processes.Script("probe jacobian", arguments, place / "log")


def collect(place: Path, jacobian: Jacobian, data: Path) -> processes.Script:
    recipe = jacobian.tabulation(Settings(level=0.95, baseline=[]))
    paths = {"models": place / "models", "probes": place / "probes", "data": data}
    arguments = processes.flags(recipe=recipe, out=place / "tables", **paths)
    return processes.Script("make_tables jacobian", arguments, place / "log")


class Measured:
    """Models of the grid, those with the exact norm taken apart, their seed 3 diverged.

    Losses are 1/2, 9/16, ... at a rate of 0.01. Another rate is worse by 1/2 in every cell, and all
    its measures are 0.875.
    """

    EXACT = "small-layernorm-softmax-fa-exact-all-1.0-0.0-0.01-1"

    def __init__(self, place: Path, data: Path) -> None:
        self.place, self.models = place, place / "models" / self.EXACT
        trained = grid().trainings()
        for i, name in enumerate(name for name in trained if "-0.01-" in name):
            losses = [0.5 + (3 * i + k) / 16 for k in range(3)]
            if name == self.EXACT:
                losses = [*losses[:2], None]
            other = name.replace("-0.01-", "-0.1-")
            worse = [None if loss is None else loss + 0.5 for loss in losses]
            stored_models.write(place / "models" / name, trained[name], losses)
            stored_models.write(place / "models" / other, trained[other], worse)
        out = place / "probes" / self.EXACT
        self.log = decompose(place, data, self.models, out).succeed()
        self.layers = pd.read_csv(out / "layers.csv")
        self.gradients = pd.read_csv(out / "gradients.csv")
        other = place / "probes" / self.EXACT.replace("0.01", "0.1")
        other.mkdir()
        other_measures = dict.fromkeys(MEASURES, 0.875)
        self.layers.assign(**other_measures).to_csv(other / "layers.csv", index=False)
        self.gradients.assign(cosine=0.875).to_csv(other / "gradients.csv", index=False)
        self.collected = collect(place, grid(), data).succeed()

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.place / "tables" / f"{name}.csv")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, data) -> Measured:
    return Measured(tmp_path_factory.mktemp("measured"), data)


def test_every_sound_model_has_a_row_a_layer_signal_and_variant(measured):
    assert ",".join(measured.layers.columns) == LAYERS_HEADER
    sound = measured.layers[measured.layers["seed"] < 3]
    kinds = [("own", "corrected"), ("backprop", "corrected"), ("own", "published")]
    keys = ["seed", "signal", "variant", "layer"]
    assert list(sound[keys].itertuples(index=False, name=None)) == [
        (seed, *kind, layer) for seed in (1, 2) for kind in kinds for layer in NAMES
    ]
    assert set(sound["tokens"]) == {WINDOWS * 8}
    corrected = sound[sound["variant"] == "corrected"]
    assert corrected[[m for m in MEASURES if m != "alignment"]].notna().all(axis=None)
    assert corrected["error_closed_form"].max() < 1e-12
    assert (corrected["alignment"].notna() == (corrected["signal"] == "own")).all()


def test_a_diverged_model_has_rows_without_measures_and_is_named(measured):
    assert "seed 3: diverged at step 4; its rows stay empty" in measured.log
    lost = measured.layers[measured.layers["seed"] == 3]
    assert lost["layer"].tolist() == NAMES
    assert set(lost["variant"]) == {"corrected"}
    assert lost[["tokens", *MEASURES]].isna().all(axis=None)


def test_the_measures_are_of_validation_windows_spread_over_the_split(measured):
    """sigma at the first norm, from the embeddings of windows cut by hand."""
    model = transformers(measured.models)[1][1]
    val = torch.from_numpy(DATA.val.astype(int))
    starts = [0, (len(val) - 1 - 8) // 2, len(val) - 1 - 8]
    tokens = torch.stack([val[i : i + 8] for i in starts])
    embedded = model.double().token_embedding(tokens) + model.position_embedding.weight
    sigma = (embedded.var(-1, correction=0) + 1e-5).sqrt()
    row = by(measured.layers, "seed", "signal", "variant", "layer")[1, "own", "corrected", NAMES[0]]
    assert row["sigma_mean"] == pytest.approx(sigma.mean().item(), rel=1e-8)


def test_all_tables_are_collected(measured):
    assert "no norm layer" not in measured.collected
    tables = {name: measured.table(name) for name in TABLES}
    assert tables["layers"]["protocol"].tolist() == ["small"] * 2 * len(measured.layers)
    assert tables["layers"]["norm_backward"].tolist() == ["exact"] * 2 * len(measured.layers)
    assert tables["layers"]["learning_rate"].value_counts().to_dict() == {
        rate: len(measured.layers) for rate in (0.01, 0.1)
    }
    assert len(tables["gradients"]) == 2 * len(measured.gradients)
    assert set(tables["gradients"]["norm_backward"]) == set(SURROGATES)
    losses = by(tables["losses"], "norm_backward", "learning_rate", "seed")
    assert len(losses) == 2 * 9
    assert losses["center_scale", 0.01, 2]["capped_loss"] == 0.75
    lost = losses["exact", 0.01, 3]
    assert math.isnan(lost["val_loss"])
    assert (lost["diverged_at"], lost["failed"]) == (4, 1)
    assert lost["capped_loss"] == pytest.approx(math.log(DATA.vocab_size))
    assert tables["chosen"]["learning_rate"].tolist() == [0.01] * 9
    rows = by(tables["costs"], "norm_backward")
    assert {rule: (row["n"], row["diverged"]) for rule, row in rows.items()} == {
        "center_scale": (3, 1),
        "straight_through": (3, 1),
    }
    for i, rule in ((1, "center_scale"), (2, "straight_through")):
        costs = [3 * i / 16, 3 * i / 16, 0.5 + (3 * i + 2) / 16 - math.log(DATA.vocab_size)]
        assert rows[rule]["mean"] == pytest.approx(sum(costs) / 3)


@pytest.fixture(scope="module")
def without_norms(tmp_path_factory, data) -> tuple[Path, str]:
    """The tables of a grid whose one model has no norm, and what the scripts said."""
    place = tmp_path_factory.mktemp("without")
    one = {"arms": ["none"], "protocol": "without", "norm_backward": ["exact"]}
    jacobian = grid(**one, learning_rates=[0.01], seeds=[5])
    ((name, stack),) = jacobian.trainings().items()
    models = stored_models.write(place / "models" / name, stack, [2.0])
    said = decompose(place, data, models, place / "probes" / name).succeed()
    assert f"{models}: the model has no norm layer; nothing to take apart" in said
    assert (place / "probes" / name / "layers.csv").read_text() == f"{LAYERS_HEADER}\n"
    assert (place / "probes" / name / "gradients.csv").read_text() == f"{GRADIENTS_HEADER}\n"
    return place / "tables", collect(place, jacobian, data).succeed()


def test_a_grid_without_norms_has_all_tables_and_the_losses(without_norms, measured):
    place, said = without_norms
    assert "no model has a norm layer" in said
    sizes = {}
    for table in TABLES:
        lines = (place / f"{table}.csv").read_text().splitlines()
        assert lines[0] == ",".join(measured.table(table).columns), table
        sizes[table] = len(lines) - 1
    assert sizes == dict.fromkeys(TABLES, 0) | {"losses": 1, "chosen": 1}
