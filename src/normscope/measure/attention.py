"""Attention of a Transformer: scores, the share of the first position, and unselectable keys.

Models are in evaluation mode, and tokens are (windows, T).
"""

import math

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from normscope.measure.hooks import passing
from normscope.nn.model import Attention, Transformer

MARGIN = 1e-6  # of the score of a selected key over the others, relative to the largest key


def attentions(model: Transformer) -> dict[str, Attention]:
    """The attention of every block by its name, in order of depth."""
    return {name: m for name, m in model.named_modules() if isinstance(m, Attention)}


@torch.no_grad()
def scores(model: Transformer, tokens: Tensor) -> Tensor:
    """Scores before the softmax, (blocks, windows x heads, T, T); -inf where a key is not seen."""
    sublayers = attentions(model)
    with passing(sublayers) as seen:
        model(tokens)
    parts = []
    for name, sublayer in sublayers.items():
        q, k, _ = sublayer.heads(seen[name][0])
        T = q.shape[1]
        parts.append(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]) + sublayer.mask[:T, :T])
    return torch.stack(parts)


def largest_score(values: Tensor) -> float:
    """The largest absolute value of ``scores``."""
    return float(values[values.isfinite()].abs().max())


def first_share(values: Tensor) -> float:
    """The mean attention weight of position 0, over later positions, heads and blocks.

    Args:
        values: From ``scores``, of attention with softmax.
    """
    return float(values.softmax(-1)[..., 1:, 0].mean())


def is_selectable(keys: np.ndarray, i: int) -> bool:
    """Whether some query gives key i a higher score than every other key.

    Key i is then a vertex of the keys' convex hull. The linear program of Brody et al. 2023
    (arXiv:2305.02582, section 3.2) maximizes the smallest margin ``q (k_i - k_j)`` over queries of
    bounded entries.

    Args:
        keys: (n, c), finite.
        i: The row of the key.
    """
    scale = np.abs(keys).max()
    if scale == 0:
        return False
    others = np.delete(keys, i, axis=0) / scale
    c = keys.shape[1]
    # variables q and the margin m, to be maximized: m - q (k_i - k_j) <= 0 for every other key j
    rows = np.hstack([others - keys[i] / scale, np.ones((len(others), 1))])
    bounds = [*[(-1, 1)] * c, (None, 1)]
    done = linprog([*[0.0] * c, -1.0], A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds)
    return bool(done.success and done.fun is not None and -done.fun > MARGIN)


@torch.no_grad()
def unselectable(model: Transformer, tokens: Tensor) -> float:
    """The share of attention's inputs that no query can give the highest score of their window.

    The inputs are what a block's attention reads, after its norm if it has one; on a sphere, and on
    its image under a gain and a bias, every point can be selected.
    """
    with passing(attentions(model)) as seen:
        model(tokens)
    windows = torch.stack([x for x, _ in seen.values()]).double().flatten(0, 1).cpu().numpy()
    return _unselectable_share(windows)


@torch.no_grad()
def unselectable_keys(model: Transformer, tokens: Tensor) -> float:
    """The share of the keys of a head that no query can give the highest score of their window.

    The keys are those of the dot product: after the projection, and after their norm if they have
    one. All heads, blocks and windows have the same weight.
    """
    sublayers = attentions(model)
    with passing(sublayers) as seen:
        model(tokens)
    of_blocks = [sublayer.heads(seen[name][0])[1] for name, sublayer in sublayers.items()]
    heads = torch.cat(of_blocks).double().cpu().numpy()  # (blocks x windows x H, T, C / H)
    return _unselectable_share(heads)


def _unselectable_share(sets: np.ndarray) -> float:
    """The share of the points of all sets, (sets, n, c), that cannot be selected in their set."""
    answers = [is_selectable(keys, i) for keys in sets for i in range(len(keys))]
    return 1 - sum(answers) / len(answers)
