"""What passes through the blocks, compared with plain autograd and with closed forms."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from depth_recipes import Linear, T, dense, normal, orthogonal, tokens, transformer
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.signals import angle, signals
from normscope.studies.depth.probe import measure
from normscope.studies.depth.recipe import Shape
from normscope.studies.depth.tables import TABLES
from normscope.studies.depth.tabulate import rates

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
