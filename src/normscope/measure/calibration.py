"""Temperature scaling: one factor for all logits (Guo et al. 2017, eq. 9)."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

BOUND = 1e4  # the factor on the logits lies in [1/BOUND, BOUND]
FLOOR = 1e-6  # nats; a smaller loss counts as zero
STEP = 1e-4  # relative step to stop at: the error of Newton's method is then about its square
STEPS = 100  # bisection alone needs 20


def fit_temperature(logits: Tensor, answers: Tensor) -> float:
    """The temperature T in [1/BOUND, BOUND] at which ``cross_entropy(logits / T)`` is least.

    The loss is convex in 1/T. If every answer has the largest logit, the loss goes to 0 with T;
    the result is then the largest T at which the loss is FLOOR.

    Args:
        logits: (n, classes).
        answers: (n,).
    """
    logits = logits.double()
    margins = logits - logits.gather(1, answers[:, None])  # of each class relative to the answer

    def curve(factor: float) -> tuple[float, float, float]:
        """The loss at a factor on the logits, and its first two derivatives by the factor."""
        scaled = factor * margins
        shares = scaled.softmax(1)
        mean = torch.linalg.vecdot(shares, margins)
        square = torch.linalg.vecdot(shares * margins, margins)
        loss = scaled.logsumexp(1).mean()
        return float(loss), float(mean.mean()), float((square - mean.square()).mean())

    def below_floor(factor: float) -> tuple[float, float]:
        """ln(FLOOR / loss), nearly linear as the loss goes to 0; infinite at a loss of 0."""
        loss, first, _ = curve(factor)
        return (math.log(FLOOR / loss), -first / loss) if loss > 0 else (math.inf, math.nan)

    if curve(1 / BOUND)[0] <= FLOOR:
        return BOUND
    best = _zero(lambda factor: curve(factor)[1:], 1 / BOUND, BOUND)
    if curve(best)[0] < FLOOR:
        best = _zero(below_floor, 1 / BOUND, best)
    return 1 / best


def _zero(rising: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """The zero of an increasing function between two positive numbers, or the nearer end.

    Newton's method, with a bisection of the logarithm where a step would leave the interval.

    Args:
        rising: returns a value and its derivative.
    """
    if rising(high)[0] <= 0:
        return high
    x = math.sqrt(low * high)
    for _ in range(STEPS):
        value, derivative = rising(x)
        low, high = (x, high) if value < 0 else (low, x)
        newton = x - value / derivative if derivative > 0 else math.nan
        before, x = x, newton if low <= newton <= high else math.sqrt(low * high)
        if abs(x - before) <= STEP * before:
            break
    return x


def calibrated_loss(logits: Tensor, answers: Tensor, temperature: float) -> float:
    """Cross-entropy in nats of ``logits / temperature``, in float64."""
    return float(F.cross_entropy(logits.double() / temperature, answers))


def accuracy(logits: Tensor, answers: Tensor) -> float:
    """Fraction of answers that have the largest logit."""
    return float((logits.argmax(1) == answers).to(torch.float64).mean())
