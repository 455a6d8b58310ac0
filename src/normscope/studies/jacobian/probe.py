"""What the norms of a trained Transformer remove from the gradient, and what surrogates change.

The gradient that reaches a norm is the one that the model trains with: under feedback alignment it
is not dL/dy. ``signal`` says which it is: ``own``, or ``backprop``, the true gradient of the same
weights.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.io import dataset, stored
from normscope.measure.decomposition import (
    backward,
    decompose,
    gradient_at_z,
    published_quantities,
    relative_error,
    standardize,
)
from normscope.measure.derivatives import transposed_product
from normscope.measure.hooks import norm_layers, passing
from normscope.measure.names import SURROGATES
from normscope.measure.windows import as_tensor, draw, validation_windows
from normscope.nn.feedback import FeedbackLinear
from normscope.nn.model import Transformer
from normscope.nn.norms import TokenNorm
from normscope.nn.recipe import NormBackward
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.studies.jacobian.tables import GRADIENTS, LAYERS
from normscope.studies.stage import ProbeInputs
from normscope.train.outputs import log
from normscope.train.trained import transformers

Batch = tuple[Tensor, Tensor]  # tokens and targets, each (windows, T)
Row = dict[str, str | int | float]
FINAL = "final_norm"


def probe(
    recipe: JacobianProbe, inputs: ProbeInputs, device: torch.device
) -> dict[str, pd.DataFrame]:
    """The models of one training job: tables ``layers`` and ``gradients``."""
    folder = inputs.models / inputs.name
    data, (stack, models) = dataset.read(inputs.corpus), transformers(folder)
    diverged_at = stored.metrics(folder)["diverged_at"]
    layers, gradients = [], []
    for seed, model in models.items():
        if pd.notna(diverged_at[seed]):
            log(f"seed {seed}: diverged at step {diverged_at[seed]}; its rows stay empty")
            empty = {"signal": "own", "variant": "corrected", "seed": seed}
            layers += [empty | row for row in names(model)]
        else:
            windows = batches(data, stack.model.block_size, recipe.windows, seed)
            validation, training = ((x.to(device), y.to(device)) for x, y in windows)
            rows = decompose_norms(model.to(device, torch.float64), validation, training)
            layers += [row | {"seed": seed} for row in rows]
            rows = surrogate_gradients(model.float(), validation)
            gradients += [row | {"seed": seed} for row in rows]
    table = pd.DataFrame(layers, columns=[c.name for c in LAYERS])
    return {
        "layers": table.astype({"tokens": "Int64"}),
        "gradients": pd.DataFrame(gradients, columns=[c.name for c in GRADIENTS]),
    }


def batches(tokens: dataset.Dataset, T: int, windows: int, seed: int) -> tuple[Batch, Batch]:
    """The same validation windows for every model; training windows drawn as a training would."""
    # by the next seed, so that the batch is not the first one of this model's training
    g = torch.Generator().manual_seed((seed + 1) % 2**63)
    return validation_windows(tokens.val, T, windows), draw(as_tensor(tokens.train), T, windows, g)


class NormPass(NamedTuple):
    """What passed a norm: its input x and the gradient dy at its output, each (tokens, d)."""

    x: Tensor
    dy: Tensor


def at_norms(model: Transformer, batch: Batch) -> dict[str, NormPass]:
    """What passes each norm in one forward and backward pass of the mean loss."""
    tokens, targets = batch
    with passing(norm_layers(model)) as seen:
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    outputs = [output for _, output in seen.values()]
    grads = torch.autograd.grad(loss, outputs) if outputs else ()
    return {
        name: NormPass(x.detach().flatten(0, -2), dy.flatten(0, -2))
        for (name, (x, _)), dy in zip(seen.items(), grads, strict=True)
    }


def _backward(layer: nn.Module, seen: NormPass) -> Tensor:
    """dL/dx of one layer alone, by autograd."""
    x = seen.x.requires_grad_()
    (dx,) = transposed_product(layer(x), x, seen.dy)
    seen.x.requires_grad_(False)
    return dx


def _measure(layer: nn.Module, seen: NormPass) -> dict[str, float]:
    """The measures of a layer; without token statistics, only those that do not need z."""
    exact = _backward(layer, seen)
    if not isinstance(layer, TokenNorm):
        return {
            "cos_straight_through": _mean_cosine(seen.dy, exact),
            "error_straight_through": relative_error(seen.dy, exact),
        }
    at = standardize(layer, seen.x)
    with_gain, without = (gradient_at_z(layer, seen.dy, gain=gain) for gain in (True, False))
    return decompose(with_gain, at) | {
        "error_closed_form": relative_error(backward("exact", with_gain, at), exact),
        "error_without_gain": relative_error(backward("exact", without, at), exact),
    }


def _mean_cosine(a: Tensor, b: Tensor) -> float:
    return float(F.cosine_similarity(a, b, dim=-1).mean())


@contextmanager
def backprop(model: Transformer) -> Iterator[None]:
    """The model with feedback through its weights: B = W^T turns FA into backpropagation."""
    layers = [m for m in model.modules() if isinstance(m, FeedbackLinear)]
    drawn, direct = [m.feedback for m in layers], model.is_direct
    for layer in layers:
        layer.feedback = layer.weight.detach()
    model.is_direct = False
    try:
        yield
    finally:
        model.is_direct = direct
        for layer, feedback in zip(layers, drawn, strict=True):
            layer.feedback = feedback


def signals(model: Transformer) -> dict[str, AbstractContextManager]:
    """The contexts in which the model has its own gradient, and backpropagation's if it differs."""
    has_feedback = any(isinstance(m, FeedbackLinear) for m in model.modules())
    others = {"backprop": backprop(model)} if model.is_direct or has_feedback else {}
    return {"own": nullcontext(), **others}


