"""AdamW without the Optimizer around it."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw


class AdamW:
    """``torch.optim.AdamW`` to the bit (Loshchilov & Hutter 2019, arXiv:1711.05101).

    It calls the same kernel, without the class that loads torch's compiler at its first use: 0.6 s,
    as much as a third of a short run.

    Args:
        groups: parameters, with the weight decay of each group.
        beta1, beta2: decay rates of the moments.
    """

    def __init__(
        self, groups: Sequence[tuple[Sequence[Tensor], float]], beta1: float, beta2: float
    ) -> None:
        self.decays = [(len(parameters), decay) for parameters, decay in groups]
        self.parameters = [p for parameters, _ in groups for p in parameters]
        self.beta1, self.beta2 = beta1, beta2
        self.first = [torch.zeros_like(p) for p in self.parameters]  # running mean of gradients
        self.second = [torch.zeros_like(p) for p in self.parameters]  # of their squares
        self.steps = [torch.zeros(()) for _ in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Move the parameters against their gradients, which are in the same order.

        Raises:
            ValueError: not one gradient a parameter.
        """
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{len(gradients)} gradients of {len(self.parameters)} parameters")
        begin = 0
        for count, decay in self.decays:
            group = slice(begin, begin + count)
            begin += count
            adamw(
                self.parameters[group],
                list(gradients[group]),
                self.first[group],
                self.second[group],
                [],
                self.steps[group],
                fused=True,
                amsgrad=False,
                beta1=self.beta1,
                beta2=self.beta2,
                lr=learning_rate,
                weight_decay=decay,
                eps=1e-8,
                maximize=False,
            )

    def state(self) -> dict[str, list[Tensor]]:
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        self.first, self.second, self.steps = (state[k] for k in ("first", "second", "steps"))
