"""The scripts of the depth study that read trained models: sound, diverged, damaged, none."""

import math
from pathlib import Path

import pandas as pd
import processes
import pytest
import safetensors.torch
import stored_models
import torch
from depth_recipes import GRID, depth_grid
from recall_recipes import by
from recipes import DATA
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.statistics.outcome import unigram_loss
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.measures import MEASURES
from normscope.studies.depth.recipe import Shape
from normscope.studies.study import Settings

LN, BN = "layernorm-pre-residual-gpt2-2", "batchnorm-pre-residual-gpt2-2"
KEPT = f"{LN}-0.003-2-2"  # the job of LayerNorm's first two seeds at the kept schedule
TABLES = "blocks rates by_block by_shape losses sensitivity trainability".split()
SPECTRUM = ["largest", "smallest", "branch", "lost"]
SEEDS = [2, 10, 3]  # two jobs of a cell; as text, 10 comes before 2


def grid() -> Depth:
    """The small one with three seeds to a cell, of which two are in a job."""
    return depth_grid(trained__0__seeds=SEEDS)


def loss(name: str, seed: int) -> float | None:
    """Of the jobs in order 2, 2.1, ... and a hundredth of the seed; one diverged."""
    if name == f"{BN}-0.003-2-2" and seed == 10:
        return None
    return 2 + list(grid().trainings()).index(name) / 10 + seed / 100


def probe(place: Path, data: Path, depth: Depth, name: str) -> processes.Script:
    recipe, out = depth.probes()[name], place / "probes" / name
    paths = {"name": name, "models": place / "models", "data": data, "out": out}
    arguments = processes.flags(recipe=recipe, **paths)
    return processes.Script("probe depth", arguments, place / "log")


def tables(place: Path, data: Path, depth: Depth) -> processes.Script:
    recipe = depth.tabulation(Settings(level=0.9, baseline=[]))
    paths = {"models": place / "models", "probes": place / "probes", "data": data, "out": place}
    return processes.Script(
        "make_tables depth", processes.flags(recipe=recipe, **paths), place / "tables_log"
    )


class Results:
    """What the scripts write of the small grid, whose models were not trained."""

    def __init__(self, place: Path, data: Path) -> None:
        self.place, self.grid = place, grid()
        for name, stack in self.grid.trainings().items():
            losses = [loss(name, seed) for seed in stack.seeds]
            stored_models.write(place / "models" / name, stack, losses)
        for name in self.grid.probes():
            probe(place, data, self.grid, name).succeed()
        tables(place, data, self.grid).succeed()
        self.blocks = pd.read_csv(place / "probes/pre/blocks.csv")

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.place / f"{name}.csv")


@pytest.fixture(scope="module")
def results(tmp_path_factory, data) -> Results:
    return Results(tmp_path_factory.mktemp("depth"), data)


def test_a_probe_has_a_row_a_block_of_every_model_but_of_the_diverged(results):
    """At the start in the configuration's order, then the trained by job and seed."""
    assert list(results.blocks.columns) == [*Shape._fields, "state", "seed", "block", *MEASURES]
    keys = ["arm", "depth", "state", "seed", "block"]
    ln = [("layernorm", 2, "start", s, b) for s in (1, 2) for b in range(3)]
    ln += [("layernorm", 2, "trained", s, b) for s in (2, 10, 3) for b in range(3)]
    ln += [("layernorm", 3, "start", s, b) for s in (1, 2) for b in range(4)]
    bn = [("batchnorm", 2, "trained", s, b) for s in (2, 3) for b in range(3)]
    with_residual = results.blocks[results.blocks["residual"]]
    assert list(with_residual[keys].itertuples(index=False, name=None)) == ln + bn
    inner = results.blocks[results.blocks["block"] > 0]
    assert inner[[m for m in MEASURES if m not in SPECTRUM]].notna().all(axis=None)
    assert inner.loc[inner["depth"] == 2, SPECTRUM].notna().all(axis=None)
    first = inner[(inner["depth"] == 3) & (inner["block"] == 1)]
    assert first[SPECTRUM].isna().all(axis=None)  # 2 spectra: up to the last


