"""Loss slices: the model is restored bit for bit; lengths and rows of directions."""

import struct
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from recall_recipes import move, task
from torch import Tensor, nn

from normscope.measure.landscape import (
    accumulating_slice,
    filter_normalized_direction,
    slice_loss,
    unit_direction,
)
from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel

OFFSETS = [-0.7, 0.0, 0.25, 1.5]
SLICES = pytest.mark.parametrize("cut", [slice_loss, accumulating_slice])
DIRECTIONS = pytest.mark.parametrize(
    "draw_direction", [unit_direction, filter_normalized_direction]
)


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def bits(model: nn.Module) -> dict[str, bytes]:
    """Parameters and buffers, byte for byte: -0.0 is not 0.0 here, and every NaN is itself."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: t.detach().numpy().tobytes() for name, t in tensors.items()}


def odd_model() -> tuple[nn.Module, Callable[[], float]]:
    """-0.0, NaN with a payload and a subnormal number, in a parameter and in a buffer."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    (nan,) = struct.unpack("f", struct.pack("I", 0x7FC01234))
    odd = torch.from_numpy(np.array([-0.0, nan, 1e-41], dtype=np.float32))
    with torch.no_grad():
        model.state_dict()["0.weight"][0] = odd
        model.state_dict()["1.running_mean"][:3] = odd
    assert bits(model)["0.weight"][4:8] == struct.pack("I", 0x7FC01234)
    x = torch.randn(5, 3, generator=generator())
    return model, lambda: model(x).sum().item()


@SLICES
@DIRECTIONS
@pytest.mark.parametrize("fails", [False, True])
def test_a_slice_leaves_every_bit_of_the_model(cut, draw_direction, fails):
    model, loss = odd_model()
    before, inside = bits(model), []

    def watched() -> float:
        inside.append(bits(model))
        if fails and len(inside) == 3:
            raise KeyboardInterrupt
        return loss()

    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        cut(model, watched, draw_direction(model, generator()), OFFSETS)
    assert len(inside) == (3 if fails else len(OFFSETS))
    assert bits(model) == before
    for name in ("0.weight", "1.running_mean"):  # the slice did move them
        assert inside[-1][name] != before[name]


class Quadratic(nn.Module):
    """|p|^2 over two parameters, in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3, generator=generator(1), dtype=torch.float64))
        self.b = nn.Parameter(torch.randn(4, generator=generator(2), dtype=torch.float64))

    def loss(self) -> float:
        return sum(p.square().sum().item() for p in self.parameters())

    def at(self, offsets: np.ndarray, direction: list[Tensor]) -> list[float]:
        """|p|^2 + 2 c <p, d> + c^2 |d|^2, from dot products."""
        p, d = (
            torch.cat([t.detach().double().flatten() for t in tensors]).numpy()
            for tensors in (self.parameters(), direction)
        )
        return [p @ p + 2 * c * (p @ d) + c**2 * (d @ d) for c in offsets]


ALPHAS = [-0.5, -0.25, 0.5, 0.5, 0.125, -1.0]


@DIRECTIONS
def test_a_slice_is_at_its_offsets(draw_direction):
    model = Quadratic()
    direction = draw_direction(model, generator())
    expected = model.at(np.array(ALPHAS), direction)
    assert slice_loss(model, model.loss, direction, ALPHAS) == pytest.approx(expected, rel=1e-12)
    # the loss of the model itself where nothing is moved, to the bit
    assert slice_loss(model, model.loss, direction, [0.7, 0.0])[1] == model.loss()


@DIRECTIONS
def test_the_accumulating_slice_is_at_the_running_sums_of_its_alphas(draw_direction):
    model = Quadratic()
    direction = draw_direction(model, generator())
    losses = accumulating_slice(model, model.loss, direction, ALPHAS)
    sums = [-0.5, -0.75, -0.25, 0.25, 0.375, -0.625]
    assert losses == pytest.approx(model.at(np.array(sums), direction), rel=1e-12)
    assert losses != pytest.approx(model.at(np.array(ALPHAS), direction), rel=1e-3)


@pytest.mark.parametrize("arm", ["layernorm", "none", "batchnorm", "scalenorm_affine", "dyt"])
def test_a_filter_normalized_direction_has_the_rows_of_the_matrices_and_moves_nothing_else(arm):
    torch.manual_seed(1)
    model = RecallModel(task("recall"), ARMS[arm].norm)
    move(model)
    matrices = 0
    for p, d in zip(
        model.parameters(), filter_normalized_direction(model, generator()), strict=True
    ):
        assert d.shape == p.shape
        if p.dim() < 2:
            assert torch.equal(d, torch.zeros_like(p))
            continue
        matrices += 1
        rows = np.linalg.norm(p.detach().double().numpy(), axis=1)
        ours = np.linalg.norm(d.detach().double().numpy(), axis=1)
        np.testing.assert_allclose(ours, rows, rtol=1e-5)
    assert matrices == 6  # embedding, queries with keys and values, projection, two of MLP, head
