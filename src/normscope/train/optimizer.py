"""AdamW, Muon and SGD without torch's Optimizer class, for models that are stacked.

Shapes: every parameter is stacked, (E, ...), with E models.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from normscope.train.recipe import Training

EPS = 1e-8  # torch's, of the denominator
HIDDEN = ("f.qkv.weight", "f.proj.weight", "f.fc.weight")  # what Muon trains, in every block
ADAMW_SHARE = 0.1  # of Muon's learning rate, for what AdamW trains in the same models
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
NORM_EPS = 1e-7  # torch's, of the norm that Newton-Schulz divides by


def preconditioner(second_moments: Sequence[Tensor]) -> Tensor:
    """The denominator of Adam's step, ``sqrt(v) + EPS``, flat: (p,)."""
    return torch.cat([v.sqrt().reshape(-1) for v in second_moments]) + EPS


def stability_limit(learning_rate: float, beta1: float) -> float:
    """The preconditioned sharpness up to which full-batch Adam is stable.

    ``(2 + 2 beta1) / ((1 - beta1) learning_rate)``, 38 / learning_rate at beta1 = 0.9 (Cohen et al.
    2022, arXiv:2207.14484). Training increases the sharpness up to it.
    """
    return (2 + 2 * beta1) / ((1 - beta1) * learning_rate)


class Optimizer(ABC):
    """What the trainer asks of an optimizer."""

    @abstractmethod
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Update the parameters with their gradients, given in the same order."""

    @abstractmethod
    def state(self) -> dict[str, list[Tensor]]:
        """The tensors that change from step to step, by name."""

    @abstractmethod
    def second_moments(self) -> list[Tensor | None]:
        """Of each parameter Adam's second moments, or None where the optimizer keeps none."""

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Copy a state into this optimizer."""
        for name, tensors in self.state().items():
            for tensor, saved in zip(tensors, state[name], strict=True):
                tensor.copy_(saved)


class AdamW(Optimizer):
    """``torch.optim.AdamW``, with the same bits (Loshchilov & Hutter 2019, arXiv:1711.05101).

    It calls the same kernel, without the class, whose first use loads torch's compiler: 0.6 s, as
    much as a third of a short run.

    Args:
        parameters: of any shapes, contiguous.
        decays: weight decay of each.
        beta1, beta2: decay rates of the moments.
    """

    def __init__(
        self, parameters: Sequence[Tensor], decays: Sequence[float], beta1: float, beta2: float
    ) -> None:
        self.parameters, self.decays = list(parameters), list(decays)
        self.beta1, self.beta2 = beta1, beta2
        self.first = [torch.zeros_like(p) for p in self.parameters]  # running mean of gradients
        self.second = [torch.zeros_like(p) for p in self.parameters]  # of their squares
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Update the parameters with their gradients, given in the same order."""
        for decay in dict.fromkeys(self.decays):
            alike = [i for i, value in enumerate(self.decays) if value == decay]
            lists = (self.parameters, gradients, self.first, self.second, self.steps)
            parameters, grads, first, second, steps = ([each[i] for i in alike] for each in lists)
            adamw(
                parameters,
                grads,
                first,
                second,
                [],
                steps,
                fused=True,
                amsgrad=False,
                beta1=self.beta1,
                beta2=self.beta2,
                lr=learning_rate,
                weight_decay=decay,
                eps=EPS,
                maximize=False,
            )

    def second_moments(self) -> list[Tensor | None]:
        """The bias-corrected running means of squared gradients, one per parameter."""
        pairs = zip(self.second, self.steps, strict=True)
        return [second / (1 - self.beta2**steps) for second, steps in pairs]

    def state(self) -> dict[str, list[Tensor]]:
        return {"first": self.first, "second": self.second, "steps": self.steps}


class SGD(Optimizer):
    """Momentum without dampening (``torch.optim.SGD``), with decoupled weight decay.

    ``b = momentum b + g``, ``p = (1 - learning_rate decay) p - learning_rate b``: SGDW (Loshchilov
    & Hutter 2019, arXiv:1711.05101, algorithm 1) with its schedule as the learning rate.

    Args:
        parameters: of any shapes.
        decays: weight decay of each.
        momentum: decay rate of the running sum of gradients.
    """

    def __init__(
        self, parameters: Sequence[Tensor], decays: Sequence[float], momentum: float
    ) -> None:
        self.parameters, self.decays, self.momentum = list(parameters), list(decays), momentum
        self.sums = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        each = zip(self.parameters, gradients, self.sums, self.decays, strict=True)
        for p, gradient, total, decay in each:
            total.mul_(self.momentum).add_(gradient)
            p.mul_(1 - learning_rate * decay).add_(total, alpha=-learning_rate)

    def second_moments(self) -> list[Tensor | None]:
        return [None] * len(self.parameters)

    def state(self) -> dict[str, list[Tensor]]:
        return {"sums": self.sums}


