"""AdamW without torch's Optimizer class."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

EPS = 1e-8  # torch's, of the denominator


def preconditioner(second_moments: Sequence[Tensor]) -> Tensor:
    """The denominator of Adam's step, ``sqrt(v) + EPS``, flat: (p,)."""
    return torch.cat([v.sqrt().reshape(-1) for v in second_moments]) + EPS


def stability_limit(learning_rate: float, beta1: float) -> float:
    """The preconditioned sharpness up to which full-batch Adam is stable.

    ``(2 + 2 beta1) / ((1 - beta1) learning_rate)``, 38 / learning_rate at beta1 = 0.9 (Cohen et al.
    2022, arXiv:2207.14484). Training increases the sharpness up to it.
    """
    return (2 + 2 * beta1) / ((1 - beta1) * learning_rate)


class AdamW:
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

    def second_moments(self) -> list[Tensor]:
        """The bias-corrected running means of squared gradients, one per parameter."""
        pairs = zip(self.second, self.steps, strict=True)
        return [second / (1 - self.beta2**steps) for second, steps in pairs]

    def state(self) -> dict[str, list[Tensor]]:
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Copy a state into this optimizer."""
        for name, tensors in self.state().items():
            for tensor, saved in zip(tensors, state[name], strict=True):
                tensor.copy_(saved)
