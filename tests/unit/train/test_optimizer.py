"""AdamW against torch's optimizer, bit for bit."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from normscope.train.optimizer import AdamW

SHAPES = [(5, 3), (7,), (), (64, 33)]
RATES: dict[str, Callable[[int], float]] = {
    "small": lambda step: 1e-4,
    "large": lambda step: 1.0,
    "changing": lambda step: 0.01 * (step + 1) / 5 if step < 5 else 0.01 / step,
}


def drawn(seed: int, scale: float = 1.0) -> list[Tensor]:
    g = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(shape, generator=g) for shape in SHAPES]


def gradients(step: int) -> list[Tensor]:
    """Gradients of seven orders of magnitude."""
    return drawn(100 + step, 10.0 ** (step % 7 - 3))


def adamw(parameters: Sequence[Tensor], decays: Sequence[float] = (0.1, 0.0, 0.0, 0.1)) -> AdamW:
    """With betas that differ from torch's defaults."""
    return AdamW(parameters, decays, 0.8, 0.95)


@pytest.mark.parametrize("decays", [(0.1, 0.0, 0.0, 0.1), (0.0, 0.3, 0.1, 0.0), (0.1,) * 4])
@pytest.mark.parametrize("rate", RATES)
def test_adamw_is_torchs_to_the_bit(rate, decays):
    reference, ours = [nn.Parameter(p) for p in drawn(1)], adamw(drawn(1), decays)
    groups = [{"params": [p], "weight_decay": d} for p, d in zip(reference, decays, strict=True)]
    torchs = torch.optim.AdamW(groups, betas=(0.8, 0.95), fused=True)
    for step in range(40):
        ours.step(gradients(step), RATES[rate](step))
        for p, grad, group in zip(reference, gradients(step), torchs.param_groups, strict=True):
            p.grad, group["lr"] = grad, RATES[rate](step)
        torchs.step()
        for i, p in enumerate(reference):
            assert torch.equal(ours.parameters[i], p)
            assert torch.equal(ours.first[i], torchs.state[p]["exp_avg"])
            assert torch.equal(ours.second[i], torchs.state[p]["exp_avg_sq"])
            assert torch.equal(ours.steps[i], torchs.state[p]["step"])


def test_second_moments_are_means_of_squares():
    """Means of the squared gradients with exponentially decaying weights."""
    ours, steps = adamw(drawn(1)), range(7)
    for step in steps:
        ours.step(gradients(step), 0.01)
    weights = [0.95 ** (len(steps) - 1 - step) for step in steps]
    for i, moment in enumerate(ours.second_moments()):
        squares = [w * gradients(step)[i].square() for w, step in zip(weights, steps, strict=True)]
        torch.testing.assert_close(moment, sum(squares) / sum(weights), rtol=1e-5, atol=0)