def orthogonalize(x: Tensor) -> Tensor:
    """Matrices ``(..., rows, columns)`` with singular values near 1 and their singular vectors.

    Five steps of ``X <- a X + b (X X^T) X + c (X X^T)^2 X`` from X divided by its Frobenius norm
    (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/). The coefficients make small
    singular values grow fast, and leave all of them between about 0.7 and 1.2 rather than at 1.
    In the precision of x, where torch.optim.Muon rounds to bf16.
    """
    a, b, c = NEWTON_SCHULZ
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=NORM_EPS)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if is_tall else x


class Muon(Optimizer):
    """``torch.optim.Muon`` for the matrices of the blocks, AdamW for all other parameters.

    Momentum, orthogonalized (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/), with
    Nesterov's step: ``m = momentum m + (1 - momentum) g`` and ``u = momentum m + (1 - momentum) g``
    of each matrix. Its update is ``sqrt(max(1, rows / columns))`` times ``orthogonalize(u)``, as
    is torch's default, after decoupled weight decay. Queries, keys and values are a matrix each.

    Embeddings, head, gains and biases are for AdamW, as the authors advise, with a learning rate
    that is much smaller: 3e-4 for Muon's 0.02 in their example for large models. Here it is a tenth
    of Muon's, which at 0.02 is the 0.002 that these small models are trained at by AdamW alone.

    Args:
        parameters: by name, in order.
        decays: weight decay of each.
        training: momentum, and AdamW's decay rates.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], decays: Sequence[float], training: Training
    ) -> None:
        names = list(parameters)
        self.hidden = [
            i for i, n in enumerate(names) if n.startswith("blocks.") and n.endswith(HIDDEN)
        ]
        self.others = [i for i in range(len(names)) if i not in self.hidden]
        every = list(parameters.values())
        self.matrices, self.momentum = [every[i] for i in self.hidden], training.momentum
        # queries, keys and values lie in one matrix
        self.parts = [3 if "qkv" in names[i] else 1 for i in self.hidden]
        self.decays = [decays[i] for i in self.hidden]
        self.means = [torch.zeros_like(p) for p in self.matrices]
        self.adamw = AdamW(
            [every[i] for i in self.others],
            [decays[i] for i in self.others],
            training.beta1,
            training.beta2,
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        of_hidden = [gradients[i] for i in self.hidden]
        each = zip(self.matrices, of_hidden, self.means, self.parts, self.decays, strict=True)
        for p, gradient, mean, parts, decay in each:
            mean.lerp_(gradient, 1 - self.momentum)
            update = gradient.lerp(mean, self.momentum)
            update = update.unflatten(-2, (parts, -1))  # (E, parts, rows, columns)
            scale = max(1, update.shape[-2] / update.shape[-1]) ** 0.5
            p.mul_(1 - learning_rate * decay)
            p.add_(orthogonalize(update).flatten(-3, -2), alpha=-learning_rate * scale)
        self.adamw.step([gradients[i] for i in self.others], ADAMW_SHARE * learning_rate)

    def second_moments(self) -> list[Tensor | None]:
        moments: list[Tensor | None] = [None] * (len(self.hidden) + len(self.others))
        for i, of_adamw in zip(self.others, self.adamw.second_moments(), strict=True):
            moments[i] = of_adamw
        return moments

    def state(self) -> dict[str, list[Tensor]]:
        return {"means": self.means, **self.adamw.state()}


def optimizer(training: Training, parameters: Mapping[str, Tensor]) -> Optimizer:
    """The optimizer of a training, for stacked parameters ``(E, ...)`` by name."""
    t, stacked = training, list(parameters.values())
    # stacked matrices have three dimensions; gains, biases and scalars have fewer
    decays = [t.weight_decay if p.dim() > 2 or t.decays == "all" else 0.0 for p in stacked]
    if t.optimizer == "muon":
        return Muon(parameters, decays, t)
    if t.optimizer == "sgd":
        return SGD(stacked, decays, t.momentum)
    return AdamW(stacked, decays, t.beta1, t.beta2)
