"""Temperature scaling: optimal, at its bounds, and in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax
from torch import Tensor

from normscope.measure.calibration import (
    FLOOR,
    calibrated_loss,
    fit_temperature,
)

N, CLASSES = 20_000, 10
logit_arrays = arrays(np.float64, (12, 4), elements=st.floats(-5, 5, width=32)).map(
    torch.from_numpy
)
answer_lists = arrays(np.int64, 12, elements=st.integers(0, 3)).map(torch.from_numpy)


def cross_entropy(logits: Tensor, answers: Tensor, temperature: float) -> float:
    z = logits.double().numpy() / temperature
    return float((logsumexp(z, axis=1) - z[np.arange(len(z)), answers.numpy()]).mean())


def sampled(temperature: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits, and answers drawn from ``softmax(logits / temperature)``."""
    rng = np.random.default_rng(seed)
    z = 2 * temperature * rng.standard_normal((N, CLASSES))
    draws = (z / temperature + rng.gumbel(size=z.shape)).argmax(1)
    return torch.from_numpy(z).float(), torch.from_numpy(draws)


@pytest.mark.parametrize("temperature", [0.05, 1.0, 100.0])
def test_the_derivative_is_zero_at_the_fitted_temperature(temperature):
    """The derivative of <logsumexp(b z) - b z_answer> by b is E[z] - <z_answer>."""
    logits, answers = sampled(temperature)
    z = logits.double().numpy()
    expected = (softmax(z / fit_temperature(logits, answers), axis=1) * z).sum(1).mean()
    of_answers = z[np.arange(N), answers.numpy()].mean()
    assert expected == pytest.approx(of_answers, rel=1e-7)


@given(logits=logit_arrays, answers=answer_lists, temperature=st.floats(0.1, 10))
def test_calibrated_loss_is_the_cross_entropy_of_the_divided_logits(logits, answers, temperature):
    expected = cross_entropy(logits, answers, temperature)
    assert calibrated_loss(logits, answers, temperature) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("margin", [0.01, 1.0, 5.0, 700.0])
@pytest.mark.parametrize("n", [1, 50])
def test_separated_logits_get_the_largest_temperature_with_a_loss_of_floor(margin, n):
    """Two classes a margin m apart lose ln(1 + exp(-m / T)): FLOOR at T = m / -ln(e^FLOOR - 1)."""
    answers = torch.arange(n) % 2
    logits = torch.stack([1 - answers, answers], 1) * margin + 3.0
    fitted = fit_temperature(logits, answers)
    assert fitted == pytest.approx(margin / -math.log(math.expm1(1e-6)), rel=1e-5)
    assert calibrated_loss(logits, answers, fitted) == pytest.approx(FLOOR, rel=1e-4)
