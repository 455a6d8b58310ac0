"""One temperature for all logits: what a loss owes to scale alone (Guo et al. 2017, eq. 9)."""

import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

BOUND = 1e4  # of the factor on the logits, both ways


def fit_temperature(logits: Tensor, answers: Tensor) -> float:
    """The temperature T in [1/BOUND, BOUND] at which ``cross_entropy(logits / T)`` is least.

    The loss is convex in 1/T. Where every answer has the largest logit it falls as T does, and
    T comes out at the bound or where the loss is 0 in float64.

    Args:
        logits: (n, classes).
        answers: (n,).
    """
    logits = logits.double()
    bound = math.log(BOUND)
    found = minimize_scalar(
        lambda log_factor: float(F.cross_entropy(logits * math.exp(log_factor), answers)),
        bounds=(-bound, bound),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return math.exp(-found.x)


def calibrated_loss(logits: Tensor, answers: Tensor, temperature: float) -> float:
    """Cross-entropy in nats of ``logits / temperature``, in float64."""
    return float(F.cross_entropy(logits.double() / temperature, answers))


def accuracy(logits: Tensor, answers: Tensor) -> float:
    """Share of answers with the largest logit."""
    return float((logits.argmax(1) == answers).to(torch.float64).mean())
