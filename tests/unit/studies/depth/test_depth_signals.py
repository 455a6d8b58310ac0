"""What passes the blocks: closed forms of linear networks, plain autograd, hooks that go away."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from depth_recipes import (
    B,
    C,
    Linear,
    T,
    dense,
    normal,
    orthogonal,
    tokens,
    transformer,
)
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.hooks import passing
from normscope.measure.signals import Row, angle, length, signals
from normscope.studies.depth.measures import MEASURES
from normscope.studies.depth.probe import probed
from normscope.studies.depth.tabulate import rates

D, L = 6, 7
N = 10  # tokens


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.integers(-300, 300))
def test_a_length_is_that_of_numpy_at_any_scale(values, power):
    """2^k scales without rounding, until numbers are subnormal."""
    parts = [torch.tensor(values[:1]).double(), torch.tensor(values[1:] or [0.0]).double()]
    expected = np.linalg.norm(torch.cat(parts).numpy())
    scaled = [torch.ldexp(p, torch.tensor(power)) for p in parts]
    assert length(scaled) == pytest.approx(math.ldexp(expected, power), rel=1e-12)


def test_a_length_of_nothing_is_0_and_of_what_is_not_finite_is_not():
    one = torch.ones(3)
    assert length([torch.zeros(3), torch.zeros(1)]) == 0
    for bad in (math.nan, math.inf):
        for tensors in ([one, torch.tensor([bad])], [torch.tensor([1.0, bad]), one]):
            assert not math.isfinite(length(tensors))


@pytest.mark.parametrize("degrees", [0.0, 1e-3, 30.0, 90.0, 135.0, 180.0])
@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e150])
def test_an_angle_is_that_of_a_rotation(degrees, scale):
    basis = orthogonal(4)
    turn = math.radians(degrees)
    x = 5 * basis[0].expand(3, 4)
    y = scale * (math.cos(turn) * basis[0] + math.sin(turn) * basis[1]).expand(3, 4)
    assert angle(x, y) == pytest.approx(degrees, abs=5e-6)


class Stack(nn.Module):
    """x0 through L equal linear blocks to a loss that is linear in what leaves them."""

    def __init__(self, weight: Tensor, *, residual: bool = True, depth: int = L) -> None:
        super().__init__()
        d = len(weight)
        self.blocks = [Linear(weight.clone(), residual=residual) for _ in range(depth)]
        self.x, self.c = normal(N, d, seed=1).requires_grad_(), normal(N, d, seed=2)

    def loss(self) -> Tensor:
        x = self.x
        for block in self.blocks:
            x = block(x)
        return (x * self.c).sum() / N

    def rows(self) -> list[Row]:
        return signals(self.loss, self.blocks)[0]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_of_linear_blocks_streams_and_gradients_are_powers_of_the_map(residual, seed):
    """x_l = A^l x, dL/dx_(l-1) = (A^T)^(L-l+1) c / N, dL/dW_l their outer product; A = I + W."""
    weight = 0.4 * normal(D, D, seed=seed + 5)
    stack = Stack(weight, residual=residual)
    a = (weight + torch.eye(D) if residual else weight).numpy()
    x, c = stack.x.detach().numpy(), stack.c.numpy() / N
    rows, streams = signals(stack.loss, stack.blocks)
    power = np.linalg.matrix_power
    assert [row["block"] for row in rows] == list(range(L + 1))
    assert rows[0].keys() == {"block", "activation_rms"}
    for at, row in enumerate(rows):
        passed = x @ power(a, at).T
        assert row["activation_rms"] == pytest.approx(np.sqrt(np.mean(passed**2)), rel=1e-10)
        if at == 0:
            continue
        entered, reached = x @ power(a, at - 1).T, c @ power(a, L - at)
        np.testing.assert_allclose(streams[at - 1].numpy(), entered, rtol=1e-8, atol=1e-10)
        assert row["gradient"] == pytest.approx(np.linalg.norm(reached @ a), rel=1e-10)
        assert row["gradient_parameters"] == pytest.approx(
            np.linalg.norm(reached.T @ entered), rel=1e-10
        )


def tabled(rows: list[Row]) -> pd.Series:
    shape = {"arm": "a", "placement": "pre", "residual": True, "init": "gpt2", "depth": L}
    frame = pd.DataFrame([shape | {"state": "start", "seed": 0} | row for row in rows])
    return rates(frame.reindex(columns=[*shape, "state", "seed", "block", *MEASURES])).iloc[0]


def test_without_residuals_gradients_far_below_the_root_of_the_least_number_are_measured():
    """Scaling by 1e-50 in 6 blocks: 1e-250 and 1e-300, whose squares are 0."""
    rows = Stack(1e-50 * orthogonal(D), residual=False, depth=6).rows()
    of_loss = float((normal(N, D, seed=2) / N).norm())
    for at in range(1, 7):
        expected = of_loss * 10.0 ** (-50 * (7 - at))
        assert rows[at]["gradient"] == pytest.approx(expected, rel=1e-8)
    assert tabled(rows)["gradient_rate"] == pytest.approx(1e-50, rel=1e-6)


def loss_of(model: nn.Module) -> Tensor:
    return F.cross_entropy(model(tokens(1)).flatten(0, 1), tokens(2).flatten())


CELLS = [
    ("layernorm", "pre", True),
    ("layernorm", "pre", False),
    ("rmsnorm", "post", True),
    ("batchnorm", "peri", True),
    ("none", "none", True),
    ("none", "none", False),
]
CELL = pytest.mark.parametrize(("arm", "placement", "residual"), CELLS)


@CELL
def test_of_a_transformer_they_are_those_of_plain_autograd(arm, placement, residual):
    model = transformer(arm, placement, residual=residual, init="xavier", n_layer=3)
    rows, streams = signals(lambda: loss_of(model), list(model.blocks))
    x = model.token_embedding(tokens(1)) + model.position_embedding.weight[:T]
    passed = [x]
    for block in model.blocks:
        passed.append(block(passed[-1]))
    logits = F.linear(model.final_norm(passed[-1]), model.token_embedding.weight)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens(2).flatten())
    gradients = torch.autograd.grad(loss, passed[:-1], retain_graph=True)
    torch.testing.assert_close(streams, torch.stack(passed[:-1]).detach(), rtol=1e-12, atol=1e-14)
    for at, row in enumerate(rows):
        rms = float(passed[at].detach().square().mean().sqrt())
        assert row["activation_rms"] == pytest.approx(rms, rel=1e-10)
        if at:
            of_block = torch.autograd.grad(
                loss, list(model.blocks[at - 1].parameters()), retain_graph=True
            )
            norm = math.sqrt(sum(float(g.square().sum()) for g in of_block))
            assert row["gradient"] == pytest.approx(float(gradients[at - 1].norm()), rel=1e-10)
            assert row["gradient_parameters"] == pytest.approx(norm, rel=1e-10)


@CELL
def test_angles_are_between_the_stream_and_what_a_branch_adds_to_it(arm, placement, residual):
    model = transformer(arm, placement, residual=residual, init="xavier", n_layer=3)
    rows, streams = signals(lambda: loss_of(model), list(model.blocks))
    for block, row, x in zip(model.blocks, rows[1:], streams, strict=True):
        for name in ("attention", "mlp"):
            branch = getattr(block, name)
            added = branch.after(branch.f(branch.before(x)))
            cosine = F.cosine_similarity(x, added, dim=-1).detach().numpy()
            expected = np.degrees(np.arccos(cosine)).mean()
            assert row[f"angle_{name}"] == pytest.approx(expected, rel=1e-8)
            x = branch.outside(x + added if residual else added).detach()  # noqa: PLW2901
    assert not any(key.startswith("angle") for key in rows[0])


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) for m in model.modules())


def test_hooks_go_away_when_the_pass_breaks_off():
    model = transformer()

    def breaks() -> Tensor:
        loss_of(model)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        signals(breaks, list(model.blocks))
    assert hooks(model) == 0
    with passing({"a": model.blocks[0]}) as seen:
        loss_of(model)
        assert hooks(model) == 1
    assert [t.shape for t in seen["a"]] == [(B, T, C)] * 2
    assert hooks(model) == 0


@pytest.mark.parametrize(
    ("spectra", "at"), [(1, [5]), (2, [3, 5]), (4, [2, 3, 4, 5]), (9, range(1, 6))]
)
def test_spectra_are_of_blocks_spread_up_to_the_last(spectra, at):
    model = transformer(n_layer=5)
    rows = probed(model, tokens(1), tokens(2), spectra)
    assert [row["block"] for row in rows if "largest" in row] == list(at)
    assert [row["block"] for row in rows if "smallest" in row] == list(at)


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_a_probe_is_in_training_mode_and_float64(arm):
    """From a model in fp32 that was evaluated."""
    model, same = transformer(arm).float().eval(), transformer(arm).float().double()
    rows = probed(model, tokens(1), tokens(2), 2)
    expected, streams = signals(lambda: loss_of(same), list(same.blocks))
    for row, values in zip(rows, expected, strict=True):
        assert {k: row[k] for k in values} == pytest.approx(values, rel=1e-10)
    assert model.training
    if arm == "layernorm":  # of the first window alone, which is shorter than TOKENS
        exact = np.linalg.svd(dense(same.blocks[1], streams[1][:1]), compute_uv=False)
        assert (rows[2]["largest"], rows[2]["smallest"]) == pytest.approx((exact[0], exact[-1]))
