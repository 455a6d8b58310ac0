"""Norms of the residual stream, by forward hooks: the same for trained and pretrained models.

The stream is seen at these sites: the embedding (what enters the first block), every block's
output, and the final norm's output if there is one. The residual gain of a site is the ratio of its
norm to the norm at the site before, per token; its logarithm is what is averaged.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def site_names(n_blocks: int, final_norm: bool) -> list[str]:
    """Names of the sites in the order of depth."""
    blocks = [f"block_{i}" for i in range(n_blocks)]
    return ["embedding", *blocks, *(["final_norm"] if final_norm else [])]


@contextmanager
def recording(blocks: Sequence[nn.Module], final_norm: nn.Module | None) -> Iterator[list[Tensor]]:
    """Record the norm at every site while the body runs one forward pass.

    Yields a list that the pass fills with one fp32 (or better) tensor (batch, positions) a site. A
    block may return a tensor or a tuple whose first item is the stream.

    Args:
        blocks: of the model, in order.
        final_norm: the norm after the last block, or None.
    """
    norms: list[Tensor] = []

    def keep(output: Any) -> None:
        stream = output if isinstance(output, Tensor) else output[0]
        wide = stream.to(torch.promote_types(stream.dtype, torch.float32))
        norms.append(torch.linalg.vector_norm(wide.detach(), dim=-1))

    handles = [blocks[0].register_forward_pre_hook(lambda _, args: keep(args))]
    for module in [*blocks, *([final_norm] if final_norm is not None else [])]:
        handles.append(module.register_forward_hook(lambda _, args, output: keep(output)))
    try:
        yield norms
    finally:
        for handle in handles:
            handle.remove()


def stream_norms(
    forward: Callable[[Tensor], object],
    blocks: Sequence[nn.Module],
    final_norm: nn.Module | None,
    batches: Sequence[Tensor],
) -> Tensor:
    """Norms (sites, windows, positions) over batches of tokens, each (windows, positions).

    Raises:
        ValueError: a site fired more or less than once in a pass, so that depth has no meaning.
    """
    sites = len(blocks) + 1 + (final_norm is not None)
    parts = []
    with torch.inference_mode():
        for tokens in batches:
            with recording(blocks, final_norm) as norms:
                forward(tokens)
            if len(norms) != sites:
                raise ValueError(f"{len(norms)} recordings at {sites} sites in one forward pass")
            parts.append(torch.stack(norms))
    return torch.cat(parts, dim=1)


def log_gain(norms: Tensor) -> Tensor:
    """ln of the ratio to the site before, (sites - 1, windows, positions)."""
    return norms.log().diff(dim=0)