@pytest.mark.parametrize(("state", "seed"), [("start", 2), ("trained", 2), ("trained", 10)])
def test_a_probe_is_of_the_seeds_model_on_windows_of_the_validation_split(results, state, seed):
    """RMS of the embedding and of the first block's gradient, from windows cut by hand."""
    row = by(results.blocks[results.blocks["residual"]], "arm", "depth", "state", "seed", "block")
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 8}
    torch.manual_seed(seed)
    norm = ARMS["layernorm"].norm
    model = Transformer(Model.model_validate(sizes), norm, "pre", DATA.vocab_size)
    if state == "trained":
        path = results.place / "models" / KEPT / "models.safetensors"
        weights, mine = safetensors.torch.load(path.read_bytes()), f"{seed}."
        own = {name.removeprefix(mine): t for name, t in weights.items() if name.startswith(mine)}
        model.load_state_dict(own)
    model.double()
    val = torch.from_numpy(DATA.val.astype(int))
    window = torch.stack([val[:9], val[-9:]])
    x = model.token_embedding(window[:, :-1]) + model.position_embedding.weight
    rms = x.square().mean().sqrt().item()
    assert row["layernorm", 2, state, seed, 0]["activation_rms"] == pytest.approx(rms, rel=1e-8)
    y = x
    for block in model.blocks:
        y = block(y)
    logits = F.linear(model.final_norm(y), model.token_embedding.weight)
    entropy = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
    gradient = torch.autograd.grad(entropy, x)[0].norm().item()
    assert row["layernorm", 2, state, seed, 1]["gradient"] == pytest.approx(gradient, rel=1e-8)


def test_the_tables_collect_all_places_and_jobs(results):
    blocks, losses = results.table("blocks"), results.table("losses")
    paths = [results.place / "probes" / name / "blocks.csv" for name in results.grid.probes()]
    parts = [pd.read_csv(path) for path in paths]
    pd.testing.assert_frame_equal(blocks, pd.concat(parts, ignore_index=True))
    assert len(results.table("rates")) == len(blocks[blocks["block"] == 0])
    rows = by(losses, "arm", "learning_rate", "warmup_steps", "seed")
    assert len(rows) == len(losses) == 2 * 4 * 3
    assert (losses["placement"] + losses["init"] + losses["depth"].astype(str)).unique() == [
        "pregpt22"
    ]
    # jobs 0 and 1 are of LayerNorm's first schedule, 14 and 15 of BatchNorm's last
    assert rows["layernorm", 0.003, 0, 2]["val_loss"] == pytest.approx(2.02)
    assert rows["layernorm", 0.003, 0, 3]["val_loss"] == pytest.approx(2.13)
    assert rows["batchnorm", 0.01, 2, 10]["val_loss"] == pytest.approx(3.5)
    lost = rows["batchnorm", 0.003, 2, 10]
    assert math.isnan(lost["val_loss"])
    assert lost["diverged_at"] == stored_models.LOST_AT
    assert losses["diverged_at"].count() == 1
    assert lost["capped_loss"] == pytest.approx(math.log(DATA.vocab_size))
    assert (lost["failed"], lost["steps"]) == (1, 4)
    at = by(results.table("trainability"), "arm", "learning_rate", "warmup_steps")
    cell = at["batchnorm", 0.003, 2]
    assert (cell["n"], cell["diverged"]) == (3, 1)


def test_the_unigram_loss_is_of_the_targets_of_the_losses(results):
    """Tokens 1 to 29: the first 30 but the first."""
    (unigram,) = set(results.table("losses")["unigram"])
    expected = unigram_loss(DATA.train, DATA.val[1:30], DATA.vocab_size)
    assert unigram == pytest.approx(expected, rel=1e-8)
    assert expected != pytest.approx(
        unigram_loss(DATA.train, DATA.val[1:], DATA.vocab_size), rel=1e-4
    )


def test_without_trained_shapes_the_tables_are_there(results, tmp_path, data):
    depth = depth_grid(trained=[], start=GRID["start"][1:])
    probe(tmp_path, data, depth, "none").succeed()
    tables(tmp_path, data, depth).succeed()
    written = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in TABLES}
    assert written["losses"].empty
    assert written["trainability"].empty
    for name, table in written.items():
        assert list(table.columns) == list(results.table(name).columns)
    assert set(written["by_shape"]["state"]) == {"start"}