def names(model: Transformer) -> list[Row]:
    """Name, place, index in depth, kind and width d of every norm layer."""
    layers = norm_layers(model)
    # the last norm of post-norm lies in the last block, and precedes the head like a final norm
    last = FINAL if FINAL in layers else f"blocks.{len(model.blocks) - 1}.mlp.outside"
    return [
        {
            "layer": name,
            "place": "final" if name == last else "block",
            "index": index,
            "kind": type(layer).__name__,
            "d": layer.d,
        }
        for index, (name, layer) in enumerate(layers.items())
    ]


def decompose_norms(model: Transformer, validation: Batch, training: Batch) -> list[Row]:
    """One row per norm layer, signal and variant; an empty list without norm layers.

    Args:
        model: in evaluation mode, in float64.
        validation: what ``corrected`` is measured on.
        training: what ``published`` is measured on: LayerNorm with the gradient of the model.
    """
    layers, heads = norm_layers(model), names(model)
    seen_by: dict[str, dict[str, NormPass]] = {}
    for signal, context in signals(model).items():
        with context:
            seen_by[signal] = at_norms(model, validation)
    rows: list[Row] = []
    for signal, seen in seen_by.items():
        for head in heads:
            name = str(head["layer"])
            row = {"signal": signal, "variant": "corrected", "tokens": len(seen[name].x)}
            row |= head | _measure(layers[name], seen[name])
            if signal == "own" and "backprop" in seen_by:
                row["alignment"] = _mean_cosine(seen[name].dy, seen_by["backprop"][name].dy)
            rows.append(row)
    for head, (name, seen) in zip(heads, at_norms(model, training).items(), strict=True):
        layer = layers[name]
        if isinstance(layer, TokenNorm) and layer.center and layer.radius == "sqrt(d)":
            row = {"signal": "own", "variant": "published", "tokens": len(seen.x)}
            rows.append(row | head | published_quantities(*seen))
    return rows


@contextmanager
def replace_backward(layers: Sequence[Any], rule: NormBackward) -> Iterator[None]:
    """Norms with a surrogate backward pass while the body runs; exact before and after."""
    for layer in layers:
        layer.norm_backward = rule
    try:
        yield
    finally:
        for layer in layers:
            layer.norm_backward = "exact"


def parameter_gradient(model: Transformer, batch: Batch) -> Tensor:
    """Gradient of the mean loss with respect to all parameters, as one vector."""
    tokens, targets = batch
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def surrogate_gradients(model: Transformer, batch: Batch) -> list[Row]:
    """The gradient of all parameters with each surrogate in all norms, in the blocks', or the last.

    One row per signal, surrogate and place, compared with the exact gradient; none where a norm
    has no surrogates, and none without norm layers.
    """
    layers = norm_layers(model)
    if not all(isinstance(m, TokenNorm) and m.radius == "sqrt(d)" for m in layers.values()):
        return []
    final = [m for name, m in layers.items() if name == FINAL]
    blocks = [m for name, m in layers.items() if name.startswith("blocks.")]
    places = {"all": list(layers.values()), "blocks": blocks, "final": final}

    rows: list[Row] = []
    for signal, context in signals(model).items():
        with context:
            exact = parameter_gradient(model, batch)
            for rule, (place, norms) in itertools.product(SURROGATES, places.items()):
                if norms:
                    with replace_backward(norms, rule):
                        surrogate = parameter_gradient(model, batch)
                    row = {"signal": signal, "norm_backward": rule, "surrogates_in": place}
                    cosine = float(F.cosine_similarity(surrogate, exact, dim=0))
                    rows.append(row | {"cosine": cosine, "error": relative_error(surrogate, exact)})
    return rows
