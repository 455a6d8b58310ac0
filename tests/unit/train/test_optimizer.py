"""AdamW against torch's optimizer bit for bit; SGD and Muon against torch's in float64."""

from collections.abc import Callable, Sequence

import pytest
import torch
from recipes import recipe
from torch import Tensor, nn

from normscope.train.optimizer import SGD, AdamW, Muon, optimizer, orthogonalize

SHAPES = [(5, 3), (7,), (), (64, 33)]
RATES: dict[str, Callable[[int], float]] = {
    "small": lambda step: 1e-4,
    "large": lambda step: 1.0,
    "changing": lambda step: 0.01 * (step + 1) / 5 if step < 5 else 0.01 / step,
}


def normal(seed: int, scale: float = 1.0) -> list[Tensor]:
    g = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(shape, generator=g) for shape in SHAPES]


def gradients(step: int) -> list[Tensor]:
    """Gradients of seven orders of magnitude."""
    return normal(100 + step, 10.0 ** (step % 7 - 3))


def adamw(parameters: Sequence[Tensor], decays: Sequence[float] = (0.1, 0.0, 0.0, 0.1)) -> AdamW:
    """With betas that differ from torch's defaults."""
    return AdamW(parameters, decays, 0.8, 0.95)


@pytest.mark.parametrize("decays", [(0.1, 0.0, 0.0, 0.1), (0.0, 0.3, 0.1, 0.0), (0.1,) * 4])
@pytest.mark.parametrize("rate", RATES)
def test_adamw_is_torchs_to_the_bit(rate, decays):
    reference, ours = [nn.Parameter(p) for p in normal(1)], adamw(normal(1), decays)
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


def in_float64(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=g, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_is_torchs_with_decoupled_weight_decay(momentum):
    shapes = [(2, 5, 3), (2, 7)]
    reference = [nn.Parameter(p) for p in in_float64(1, *shapes)]
    torchs = torch.optim.SGD(reference, momentum=momentum)
    ours = SGD(in_float64(1, *shapes), [0.1, 0.0], momentum)
    for step in range(10):
        rate = RATES["changing"](step)
        ours.step(in_float64(step, *shapes), rate)
        reference[0].data *= 1 - rate * 0.1
        for p, grad in zip(reference, in_float64(step, *shapes), strict=True):
            p.grad = grad
        torchs.param_groups[0]["lr"] = rate
        torchs.step()
        for p, q in zip(ours.parameters, reference, strict=True):
            torch.testing.assert_close(p, q.data, rtol=1e-12, atol=1e-12)


def quintic(s: Tensor) -> Tensor:
    """The polynomial of Muon's authors, five times; of a singular value of at most 1."""
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


@pytest.mark.parametrize("shape", [(2, 9, 4), (2, 4, 9), (3, 6, 6)])
def test_newton_schulz_keeps_singular_vectors_and_brings_singular_values_near_1(shape):
    (x,) = in_float64(3, shape)
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    ends = quintic(s / s.norm(dim=-1, keepdim=True))
    assert ((ends > 0.6) & (ends < 1.25)).all()
    expected = u @ torch.diag_embed(ends) @ vh
    torch.testing.assert_close(orthogonalize(x), expected, rtol=0, atol=1e-12)
    assert torch.equal(orthogonalize(torch.zeros(shape)), torch.zeros(shape))


MATRICES = {
    "blocks.0.attention.f.qkv.weight": (6, 2),
    "blocks.0.attention.f.proj.weight": (2, 2),
    "blocks.0.mlp.f.fc.weight": (8, 2),
    "blocks.0.mlp.f.proj.weight": (2, 8),
}
OTHERS = {"token_embedding.weight": (5, 2), "blocks.0.mlp.before.gain": (2,), "head.weight": (5, 2)}
E = 3
TRAINING = recipe(optimizer="muon", momentum=0.9, weight_decay=0.3).training


def muon() -> Muon:
    """For three stacked models, in float64."""
    shapes = MATRICES | OTHERS
    drawn = in_float64(5, *((E, *shape) for shape in shapes.values()))
    made = optimizer(TRAINING, dict(zip(shapes, drawn, strict=True)))
    assert isinstance(made, Muon)
    return made


def muon_gradients(step: int) -> list[Tensor]:
    shapes = (MATRICES | OTHERS).values()
    return in_float64(10 + step, *((E, *shape) for shape in shapes))


# bf16 has 8 bits: each of 5 steps, which multiply a small singular value by 3.4 each, is off by up
# to 0.4% of the largest entry, 1
@pytest.mark.parametrize(("is_exact", "tolerance"), [(True, 1e-12), (False, 0.05)])
def test_muon_is_torchs_for_every_model_and_matrix(monkeypatch, is_exact, tolerance):
    if is_exact:
        monkeypatch.setattr(Tensor, "bfloat16", Tensor.clone)
    ours = muon()
    reference: list[list[nn.Parameter]] = []  # of each matrix, its parts in every model
    for p, name in zip(ours.matrices, MATRICES, strict=True):
        parts = [part for model in p for part in model.chunk(3 if "qkv" in name else 1)]
        reference.append([nn.Parameter(part.clone()) for part in parts])
    torchs = torch.optim.Muon([q for parts in reference for q in parts], 0, 0.3, 0.9)
    for step in range(3):
        rate = RATES["changing"](step)
        ours.step(muon_gradients(step), rate)
        for parts, grad in zip(reference, muon_gradients(step), strict=False):
            for q, g in zip(parts, grad.flatten(0, 1).split(len(parts[0])), strict=True):
                q.grad = g
        torchs.param_groups[0]["lr"] = rate
        torchs.step()
    moved = sum(RATES["changing"](step) for step in range(3))
    for p, parts in zip(ours.matrices, reference, strict=True):
        close = {"rtol": 0, "atol": tolerance * (1 if is_exact else moved)}
        torch.testing.assert_close(p.flatten(0, 1), torch.cat(list(parts)).data, **close)


def test_muon_leaves_all_else_to_adamw_at_a_tenth_of_the_rate():
    ours = muon()
    others = [p.clone() for p in ours.adamw.parameters]
    reference = AdamW(others, [0.3, 0.0, 0.3], TRAINING.beta1, TRAINING.beta2)
    for step in range(3):
        ours.step(muon_gradients(step), 0.02)
        reference.step(muon_gradients(step)[len(MATRICES) :], 0.002)
    for p, q in zip(ours.adamw.parameters, reference.parameters, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-12, atol=0)
    moments = ours.second_moments()
    assert moments[: len(MATRICES)] == [None] * len(MATRICES)
    for ours_of, theirs in zip(moments[len(MATRICES) :], reference.second_moments(), strict=True):
        assert ours_of is not None
        assert theirs is not None
        assert torch.equal(ours_of, theirs)
