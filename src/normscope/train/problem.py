"""What models learn: their batches, their loss, and their evaluation."""

from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from normscope.io.dataset import Dataset, DatasetError
from normscope.measure.scales import scales
from normscope.measure.windows import SplitLoss, as_tensor, draw, split_loss
from normscope.nn.model import Transformer, cross_entropy
from normscope.train.recipe import Stack, Training


class Problem(Protocol):
    """Shapes: B examples in a batch."""

    training: Training

    def build(self) -> nn.Module:
        """An untrained model, initialized from torch's global generator."""
        ...

    def draw(self, g: Generator) -> tuple[Tensor, Tensor]:
        """Inputs and targets of a step, each (B, ...), on the CPU."""
        ...

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of one model on a batch, in nats: a scalar."""
        ...

    def evaluate(self, model: nn.Module, g: Generator, device: torch.device) -> SplitLoss:
        """The held-out loss of a model in evaluation mode; ``g`` draws its batches."""
        ...

    def watch(self, model: nn.Module, inputs: Tensor) -> dict[str, float]:
        """Further columns of the curve, from a model and its batch."""
        ...


class NextCharacter:
    """Predict the next character at every position of a window, as in nanoGPT.

    Args:
        stack: sizes of the model and of batches.
        data: tokens.

    Raises:
        DatasetError: a split is too short for a window.
    """

    def __init__(self, stack: Stack, data: Dataset) -> None:
        for split, tokens in (("train", data.train), ("val", data.val)):
            if len(tokens) <= stack.model.block_size:
                raise DatasetError(
                    f"the {split} split has {len(tokens)} tokens; windows of block_size "
                    f"{stack.model.block_size} and their targets need at least one more than that"
                )
        self.stack, self.training, self.vocab_size = stack, stack.training, data.vocab_size
        self.train_tokens = as_tensor(data.train[: stack.training.train_tokens])
        self.val_tokens = as_tensor(data.val[: stack.training.eval_tokens])

    def build(self) -> Transformer:
        s = self.stack
        return Transformer(s.model, s.norm, s.placement, self.vocab_size)

    def draw(self, g: Generator) -> tuple[Tensor, Tensor]:
        T, B = self.stack.model.block_size, self.training.batch_size
        return draw(self.train_tokens, T, B, g)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets)

    def evaluate(self, model: nn.Module, g: Generator, device: torch.device) -> SplitLoss:
        """The whole validation split, or ``eval_tokens`` of it."""
        return split_loss(model, self.val_tokens.to(device), self.stack.model.block_size)

    def watch(self, model: nn.Module, inputs: Tensor) -> dict[str, float]:
        """The scales of the model in evaluation mode, if the training records them."""
        if not self.training.records_scales:
            return {}
        last = model.get_submodule(f"blocks.{self.stack.model.n_layer - 1}")
        measured = scales(model.eval(), last, inputs)
        model.train()
        return measured
