"""AdamW against torch's own optimizers, bit for bit."""

import io
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from normscope.train.optimizer import AdamW

SHAPES = [(5, 3), (7,), (), (64, 33)]
GROUPS = [[0, 3], [1, 2]]  # of SHAPES
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


def adamw(parameters: Sequence[Tensor], decays: Sequence[float]) -> AdamW:
    """The groups with their decays; betas are none of torch's defaults."""
    groups = [
        ([parameters[i] for i in of_group], decay)
        for of_group, decay in zip(GROUPS, decays, strict=True)
    ]
    return AdamW(groups, 0.8, 0.95)


def in_groups(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensors[i] for of_group in GROUPS for i in of_group]


def torchs_step(optimizer: torch.optim.Optimizer, grads: Sequence[Tensor], rate: float) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p, grad in zip(parameters, grads, strict=True):
        p.grad = grad
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def assert_same_state(ours: AdamW, theirs: torch.optim.Optimizer) -> None:
    parameters = [p for group in theirs.param_groups for p in group["params"]]
    for i, (p, q) in enumerate(zip(ours.parameters, parameters, strict=True)):
        assert torch.equal(p, q)
        assert torch.equal(ours.first[i], theirs.state[q]["exp_avg"])
        assert torch.equal(ours.second[i], theirs.state[q]["exp_avg_sq"])
        assert torch.equal(ours.steps[i], theirs.state[q]["step"])


@pytest.mark.parametrize("decays", [(0.1, 0.0), (0.0, 0.3), (0.1, 0.1)])
@pytest.mark.parametrize("rate", RATES)
def test_adamw_is_torchs_to_the_bit(rate, decays):
    theirs = [nn.Parameter(p) for p in drawn(1)]
    groups = [
        {"params": [theirs[i] for i in of_group], "weight_decay": decay}
        for of_group, decay in zip(GROUPS, decays, strict=True)
    ]
    torchs = torch.optim.AdamW(groups, betas=(0.8, 0.95), fused=True)
    ours = adamw(drawn(1), decays)
    for step in range(40):
        ours.step(in_groups(gradients(step)), RATES[rate](step))
        torchs_step(torchs, in_groups(gradients(step)), RATES[rate](step))
        assert_same_state(ours, torchs)


def test_one_step_from_rest_is_the_learning_rate_long_after_the_decay():
    """Loshchilov & Hutter, algorithm 2: the bias-corrected moments are then g and g^2."""
    start, grads = drawn(1), drawn(2)
    ours = adamw(drawn(1), (0.1, 0.0))
    ours.step(in_groups(grads), 0.01)
    decays = [0.1, 0.1, 0.0, 0.0]
    for p, before, g, decay in zip(
        ours.parameters, in_groups(start), in_groups(grads), decays, strict=True
    ):
        torch.testing.assert_close(p, before * (1 - 0.01 * decay) - 0.01 * g.sign())


def test_a_restored_state_continues_with_the_same_bits():
    whole = adamw(drawn(1), (0.1, 0.0))
    for step in range(7):
        whole.step(in_groups(gradients(step)), 0.01)
    buffer = io.BytesIO()
    torch.save({"parameters": whole.parameters, "state": whole.state()}, buffer)
    buffer.seek(0)
    stored = torch.load(buffer, weights_only=True)
    resumed = adamw(drawn(9), (0.1, 0.0))
    resumed.step(in_groups(gradients(30)), 1.0)
    for p, q in zip(resumed.parameters, stored["parameters"], strict=True):
        p.copy_(q)
    resumed.restore(stored["state"])
    for step in range(7, 20):
        for optimizer in (whole, resumed):
            optimizer.step(in_groups(gradients(step)), 0.01)
    for name in ("first", "second", "steps"):
        pairs = zip(whole.state()[name], resumed.state()[name], strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), name
    pairs = zip(whole.parameters, resumed.parameters, strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_another_number_of_gradients_is_refused_and_moves_nothing(count):
    ours = adamw(drawn(1), (0.1, 0.0))
    grads = [*in_groups(gradients(0)), torch.ones(2)][:count]
    with pytest.raises(ValueError, match=f"{count} gradients of 4 parameters"):
        ours.step(grads, 0.01)
    assert all(torch.equal(p, q) for p, q in zip(ours.parameters, in_groups(drawn(1)), strict=True))
    assert all(float(step) == 0 for step in ours.steps)
