"""What happens inside the blocks of a pretrained model: attention sinks and massive activations.

Forward hooks reduce the attention weights and the stream of a block to one number per sequence as
soon as they exist, so that no pass is repeated and no tensor of another block is kept.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEASURES = ("sink", "largest_activation", "largest_is_first", "uniform_cosine", "sigma")


@contextmanager
def watching(blocks: Sequence[nn.Module], mask: Tensor) -> Iterator[dict[str, Tensor]]:
    """Measure the inside of every block while the body runs one forward pass.

    Yields what ``attention_measures`` and ``stream_measures`` return by name, each (blocks,
    sequences) in float64, which the pass fills. What a block does not give remains NaN.

    Args:
        blocks: of the model, in order. Their outputs are tensors, or have the stream in front.
        mask: (sequences, positions), 1 at real tokens, which are in front of the padding.
    """
    shape = len(blocks), len(mask)
    measures = {name: torch.full(shape, math.nan, dtype=torch.float64) for name in MEASURES}

    def keeping(block: int, measure: Callable[[Any, Tensor], dict[str, Tensor]]) -> Any:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            for name, values in measure(output, mask).items():
                measures[name][block] = values

        return hook

    handles = []
    for i, block in enumerate(blocks):
        handles.append(block.register_forward_hook(keeping(i, stream_measures)))
        handles += [
            m.register_forward_hook(keeping(i, attention_measures)) for m in block.modules()
        ]
    try:
        yield measures
    finally:
        for handle in handles:
            handle.remove()


def attention_measures(output: Any, mask: Tensor) -> dict[str, Tensor]:
    """``sink`` (sequences,): the mean attention weight on position 0, over later queries and heads.

    It is that of ``normscope.measure.attention.first_share``, in one block and per sequence: a high
    value is an attention sink (Xiao et al. 2023, arXiv:2309.17453; Gu et al. 2024,
    arXiv:2410.10781). A sequence of one token has none.

    Args:
        output: of a module. In transformers, attention returns its result and its weights
            (sequences, heads, positions, positions); other outputs give no measure.
        mask: (sequences, positions), 1 at real tokens.
    """
    weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
    n, length = mask.shape
    if not isinstance(weights, Tensor) or weights.ndim != 4:
        return {}
    if (weights.shape[0], *weights.shape[2:]) != (n, length, length) or (weights < 0).any():
        return {}
    later = mask.to(weights.device).bool()  # a copy, as the mask holds integers
    later[:, 0] = False
    return {"sink": _mean(weights[..., 0].mean(1), later)}


def stream_measures(output: Any, mask: Tensor) -> dict[str, Tensor]:
    """Measures (sequences,) of the stream after a block, over the real positions of a sequence.

    ``largest_activation`` is the largest absolute value, divided by the median absolute value over
    positions and channels; a high value is a massive activation (Sun et al. 2024,
    arXiv:2402.17762). ``largest_is_first`` is 1 if that value is at position 0, and 0 otherwise.
    ``uniform_cosine`` is the mean cosine between the stream and (1, ..., 1). ``sigma`` is the
    standard deviation over channels at the last position, by which a LayerNorm after the block
    would divide.

    Args:
        output: of the block. A stream that is not (sequences, positions, width) has no measure.
        mask: (sequences, positions), 1 at real tokens.
    """
    stream: Tensor = output if isinstance(output, Tensor) else output[0]
    if stream.shape[:-1] != mask.shape:
        return {}
    real, sizes = mask.to(stream.device).bool(), stream.abs()
    largest, position = sizes.amax(-1).where(real, 0).max(-1)
    medians = [size[kept].median() for size, kept in zip(sizes, real, strict=True)]
    uniform = torch.ones_like(stream[..., :1]).expand_as(stream)
    last = stream[torch.arange(len(stream)), real.sum(-1).cpu() - 1]
    return {
        "largest_activation": largest / torch.stack(medians),
        "largest_is_first": position == 0,
        "uniform_cosine": _mean(F.cosine_similarity(stream, uniform, -1), real),
        "sigma": last.float().std(-1, correction=0),
    }


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean over the chosen positions; NaN if there is none."""
    return values.where(chosen, 0).sum(-1) / chosen.sum(-1)
