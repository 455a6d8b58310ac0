"""How many directions of a token a norm removes: the kernel of its Jacobian."""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch

from normscope.nn.norms import build
from normscope.nn.recipe import Norm

ZERO = 1e-6  # of the largest singular value, below which one counts as zero


def ranks(norms: Mapping[str, Norm], widths: Sequence[int], tokens: int) -> pd.DataFrame:
    """A row per arm and width: least and greatest number of removed directions over the tokens.

    The Jacobian of the norm at one token, (d, d) in float64, with eps as small as float64 allows:
    a norm with the token's own statistic is constant along the token itself, and along (1, ..., 1)
    if it centers.

    Args:
        norms: by arm; of a norm with batch statistics the token is a batch of its own tokens.
        widths: d.
        tokens: drawn from a normal distribution.
    """
    rows = []
    for arm, norm in norms.items():
        for d in widths:
            layer = build(norm.model_copy(update={"eps": 1e-300}), d).double().eval()
            x = torch.randn(
                tokens, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
            )
            removed = [_removed(torch.func.jacrev(layer)(token)) for token in x]
            rows.append({"arm": arm, "d": d, "least": min(removed), "greatest": max(removed)})
    return pd.DataFrame(rows)


def _removed(jacobian: torch.Tensor) -> int:
    values = torch.linalg.svdvals(jacobian.detach())
    return int((values < ZERO * values[0]).sum())
