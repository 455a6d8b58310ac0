"""The probes and tables of the main study on stored models, one of which diverged."""

import itertools
import math
import shutil
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
import stored_models
import torch
from main_recipes import GRID, main_grid
from processes import ROOT
from recall_recipes import by
from recipes import DATA
from torch.nn import functional as F

from normscope.io.files import write_json
from normscope.io.tables import as_declared, write_tables
from normscope.nn.model import Transformer
from normscope.statistics.summary import select
from normscope.studies.main.measures import MEASURES
from normscope.studies.main.probe import probe
from normscope.studies.main.tables import TABLES
from normscope.studies.main.tabulate import tabulate
from normscope.studies.stage import ProbeInputs, TableInputs
from normscope.studies.study import Settings
from normscope.train.trained import transformers

LN = "brief-layernorm-pre-0.01-9"
LOST = ("brief-rmsnorm-post-0.01-9", 10)  # the job and seed of a model that diverged
CPU = torch.device("cpu")
MODEL = TABLES["runs"].keys
QK = ("qk", "layernorm", "pre", 0.01, 2)  # the model of its protocol at the chosen rate


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("main")


@pytest.fixture(scope="module")
def tables(place, data) -> dict[str, pd.DataFrame]:
    """The tables of the small grid. The text that the models learned ends after 200 tokens."""
    training = GRID["protocols"]["brief"]["training"] | {"train_tokens": 200}
    grid = main_grid(protocols__brief__training=training, refined__protocols=["brief", "qk"])
    for i, (name, stack) in enumerate(grid.trainings().items()):
        losses = [None if (name, seed) == LOST else 2 + i / 10 for seed in stack.seeds]
        stored_models.write(place / "models" / name, stack, losses)
    sums = {path.name: sha256(path.read_bytes()).hexdigest() for path in data.iterdir()}
    facts = {"vocab_size": DATA.vocab_size, "sha256": sums}
    facts |= {"train_tokens": len(DATA.train), "val_tokens": len(DATA.val)}
    folders = {"models": place / "models", "data": shutil.copytree(data, place / "data")}
    write_json(folders["data"] / "meta.json", facts)
    for name, recipe in grid.probes().items():
        found = probe(recipe, ProbeInputs(name=name, **folders), CPU)
        write_tables(place / "probes" / name, found)
    recipe = grid.tabulation(Settings(level=0.9, baseline=[]))
    files = {name: ROOT / "data" / name for name in grid.STAGES.files}
    made = tabulate(recipe, TableInputs(probes=place / "probes", files=files, **folders))
    return as_declared(made, TABLES)


def test_the_tables_have_every_model_and_the_probes_those_that_did_not_diverge(tables):
    assert len(tables["runs"]) == 1 + 4 * 3 + 2
    runs, chosen = (tables[n].query("protocol != 'nanogpt'") for n in ("runs", "chosen"))
    is_lost = (runs["arm"] == "rmsnorm") & (runs["placement"] == "post") & (runs["seed"] == 10)
    assert runs[is_lost]["capped_loss"].tolist() == pytest.approx([math.log(DATA.vocab_size)])
    is_small, is_pre = runs["protocol"] == "brief", runs["placement"] == "pre"
    known = {
        **{column.name: ~is_lost for column in MEASURES},
        # in windows of more tokens than the width
        **dict.fromkeys(("unselectable", "unselectable_keys"), ~is_small),
        "recentring_change": is_small & (runs["arm"] == "layernorm") & is_pre,
        # of models of more than two blocks
        **dict.fromkeys(("later_growth_imbalance", "second_gradient_ratio"), runs["seed"].isna()),
        **dict.fromkeys(
            ("frozen_loss", "refined_loss", "one_frozen_loss", "one_refined_loss"), is_pre
        ),
    }
    assert tables["runs"]["gain_last"].notna().eq(tables["runs"]["protocol"] == "nanogpt").all()
    for name, where in known.items():
        assert runs[name].notna().eq(where).all(), name
    assert len(chosen) == 4 * 3 + 1
    blocks = tables["blocks"]
    assert len(blocks) == 2 * (len(chosen) - 1)  # of two blocks; one model diverged
    assert blocks.drop(columns=["protocol", "arm", "placement"]).notna().all(axis=None)
    assert (runs["recentring_change"].dropna() < 1e-6).all()
    norms = tables["norms"]
    refined = chosen[chosen["placement"] == "pre"].set_index(MODEL)
    assert norms.notna().all(axis=None)
    # two in each block and the final norm, and in the other protocol two more in each attention
    assert norms.groupby(MODEL).size().to_dict() == dict.fromkeys(refined.index, 5) | {QK: 9}
    medians = norms.groupby(MODEL)["frozen_loss"].median()
    assert refined["one_frozen_loss"].to_dict() == pytest.approx(medians.to_dict())


