"""One temperature for all logits: what a loss owes to scale alone (Guo et al. 2017, eq. 9)."""

import math

import torch
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor
from torch.nn import functional as F

BOUND = 1e4  # of the factor on the logits, both ways
FLOOR = 1e-6  # nats, below which a loss counts as none


def fit_temperature(logits: Tensor, answers: Tensor) -> float:
    """The temperature T in [1/BOUND, BOUND] at which ``cross_entropy(logits / T)`` is least.

    The loss is convex in 1/T. Where every answer has the largest logit it falls to 0 as T does;
    T is then the largest at which it is FLOOR.

    Args:
        logits: (n, classes).
        answers: (n,).
    """
    logits = logits.double()
    bound = math.log(BOUND)

    def loss(log_factor: float) -> float:
        return float(F.cross_entropy(logits * math.exp(log_factor), answers))

    if loss(-bound) <= FLOOR:
        return BOUND
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-4})
    if loss(best.x) >= FLOOR:
        return math.exp(-best.x)
    return math.exp(-float(brentq(lambda x: loss(x) - FLOOR, -bound, best.x, xtol=1e-4)))


def calibrated_loss(logits: Tensor, answers: Tensor, temperature: float) -> float:
    """Cross-entropy in nats of ``logits / temperature``, in float64."""
    return float(F.cross_entropy(logits.double() / temperature, answers))


def accuracy(logits: Tensor, answers: Tensor) -> float:
    """Share of answers with the largest logit."""
    return float((logits.argmax(1) == answers).to(torch.float64).mean())
