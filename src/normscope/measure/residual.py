"""Norms of the residual stream, by forward hooks: the same for trained and pretrained models.

The stream is seen at these sites: the embedding (what enters the first block), every block's
output, and the final norm's output if there is one. The residual gain of a site is the ratio of its
norm to the norm at the site before, per token; its logarithm is what is averaged. The ratio is the
gain of a block only if the block takes what the block before it gave, which is checked at every
site of every pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from normscope.errors import Explained

SAME = 1e-3  # relative difference of two norms of one stream


class NotTheStream(Explained):
    """The modules named as blocks or final norm do not pass the residual stream on in turn."""


def site_names(n_blocks: int, final_norm: bool) -> list[str]:
    """Names of the sites in the order of depth."""
    blocks = [f"block_{i}" for i in range(n_blocks)]
    return ["embedding", *blocks, *(["final_norm"] if final_norm else [])]


class Recorder:
    """The norms that a forward pass has at the sites, in the order of depth.

    Args:
        names: of the modules for errors, the blocks in order and then the final norm if any.
        n_blocks: how many of them are blocks.

    Attributes:
        norms: those of the current pass, one fp32 (or better) tensor (batch, positions) per site.
            Replace the list to record another pass.
    """

    def __init__(self, names: Sequence[str], n_blocks: int) -> None:
        self.norms: list[Tensor] = []
        self._names, self._n_blocks = names, n_blocks
        self._width = 0  # of the stream
        self._in_final_norm = False

    def enter(self, site: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check what enters the module that gives the stream of a site.

        Raises:
            NotTheStream: the module runs out of turn, or does not take what the one before gave.
        """
        if site > self._n_blocks and len(self.norms) < site:
            return  # some models normalize their embedding with the same module as their last block
        stream = _stream(args or [kwargs.get("hidden_states")])
        first = site == 1 and not self.norms
        if not first and len(self.norms) != site:
            raise self._error(site, "it runs more than once or out of order")
        if first and stream is not None:
            self._width = stream.shape[-1]
            self.norms.append(_norm(stream))
        if stream is None or not self._fits(stream) or not _same(stream, self.norms[-1]):
            giver = "an embedding" if site == 1 else f"the output of {self._names[site - 2]}"
            raise self._error(site, f"what enters it is not {giver}")
        self._in_final_norm = site > self._n_blocks

    def leave(self, site: int, output: Any) -> None:
        """Record the output of a module that ``enter`` let in.

        Raises:
            NotTheStream: it is not a stream of the same shape.
        """
        if site > self._n_blocks and not self._in_final_norm:
            return
        self._in_final_norm = False
        stream = _stream(output)
        if stream is None or not self._fits(stream):
            raise self._error(site, "its output does not have the shape of its input")
        self.norms.append(_norm(stream))

    def _fits(self, stream: Tensor) -> bool:
        return stream.shape == (*self.norms[0].shape, self._width)

    def stack(self) -> Tensor:
        """The norms of a whole pass, (sites, batch, positions).

        Raises:
            NotTheStream: the pass left out a block or the final norm.
        """
        site = max(len(self.norms), 1)
        if site <= len(self._names):
            after = "after the last block" if site > self._n_blocks else "in its turn"
            raise self._error(site, f"it does not run {after}")
        return torch.stack([norm.to(self.norms[0].device) for norm in self.norms])

    def _error(self, site: int, reason: str) -> NotTheStream:
        name = self._names[site - 1]
        if site > self._n_blocks:
            return NotTheStream(
                f"{name} is not the norm after the last block ({reason}): name that norm with the "
                "key final_norm, or set final_norm to none to measure the blocks alone"
            )
        return NotTheStream(
            f"{name} is not a block of the residual stream ({reason}): name the list of blocks "
            "with the key blocks; a model that does not pass one stream through one list of "
            "blocks, each block once, has no residual gain"
        )


@contextmanager
def recording(
    blocks: Sequence[nn.Module], final_norm: nn.Module | None, names: Sequence[str] | None = None
) -> Iterator[Recorder]:
    """Record the norm at every site while the body runs one forward pass.

    Yields a ``Recorder`` that the pass fills. A block takes the stream as its first argument or as
    ``hidden_states``, and returns a tensor or a tuple whose first item is the stream.

    Args:
        final_norm: the norm after the last block, or None. What it does before the last block's
            output is there, as in models that use it for their embedding too, is not recorded.
        names: of the blocks and the final norm in errors; those of the sites if None.

    Raises:
        NotTheStream: during the pass, as soon as a block runs more than once or out of order, or
            a block or the final norm does not take the output of the module before it.
    """
    modules = [*blocks, *([final_norm] if final_norm is not None else [])]
    sites = site_names(len(blocks), final_norm is not None)
    recorder = Recorder(names or sites[1:], len(blocks))
    handles = []
    for site, module in enumerate(modules, 1):
        handles += _hooks(module, site, recorder)
    try:
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def _hooks(module: nn.Module, site: int, recorder: Recorder) -> list[Any]:
    return [
        module.register_forward_pre_hook(
            lambda _, args, kwargs: recorder.enter(site, args, kwargs), with_kwargs=True
        ),
        module.register_forward_hook(lambda _, args, output: recorder.leave(site, output)),
    ]


def _stream(value: Any) -> Tensor | None:
    """The value, or the first of its items, if that is a tensor of floating-point vectors."""
    if not isinstance(value, Tensor):
        try:
            value = value[0]
        except (TypeError, LookupError):
            return None
    is_stream = isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1
    return value if is_stream else None


def _norm(stream: Tensor) -> Tensor:
    wide = stream.to(torch.promote_types(stream.dtype, torch.float32))
    return torch.linalg.vector_norm(wide.detach(), dim=-1)


def _same(stream: Tensor, norm: Tensor) -> bool:
    """Whether the stream has these norms; what is not finite is reported elsewhere."""
    return torch.allclose(_norm(stream), norm.to(stream.device), rtol=SAME, equal_nan=True)


def stream_norms(
    forward: Callable[[Tensor], object],
    blocks: Sequence[nn.Module],
    final_norm: nn.Module | None,
    batches: Sequence[Tensor],
) -> Tensor:
    """Norms (sites, windows, positions) over batches of tokens, each (windows, positions).

    Raises:
        NotTheStream: the blocks do not run in turn, each once, so that depth has no meaning.
    """
    parts = []
    with torch.inference_mode():
        for tokens in batches:
            with recording(blocks, final_norm) as recorder:
                forward(tokens)
            parts.append(recorder.stack())
    return torch.cat(parts, dim=1)


def log_gain(norms: Tensor) -> Tensor:
    """ln of the ratio to the site before, (sites - 1, windows, positions)."""
    return norms.log().diff(dim=0)
