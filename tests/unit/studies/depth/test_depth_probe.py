"""Signals of blocks, compared with autograd and closed forms; and the scripts on stored models."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import safetensors.torch
import stored_models
import torch
from depth_recipes import Linear, T, dense, depth_grid, normal, orthogonal, tokens, transformer
from recall_recipes import by
from recipes import DATA
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.signals import angle, signals
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.statistics.summary import select
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.probe import measure
from normscope.studies.depth.recipe import Shape
from normscope.studies.depth.tables import MEASURES, TABLES
from normscope.studies.depth.tabulate import rates
from normscope.studies.study import Settings

D, N = 6, 10  # width, tokens


@pytest.mark.parametrize("degrees", [0.0, 1e-3, 30.0, 90.0, 135.0, 180.0])
@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e150])
def test_an_angle_is_that_of_a_rotation(degrees, scale):
    basis = orthogonal(4)
    turn = math.radians(degrees)
    x = 5 * basis[0].expand(3, 4)
    y = scale * (math.cos(turn) * basis[0] + math.sin(turn) * basis[1]).expand(3, 4)
    assert angle(x, y) == pytest.approx(degrees, abs=5e-6)


def test_without_residuals_gradients_far_below_the_root_of_the_least_number_are_measured():
    """Scaling by 1e-50 in 6 blocks: 1e-250 and 1e-300, whose squares are 0."""
    blocks = [Linear(1e-50 * orthogonal(D), residual=False) for _ in range(6)]
    x, c = normal(N, D, seed=1).requires_grad_(), normal(N, D, seed=2)

    def loss() -> Tensor:
        return (nn.Sequential(*blocks)(x) * c).sum()

    rows, _ = signals(loss, blocks)
    for at, row in enumerate(rows[1:], 1):
        expected = c.norm().item() * 10.0 ** (-50 * (7 - at))
        assert row["gradient"] == pytest.approx(expected, rel=1e-8)
    shape = dict.fromkeys([*Shape._fields, "state", "seed"], 0)
    table = pd.DataFrame([shape | row for row in rows])
    table = table.reindex(columns=TABLES["blocks"].names)
    assert rates(table)["gradient_rate"].item() == pytest.approx(1e-50, rel=1e-6)


def loss_of(model: nn.Module) -> Tensor:
    return F.cross_entropy(model(tokens(1)).flatten(0, 1), tokens(2).flatten())


@pytest.mark.parametrize(
    ("arm", "placement", "residual"),
    [
        ("layernorm", "pre", True),
        ("layernorm", "pre", False),
        ("rmsnorm", "post", True),
        ("batchnorm", "peri", True),
        ("none", "none", True),
        ("none", "none", False),
    ],
)
def test_signals_of_a_transformer_are_those_of_plain_autograd(arm, placement, residual):
    """Also the angles between the stream and the output of a branch."""
    model = transformer(arm, placement, residual=residual, init="xavier", n_layer=3)
    rows, streams = signals(lambda: loss_of(model), list(model.blocks))
    passed = [model.token_embedding(tokens(1)) + model.position_embedding.weight[:T]]
    for block in model.blocks:
        passed.append(block(passed[-1]))
    logits = F.linear(model.final_norm(passed[-1]), model.token_embedding.weight)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens(2).flatten())
    torch.testing.assert_close(streams, torch.stack(passed[:-1]).detach(), rtol=1e-12, atol=1e-14)
    rms = [x.square().mean().sqrt().item() for x in passed]
    assert [row["activation_rms"] for row in rows] == pytest.approx(rms, rel=1e-10)
    assert rows[0].keys() == {"block", "activation_rms"}
    for block, row, x in zip(model.blocks, rows[1:], passed[:-1], strict=True):
        gradient, *weights = torch.autograd.grad(loss, [x, *block.parameters()], retain_graph=True)
        of_weights = torch.cat([g.flatten() for g in weights])
        assert row["gradient"] == pytest.approx(gradient.norm().item(), rel=1e-10)
        assert row["gradient_parameters"] == pytest.approx(of_weights.norm().item(), rel=1e-10)
        stream = x
        for name in ("attention", "mlp"):
            branch = getattr(block, name)
            added = branch.after(branch.f(branch.before(stream)))
            cosine = F.cosine_similarity(stream, added, dim=-1).detach().numpy()
            expected = np.degrees(np.arccos(cosine)).mean()
            assert row[f"angle_{name}"] == pytest.approx(expected, rel=1e-8)
            stream = branch.outside(stream + added if residual else added)


@pytest.mark.parametrize(
    ("depth", "spectra", "at"),
    [(6, 2, [2, 6]), (6, 3, [2, 4, 6]), (5, 4, [2, 3, 4, 5]), (5, 9, [2, 3, 4, 5]), (1, 3, [1])],
)
def test_spectra_are_of_blocks_spread_from_the_second_to_the_last(depth, spectra, at):
    model = transformer(n_layer=depth)
    rows = measure(model, tokens(1), tokens(2), spectra)
    assert [row["block"] for row in rows if row.keys() >= {"largest", "smallest"}] == at


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_a_probe_is_in_training_mode_and_float64(arm):
    """From a model in fp32 that was evaluated."""
    model, same = transformer(arm).float().eval(), transformer(arm).float().double()
    rows = measure(model, tokens(1), tokens(2), 2)
    expected, streams = signals(lambda: loss_of(same), list(same.blocks))
    for row, values in zip(rows, expected, strict=True):
        assert {k: row[k] for k in values} == pytest.approx(values, rel=1e-10)
    assert model.training
    if arm == "layernorm":  # of the first window alone, which is shorter than TOKENS
        exact = np.linalg.svd(dense(same.blocks[1], streams[1][:1]), compute_uv=False)
        assert (rows[2]["largest"], rows[2]["smallest"]) == pytest.approx((exact[0], exact[-1]))


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
