"""The norm layers of a model, and the inputs and outputs of modules in a forward pass."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from normscope.nn.custom import CustomNorm
from normscope.nn.norms import BatchNorm, PointwiseNorm, TokenNorm

NormLayer = TokenNorm | BatchNorm | PointwiseNorm | CustomNorm


def norm_layers(model: nn.Module) -> dict[str, NormLayer]:
    """The norm layers of the model by name, in order of depth, without identities.

    Norms of queries, keys and values come before the other norms of their branch.
    """
    return {name: m for name, m in model.named_modules() if isinstance(m, NormLayer)}


@contextmanager
def passing(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, tuple[Tensor, Tensor]]]:
    """Record the input and output of each module while the body runs one forward pass.

    The tensors keep their graph.
    """
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def hook(name: str) -> Any:
        def keep(_: nn.Module, args: tuple[Tensor], output: Tensor) -> None:
            seen[name] = args[0], output

        return keep

    handles = [module.register_forward_hook(hook(name)) for name, module in modules.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