def test_the_measures_are_those_of_the_seeds_model_on_windows_of_its_text(place, tables):
    """Against a forward pass written out, on windows that are cut by hand."""
    _, models = transformers(place / "models" / LN)
    model, runs = models[10], select(tables["runs"], protocol="brief", placement="pre")
    row = by(runs, "arm", "seed")["layernorm", 10]
    with torch.no_grad():
        streams, _ = forward(model, cut(DATA.val, [0, len(DATA.val) - 9])[:, :-1])
    x = torch.stack(streams[1:])
    cosine = x.sum(-1) / (x.norm(dim=-1) * math.sqrt(8))
    rms = [stream.square().mean().sqrt() for stream in streams]
    expected = {
        "stream_growth": rms[2] / rms[1],
        "growth_imbalance": abs(1 - 2 * (rms[1] ** 2 - rms[0] ** 2) / (rms[2] ** 2 - rms[0] ** 2)),
        "uniform_energy": 8 * cosine.square().mean(),
        "largest_activation": x.abs().max() / x.abs().median(),
    }
    for name, value in expected.items():
        assert row[name] == pytest.approx(float(value), rel=1e-5), name
    blocks = select(tables["blocks"], protocol="brief", placement="pre", seed=10)
    pair = by(select(blocks, arm="layernorm"), "block")
    for spread, column in (
        ("gradient_spread", "gradient"),
        ("parameter_gradient_spread", "gradient_parameters"),
    ):
        ratio = math.log(pair[1][column] / pair[2][column])
        assert row[spread] == pytest.approx(abs(ratio) / 2)
    assert row["free_blocks"] == float(pair[2]["added_loss"] < 0.05)


def cut(split, starts: list[int]) -> torch.Tensor:
    """Windows of 8 tokens and their targets."""
    return torch.tensor([split[at : at + 9].tolist() for at in starts])


def forward(model: Transformer, tokens: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The stream before the first block and after each, and the logits."""
    x = model.token_embedding(tokens) + model.position_embedding.weight
    streams = [x]
    for block in model.blocks:
        streams.append(block(streams[-1]))
    return streams, F.linear(model.final_norm(streams[-1]), model.token_embedding.weight)


def test_untrained_networks_and_towers_have_a_row_each_and_their_slopes(tables):
    networks = by(tables["networks"], "placement", "depth", "seed")
    assert len(networks) == len(tables["networks"]) == 2 * 2 * 2
    assert all(row["output_change"] > 0 < row["last_gradient"] for row in networks.values())
    pair = [networks["post", depth, 2]["last_gradient"] for depth in (2, 4)]
    slope = by(tables["slopes"], "placement", "seed")["post", 2]["gradient_slope"]
    assert slope == pytest.approx(math.log(pair[1] / pair[0]) / math.log(2), rel=1e-5)
    towers = by(tables["towers"], "arm", "causal", "seed")
    keys = itertools.product(("none", "rmsnorm"), (True, False), (1, 2))
    assert towers.keys() == {*keys}
    assert all(row["collapse_rate"] < 0 for row in towers.values())
