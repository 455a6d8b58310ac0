"""Norms whose sigma is frozen at its mean over tokens, which makes them affine maps of the token.

A norm of each token is ``gain * u / sigma + bias``, with ``u = x - mean(x)`` if it centers, else
``u = x``. Only the division by sigma is not linear. With a fixed sigma the norm is affine, and the
linear layers after it can take it over (``normscope.measure.folding``). Baroni et al. 2025
(arXiv:2507.02559, FakeLN) take the mean of sigma over tokens.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.decomposition import standardize
from normscope.measure.recognition import first_tensor, recognize
from normscope.nn.norms import Affine, TokenNorm


class FrozenNorm(Affine):
    """``gain * u / sigma + bias``, with ``u = x - mean(x)`` if centered, else ``u = x``.

    Args:
        layer: the norm, whose gain and bias are copied.
        sigma: the constant by which u is divided.
        first: another constant for position 0 of tokens (windows, positions, ..., d).
    """

    scale: Tensor
    first: Tensor | None

    def __init__(self, layer: TokenNorm, sigma: float, first: float | None = None) -> None:
        super().__init__(layer.d, False, False, layer.log_rate)
        for name in ("gain", "bias"):
            if (p := getattr(layer, name)) is not None:
                setattr(self, name, nn.Parameter(p.detach().clone()))
        radius = layer.size(layer.g) if layer.radius == "learned" else torch.tensor(1.0)
        root = 1.0 if layer.radius == "sqrt(d)" else math.sqrt(layer.d)
        factor = radius.detach().double() / root
        self.center = layer.center
        self.register_buffer("scale", factor / sigma)
        self.register_buffer("first", None if first is None else factor / first)

    def forward(self, x: Tensor) -> Tensor:
        u = x - x.mean(-1, keepdim=True) if self.center else x
        scale = self.scale
        if self.first is not None:
            later = scale.expand(x.shape[1] - 1)
            scale = torch.cat([self.first[None], later]).view(-1, *[1] * (x.dim() - 2))
        return super().forward(scale * u)


class Sigmas:
    """Sigma of the tokens that pass a norm.

    Attributes:
        shape: of the model's input, (windows, positions).
    """

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.layer: TokenNorm | None = None
        self.problem = "the model does not run it on these tokens"
        self._all: list[Tensor] = []
        self._first: list[Tensor] = []
        self._axes: set[int] = set()  # of positions, in the norm's input
        self._like = torch.empty(0)  # of the type and on the device of the norm's output

    def keep(self, module: nn.Module, args: tuple, named: dict[str, Any], output: Any) -> None:
        """Keep sigma of each token of a forward pass; a hook of the norm."""
        try:
            x = first_tensor((*args, *named.values()))
            if x is None or not isinstance(output, Tensor):
                raise Explained("it does not map a tensor to a tensor")
            self.layer = self.layer or recognize(module, x, output)
        except Explained as e:
            self.problem = str(e)
            return
        tokens = x.reshape(-1, x.shape[-1]).to("cpu", torch.float64)
        sigma = standardize(self.layer, tokens).sigma.flatten()
        both = torch.stack([sigma, tokens.square().mean(-1).sqrt()])
        self._all.append(both)
        axes = [axis for axis, n in enumerate(x.shape[:-1]) if axis and n == self.shape[1]]
        if len(axes) == 1 and x.shape[0] == self.shape[0]:  # and not as many heads as positions
            self._axes |= {*axes}
            self._first.append(both.view(2, *x.shape[:-1]).select(axes[0] + 1, 0).flatten(1))
        self._like = output.new_empty(0)

    @property
    def values(self) -> Tensor:
        """Sigma of all tokens, (tokens,) in float64."""
        return torch.cat(self._all, -1)[0]

    @property
    def first(self) -> Tensor:
        """Sigma at position 0, empty if the input has no axes of windows and of positions."""
        return torch.cat(self._first, -1)[0] if self._first else torch.empty(0)

    def means_apart(self) -> tuple[Tensor, Tensor]:
        """The means of sigma and of the input's size ``sqrt(mean(x^2))``, (2,).

        First those at position 0, which are missing if the input has no axes of windows and of
        positions; then those of the other tokens.
        """
        every = torch.cat(self._all, -1)
        first = torch.cat(self._first, -1) if self._first else every[:, :0]
        others = every.shape[1] - first.shape[1]
        return first.mean(1), (every.sum(1) - first.sum(1)) / others

    def freeze(self, *, first_apart: bool = False) -> FrozenNorm:
        """The norm with sigma frozen at its mean, of the type and on the device of its output."""
        if self.layer is None:
            raise Explained(self.problem)
        if not first_apart:
            return FrozenNorm(self.layer, float(self.values.mean())).to(self._like)
        first, later = (float(means[0]) for means in self.means_apart())
        if self._axes != {1} or not math.isfinite(first + later):
            raise Explained("its input has no first position next to others")
        return FrozenNorm(self.layer, later, first).to(self._like)


@torch.no_grad()
def sigmas(
    norms: Mapping[str, nn.Module], batches: Iterable[Tensor], run: Callable[[Tensor], object]
) -> dict[str, Sigmas]:
    """Sigma of the tokens that pass norms of a model.

    Args:
        norms: modules of the model by name.
        batches: inputs of the model, such as tokens, (windows, positions) each.
        run: runs the model, in evaluation mode, on one of them.
    """
    measured = {name: Sigmas() for name in norms}
    handles = [
        module.register_forward_hook(measured[name].keep, with_kwargs=True)
        for name, module in norms.items()
    ]
    try:
        for batch in batches:
            for sigma in measured.values():
                sigma.shape = batch.shape[:2]
            run(batch)
    finally:
        for handle in handles:
            handle.remove()
    return measured


def frozen_norms(
    measured: Mapping[str, Sigmas], *, first_apart: bool
) -> tuple[dict[str, nn.Module], dict[str, str]]:
    """The frozen norms by name, and why others cannot be frozen.

    Args:
        measured: what ``sigmas`` returns.
        first_apart: position 0 has a separate mean.
    """
    new: dict[str, nn.Module] = {}
    problems: dict[str, str] = {}
    for name, sigma in measured.items():
        try:
            new[name] = sigma.freeze(first_apart=first_apart)
        except Explained as e:
            problems[name] = str(e)
    return new, problems


def freeze_norms(
    model: nn.Module,
    names: Iterable[str],
    batches: Iterable[Tensor],
    *,
    first_apart: bool = False,
    run: Callable[[Tensor], object] | None = None,
) -> nn.Module:
    """A copy of a model in which sigma of some norms is frozen at its mean over tokens.

    All means are those of the model itself, and not of one whose earlier norms are frozen.

    Args:
        batches: inputs of the model, (windows, positions) each, over whose tokens the means are.
        first_apart: position 0 has a separate mean.
    """
    measured = sigmas({name: model.get_submodule(name) for name in names}, batches, run or model)
    new, problems = frozen_norms(measured, first_apart=first_apart)
    if problems:
        lines = (f"the norm {name} cannot be frozen: {why}" for name, why in problems.items())
        raise Explained("\n".join(lines))
    model = copy.deepcopy(model)
    replace(model, new)
    return model


def replace(model: nn.Module, modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """Replace modules of a model, by dotted name and wherever they occur; return the old ones."""
    old = {name: model.get_submodule(name) for name in modules}
    for name, module in modules.items():
        everywhere = list(model.named_modules(remove_duplicate=False))
        for place in (place for place, m in everywhere if m is old[name]):
            model.set_submodule(place, module)
    return old


@contextmanager
def replacing(model: nn.Module, modules: Mapping[str, nn.Module]) -> Iterator[None]:
    """Replace modules of a model while the body runs; see ``replace``."""
    old = replace(model, modules)
    try:
        yield
    finally:
        replace(model, old)
