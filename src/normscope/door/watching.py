r"""Which part of a gradient the norms of a model remove, in its own backward pass."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.door.recognized import channels, norms, recognized
from normscope.errors import Explained
from normscope.measure.decomposition import Standardized, decompose, gradient_at_z, standardize


class _Pass(NamedTuple):
    """The gradient at z of one pass, (tokens, d), and the tokens that it belongs to."""

    g: Tensor
    at: Standardized


class Watched:
    """What has passed the norms of a model. See ``watch``."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self._layers = layers
        self._passes: dict[str, list[_Pass]] = {name: [] for name in layers}

    def keep(self, name: str, x: Tensor, y: Tensor) -> None:
        """Of one forward pass of a norm; and when it comes, the gradient at y."""
        if not y.requires_grad:
            return
        d = math.prod(channels(self._layers[name], x))
        x = x.detach().reshape(-1, d)
        layer = recognized(self._layers[name], x, y.detach().reshape(-1, d))
        x = x.to("cpu", torch.float64, copy=True)

        def keep(dy: Tensor) -> None:
            g = gradient_at_z(layer, dy.detach().reshape(-1, d).to("cpu", torch.float64))
            with torch.no_grad():
                self._passes[name].append(_Pass(g, standardize(layer, x)))

        y.register_hook(keep)

    def table(self) -> pd.DataFrame:
        """A row a norm that a gradient has passed, in the model's order.

        Columns: norm (its name), kind (its class), center, d, tokens, and those of
        ``normscope.measure.decomposition.decompose``. ``r_mean`` is the share of the gradient's
        energy that centering removes, ``r_radial`` the share that scaling removes, ``r_tangent``
        what passes: means over tokens, that add up to 1. With ``_of_batch`` tokens count by their
        energy. ``cos_center_scale``, ``cos_projected`` and ``cos_straight_through`` are cosines
        with the exact gradient, of a backward pass that leaves out the radial term, the division
        by sigma, or all of it; ``error_*`` their distances from it.

        Raises:
            Explained: no gradient has passed.
        """
        rows = []
        for name, passes in self._passes.items():
            if passes:
                g, z, sigma = (
                    torch.cat(parts)
                    for parts in zip(*((p.g, p.at.z, p.at.sigma) for p in passes), strict=True)
                )
                at = Standardized(z, sigma, passes[0].at.center)
                head = {"norm": name, "kind": type(self._layers[name]).__name__}
                head |= {"center": at.center, "d": g.shape[1], "tokens": len(g)}
                rows.append(head | decompose(g, at))
        if not rows:
            raise Explained(
                "no gradient has passed a norm: run the forward pass, then loss.backward(), inside "
                "of `with normscope.watch(model)`"
            )
        return pd.DataFrame(rows)


@contextmanager
def watch(model: nn.Module) -> Iterator[Watched]:
    r"""Watch the LayerNorms and RMSNorms of a model while the body runs both passes.

    With ``g = gain * dL/dy``, ``z = (x - <x>) / sigma`` and <.> a mean over the d channels, a
    LayerNorm passes back (Xu et al. 2019, arXiv:1911.07013)

        dL/dx = (g - <g> - z <g z>) / sigma

    and an RMSNorm the same without ``<g>``, with ``z = x / sigma``: centering removes of g what is
    along 1, scaling what is along z. ::

        with normscope.watch(model) as norms:
            loss = criterion(model(inputs), targets)
            loss.backward()
        norms.table()

    Tokens are kept in float64 on the CPU, of all passes of the body: one or a few of them. The
    model, its gradients and its random numbers are as without.

    Args:
        model: of any kind; norms are ``torch.nn.LayerNorm``, ``torch.nn.RMSNorm``, and classes that
            are called so and compute one, as in transformers.

    Raises:
        Explained: the model has no norm, or one that computes something else.
    """
    layers = norms(model)
    watched = Watched(layers)

    def hooked(name: str, layer: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def keep(
            _: nn.Module, args: tuple[Tensor, ...], named: dict[str, Tensor], y: Tensor
        ) -> None:
            watched.keep(name, [*args, *named.values()][0], y)

        return layer.register_forward_hook(keep, with_kwargs=True)

    handles = [hooked(name, layer) for name, layer in layers.items()]
    try:
        yield watched
    finally:
        for handle in handles:
            handle.remove()
