"""Gains and biases of norms, folded into the linear layers that read their outputs.

``W (g * z + b) + c = (W diag(g)) z + (W b + c)``: the weight takes the gain, and the bias of the
linear layer takes the bias. A norm whose sigma is frozen is affine, so that a linear layer can take
all of it: ``g * z`` is then ``diag(g / sigma) (I - 1 1^T / d) x`` if it centers.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.frozen_norms import FrozenNorm, replace
from normscope.measure.readers import InFloat64, Reader, Readers, reading
from normscope.measure.recognition import recognize, run
from normscope.nn.norms import Affine, TokenNorm

TOLERANCE = 1e-10  # of the change of a logit by exact folding, over the largest, in float64


class Fold(NamedTuple):
    """What became of the gain and the bias of a norm.

    Attributes:
        into: the linear layers that took them, by name; none if the norm has neither.
        adds_bias: whether one of these had no bias before.
        problem: why the norm is as before, or None.
        change: the largest change of a logit, over the largest absolute logit, in float64.
    """

    into: tuple[str, ...] = ()
    adds_bias: bool = False
    problem: str | None = None
    change: float = 0.0


class _Part(NamedTuple):
    """The linear part of a norm: ``factor * u + bias``, with ``u = x - mean(x)`` if centered.

    factor and bias are (d,), or None where they change nothing.
    """

    factor: Tensor | None
    bias: Tensor | None
    center: bool = False

    @property
    def is_empty(self) -> bool:
        return self.factor is None and self.bias is None


@torch.no_grad()
def fold(
    model: nn.Module,
    norms: Mapping[str, nn.Module],
    logits: Callable[[], Tensor],
    new_biases: bool = True,
) -> dict[str, Fold]:
    """Fold each norm of a model that only linear layers read, in place.

    A folded norm has a gain of 1 and a bias of 0, and a folded ``FrozenNorm`` becomes an identity.
    After each of them the logits are compared with those before.

    Args:
        model: in float64 and in evaluation mode.
        logits: runs the model on some tokens.
        new_biases: whether linear layers without a bias may get one.
    """
    with InFloat64(), reading(model, norms) as readers:
        before = logits()
    folds: dict[str, Fold] = {}
    for name, norm in norms.items():
        try:
            x, y = readers.first_call(name)
            with InFloat64():
                part = _part(norm, x, y)
            into = [] if part.is_empty else readers.find(name)
            _check_biases(part, into)
            if not new_biases and _adds_bias(part, into):
                lacking = ", ".join(reader.name for reader in into if reader.bias is None)
                raise Explained(f"{lacking} would need a bias")
            if into:
                _clear(model, name, x)
        except Explained as e:
            folds[name] = Fold(problem=str(e))
            continue
        if not into:
            folds[name] = Fold()
            continue
        for reader in into:
            _merge(part, reader)
        names = tuple(reader.name for reader in into)
        with InFloat64():
            change = float((logits() - before).abs().max() / before.abs().max())
        if not change <= TOLERANCE:
            raise Explained(
                f"{name} cannot be folded: a logit changes by {change:.1e} of the largest, because "
                f"its output is read elsewhere than in {', '.join(names)}, or their bias is unused"
            )
        folds[name] = Fold(names, _adds_bias(part, into), None, change)
    return folds


def foresee(layer: TokenNorm, name: str, readers: Readers) -> Fold:
    """What ``fold`` would do with a norm, also if its gain is 1, after a pass that readers saw.

    Args:
        layer: what the norm computes.
        name: of the norm.
    """
    part = _Part(*_affine(layer))
    try:
        into = readers.find(name)
        _check_biases(part, into)
    except Explained as e:
        return Fold(problem=str(e))
    return Fold(tuple(reader.name for reader in into), _adds_bias(part, into))


def _part(norm: nn.Module, x: Tensor, y: Tensor) -> _Part:
    """The linear part of a norm that maps x to y, in float64.

    Raises:
        Explained: the norm is not recognized, or has several such parts.
    """
    if isinstance(norm, FrozenNorm):
        if norm.first is not None:
            raise Explained("its sigma at the first position is another one")
        gain, bias = _affine(norm)
        factor = norm.scale.expand(x.shape[-1]) if gain is None else norm.scale * gain
        return _Part(factor, bias, norm.center)
    return _Part(*_affine(recognize(norm, x, y).to(x.device)))


def _affine(layer: Affine) -> tuple[Tensor | None, Tensor | None]:
    """Gain and bias of a layer, each None if it changes nothing."""
    gain = None if layer.gain is None else layer.size(layer.gain)
    is_one = gain is None or bool((gain == 1).all())
    is_zero = layer.bias is None or not layer.bias.any()
    return None if is_one else gain, None if is_zero else layer.bias


def _adds_bias(part: _Part, readers: list[Reader]) -> bool:
    return part.bias is not None and any(reader.bias is None for reader in readers)


def _check_biases(part: _Part, readers: list[Reader]) -> None:
    """Check that linear layers can take the bias of a norm, if it has one."""
    for reader in readers if part.bias is not None else ():
        if reader.bias is None and not isinstance(reader.owner, nn.Linear):
            kind = type(reader.owner).__name__
            raise Explained(f"{reader.name}, a {kind}, cannot take its bias")


def _merge(part: _Part, reader: Reader) -> None:
    """Let a linear layer compute what it computed after the linear part of a norm."""
    weight = reader.weight.T if reader.transposed else reader.weight  # (out, in)
    if part.bias is not None:
        bias = reader.scale * (weight @ part.bias)
        if reader.bias is None:
            reader.owner.bias = nn.Parameter(bias, reader.weight.requires_grad)
        else:
            reader.bias.add_(bias)
    if part.factor is not None:
        weight = weight * part.factor
    if part.center:
        weight = weight - weight.mean(1, keepdim=True)
    reader.weight.copy_(weight.T if reader.transposed else weight)


def _clear(model: nn.Module, name: str, x: Tensor) -> None:
    """Set the gain of a norm to 1 and its bias to 0, or remove it if its sigma is frozen.

    Some classes store the gain as ``1 + weight``.

    Raises:
        Explained: no values of its parameters do; they are then as before.
    """
    norm = model.get_submodule(name)
    if isinstance(norm, FrozenNorm):
        replace(model, {name: nn.Identity()})
        return
    if isinstance(norm, TokenNorm):
        norm.gain = norm.bias = None
        return
    parameters = [p for p in norm.parameters() if p.numel() == x.shape[-1]]
    before = [p.clone() for p in parameters]
    for values in itertools.product((1.0, 0.0), repeat=len(parameters)):
        for p, value in zip(parameters, values, strict=True):
            p.fill_(value)
        if _part(norm, x, run(norm, x)).is_empty:
            return
    for p, value in zip(parameters, before, strict=True):
        p.copy_(value)
    raise Explained("no values of its parameters make its gain 1 and its bias 0")
