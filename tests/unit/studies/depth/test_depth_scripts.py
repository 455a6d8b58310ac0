"""The scripts of the depth study on stored models, one of which diverged."""

from pathlib import Path

import pandas as pd
import processes
import pytest
import safetensors.torch
import stored_models
import torch
from depth_recipes import depth_grid
from recall_recipes import by
from recipes import DATA
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.statistics.summary import select
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.recipe import Shape
from normscope.studies.depth.tables import MEASURES, TABLES
from normscope.studies.study import Settings

LN, BN = "layernorm-pre-residual-gpt2-2", "batchnorm-pre-residual-gpt2-2"
SPECTRUM = ["largest", "smallest", "branch", "lost"]
SEEDS = [9, 10, 11]  # two jobs of a cell; as text, 10 comes before 9


def loss(job: int, name: str, seed: int) -> float | None:
    """2, 2.1, ... by job, plus a hundredth of the seed; one model diverged."""
    is_lost = name == f"{BN}-0.003-2-4-9" and seed == 10
    return None if is_lost else 2 + job / 10 + seed / 100


def probe_and_tabulate(place: Path, data: Path, depth: Depth) -> dict[str, pd.DataFrame]:
    """What the scripts write into a folder with the models of a grid."""
    paths = {"models": place / "models", "data": data}
    for name, recipe in depth.probes().items():
        out = {"name": name, "out": place / "probes" / name}
        arguments = processes.flags(recipe=recipe, **paths, **out)
        processes.Script("probe depth", arguments, place / "log").succeed()
    recipe = depth.tabulation(Settings(level=0.9, baseline=[]))
    arguments = processes.flags(recipe=recipe, **paths, probes=place / "probes", out=place)
    processes.Script("make_tables depth", arguments, place / "log").succeed()
    return {name: pd.read_csv(place / f"{name}.csv") for name in TABLES}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("depth")


@pytest.fixture(scope="module")
def tables(place, data) -> dict[str, pd.DataFrame]:
    """The tables of the small grid, with three seeds per cell, two of them in one job."""
    grid = depth_grid(trained__0__seeds=SEEDS)
    for i, (name, stack) in enumerate(grid.trainings().items()):
        losses = [loss(i, name, seed) for seed in stack.seeds]
        stored_models.write(place / "models" / name, stack, losses)
    return probe_and_tabulate(place, data, grid)


def test_a_probe_has_a_row_for_each_block_of_every_model_that_did_not_diverge(place, tables):
    """First the models at the start, in the order of the configuration, then the trained ones."""
    blocks = pd.read_csv(place / "probes/pre/blocks.csv")
    assert list(blocks.columns) == [*Shape._fields, "state", "seed", "block", *MEASURES]
    keys = ["arm", "depth", "state", "seed", "block"]
    ln = [("layernorm", 2, "start", s, b) for s in (1, 2) for b in range(3)]
    ln += [("layernorm", 2, "trained", s, b) for s in SEEDS for b in range(3)]
    ln += [("layernorm", 3, "start", s, b) for s in (1, 2) for b in range(4)]
    bn = [("batchnorm", 2, "trained", s, b) for s in (9, 11) for b in range(3)]
    with_residual = blocks[blocks["residual"]]
    assert list(with_residual[keys].itertuples(index=False, name=None)) == ln + bn
    inner = blocks[blocks["block"] > 0]
    assert inner[[m for m in MEASURES if m not in SPECTRUM]].notna().all(axis=None)
    assert inner[SPECTRUM].isna().eq(inner["block"] == 1, axis=0).all(axis=None)
    parts = [pd.read_csv(place / f"probes/{name}/blocks.csv") for name in ("pre", "post", "none")]
    whole = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(tables["blocks"], whole[TABLES["blocks"].names])


@pytest.mark.parametrize(("state", "seed"), [("start", 2), ("trained", 9), ("trained", 10)])
def test_a_probe_is_of_the_seeds_model_on_windows_of_the_validation_split(
    place, tables, state, seed
):
    """RMS of the embedding and gradient at the first block, on windows that are cut by hand."""
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 8}
    torch.manual_seed(seed)
    norm = ARMS["layernorm"].norm
    model = Transformer(Model.model_validate(sizes), norm, "pre", DATA.vocab_size)
    if state == "trained":
        stored = (place / f"models/{LN}-0.003-2-4-9/models.safetensors").read_bytes()
        weights = safetensors.torch.load(stored).items()
        mine = f"{seed}."
        model.load_state_dict({n.removeprefix(mine): t for n, t in weights if n.startswith(mine)})
    model.double()
    val = torch.from_numpy(DATA.val.astype(int))
    window = torch.stack([val[:9], val[-9:]])
    x = y = model.token_embedding(window[:, :-1]) + model.position_embedding.weight
    for block in model.blocks:
        y = block(y)
    logits = F.linear(model.final_norm(y), model.token_embedding.weight)
    entropy = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
    gradient = torch.autograd.grad(entropy, x)[0].norm().item()
    blocks = select(tables["blocks"], placement="pre", residual=True)
    row = by(blocks, "arm", "depth", "state", "seed", "block")
    rms = x.square().mean().sqrt().item()
    assert row["layernorm", 2, state, seed, 0]["activation_rms"] == pytest.approx(rms, rel=1e-8)
    assert row["layernorm", 2, state, seed, 1]["gradient"] == pytest.approx(gradient, rel=1e-8)
