"""AdamW against torch's own optimizer, bit for bit."""

import io
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
    """Of seven orders of magnitude."""
    return drawn(100 + step, 10.0 ** (step % 7 - 3))


def adamw(parameters: Sequence[Tensor], decays: Sequence[float] = (0.1, 0.0, 0.0, 0.1)) -> AdamW:
    """Betas are none of torch's defaults."""
    return AdamW(parameters, decays, 0.8, 0.95)


@pytest.mark.parametrize("decays", [(0.1, 0.0, 0.0, 0.1), (0.0, 0.3, 0.1, 0.0), (0.1,) * 4])
@pytest.mark.parametrize("rate", RATES)
def test_adamw_is_torchs_to_the_bit(rate, decays):
    theirs, ours = [nn.Parameter(p) for p in drawn(1)], adamw(drawn(1), decays)
    groups = [{"params": [p], "weight_decay": d} for p, d in zip(theirs, decays, strict=True)]
    torchs = torch.optim.AdamW(groups, betas=(0.8, 0.95), fused=True)
    for step in range(40):
        ours.step(gradients(step), RATES[rate](step))
        for p, grad, group in zip(theirs, gradients(step), torchs.param_groups, strict=True):
            p.grad, group["lr"] = grad, RATES[rate](step)
        torchs.step()
        for i, p in enumerate(theirs):
            assert torch.equal(ours.parameters[i], p)
            assert torch.equal(ours.first[i], torchs.state[p]["exp_avg"])
            assert torch.equal(ours.second[i], torchs.state[p]["exp_avg_sq"])
            assert torch.equal(ours.steps[i], torchs.state[p]["step"])


def test_second_moments_are_means_of_squares():
    """Of the squares of gradients, each weighted by what 0.95 leaves of it."""
    ours, steps = adamw(drawn(1)), range(7)
    for step in steps:
        ours.step(gradients(step), 0.01)
    weights = [0.95 ** (len(steps) - 1 - step) for step in steps]
    for i, moment in enumerate(ours.second_moments()):
        squares = [w * gradients(step)[i].square() for w, step in zip(weights, steps, strict=True)]
        torch.testing.assert_close(moment, sum(squares) / sum(weights), rtol=1e-5, atol=0)


def test_one_step_from_rest_is_the_learning_rate_long_after_the_decay():
    """Loshchilov & Hutter, algorithm 2: the bias-corrected moments are then g and g^2."""
    grads, decays = drawn(2), (0.1, 0.0, 0.0, 0.1)
    ours = adamw(drawn(1), decays)
    ours.step(grads, 0.01)
    for p, before, g, decay in zip(ours.parameters, drawn(1), grads, decays, strict=True):
        torch.testing.assert_close(p, before * (1 - 0.01 * decay) - 0.01 * g.sign())


def test_a_restored_state_continues_with_the_same_bits():
    whole = adamw(drawn(1))
    for step in range(7):
        whole.step(gradients(step), 0.01)
    buffer = io.BytesIO()
    torch.save({"parameters": whole.parameters, "state": whole.state()}, buffer)
    buffer.seek(0)
    stored = torch.load(buffer, weights_only=True)
    resumed = adamw(drawn(9))
    resumed.step(gradients(30), 1.0)
    for p, q in zip(resumed.parameters, stored["parameters"], strict=True):
        p.copy_(q)
    resumed.restore(stored["state"])
    for step in range(7, 20):
        for optimizer in (whole, resumed):
            optimizer.step(gradients(step), 0.01)
    for name in ("first", "second", "steps"):
        pairs = zip(whole.state()[name], resumed.state()[name], strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), name
    pairs = zip(whole.parameters, resumed.parameters, strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_another_number_of_gradients_is_refused_and_moves_nothing(count):
    ours = adamw(drawn(1))
    grads = [*gradients(0), torch.ones(2)][:count]
    with pytest.raises(ValueError, match=f"{count} gradients of 4 parameters"):
        ours.step(grads, 0.01)
    assert all(torch.equal(p, q) for p, q in zip(ours.parameters, drawn(1), strict=True))
    assert all(float(step) == 0 for step in ours.steps)
