"""A norm by itself, in untrained networks of growing depth, and in its trained models."""

import copy
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.io import dataset
from normscope.io.texts import text_folder, text_of
from normscope.measure import properties
from normscope.measure.derivatives import transposed_product
from normscope.measure.hooks import norm_layers, passing
from normscope.measure.residual import log_gain, stream_norms
from normscope.measure.signals import signals
from normscope.measure.windows import validation_windows
from normscope.nn.arms import BUILT_IN, registry
from normscope.nn.model import Transformer
from normscope.nn.norms import build
from normscope.nn.recipe import Model
from normscope.studies.card.recipe import Costs, NormProbe
from normscope.studies.card.speed import speed
from normscope.studies.stage import ProbeInputs
from normscope.train.trained import load_verified

WIDTH, CONTEXT = 32, 32  # of the untrained networks
BATCH = 8  # windows of a backward pass
AT = 3  # tokens at which a Jacobian is taken

Row = dict[str, Any]


def probe(
    recipe: NormProbe | Costs, inputs: ProbeInputs, device: torch.device
) -> dict[str, pd.DataFrame]:
    """The tables ``norm``, ``growth``, ``layers`` and ``outputs`` of a norm, or that of costs."""
    if isinstance(recipe, Costs):
        return {"speed": speed(recipe, device)}
    stack, models = load_verified(inputs.models / inputs.name)
    layers: list[Row] = []
    windows: dict[int, tuple[Tensor, Tensor]] = {}
    for seed in stack.seeds:
        data = dataset.read(text_folder(inputs.corpus, text_of(recipe.texts, seed)))
        windows[seed] = validation_windows(data.val, stack.model.block_size, recipe.windows)
        torch.manual_seed(seed)
        start = Transformer(stack.model, stack.norm, stack.placement, data.vocab_size)
        states = {"start": start} | ({"trained": models[seed]} if seed in models else {})
        for state, model in states.items():
            rows = through_norms(model, *windows[seed], recipe.norm.is_token_wise)
            layers += [{"state": state, "seed": seed} | row for row in rows]
    outputs = [
        {"seed": seed, **in_evaluation(model, windows[seed][0])} for seed, model in models.items()
    ]
    return {
        "norm": pd.DataFrame([measure_alone(recipe, stack.model.n_embd)]),
        "growth": pd.DataFrame(growth(recipe, dataset.read(inputs.corpus))),
        "layers": pd.DataFrame(layers, columns=["state", "seed", "layer", *LAYER]),
        "outputs": pd.DataFrame(outputs, columns=["seed", *OUTPUT]),
    }


def measure_alone(recipe: NormProbe, d: int) -> Row:
    """What the norm does to tokens, which known norm it is, and its parameters.

    The parameters are those at the start, or are perturbed where its output is 0 at the start.
    """
    norm = build(recipe.norm, d)
    moved = norm
    if not properties.run(norm, properties.tokens(d)).any():
        moved = properties.perturb(norm)
    row: Row = properties.invariances(moved, d)
    row |= {"elementwise": properties.is_elementwise(moved, d)}
    row |= {"parameters": sum(p.numel() for p in norm.parameters())}
    known = {
        name: arm.norm
        for name, arm in registry(*BUILT_IN).items()
        if not (arm.norm.embedding_scale or arm.norm.logit_scale)  # which are outside of the norm
    }
    near = properties.nearest(norm, known, d)
    # a bounded elementwise norm is as constant for large tokens as any other
    large = math.nan if row["elementwise"] else near.large
    row |= {"nearest": " ".join(near.names), "difference": near.difference}
    return row | {"large": large, "starts": near.starts}


def growth(recipe: NormProbe, data: dataset.Dataset) -> Iterator[Row]:
    """Growth of the stream and of the gradient over the blocks of untrained networks."""
    windows = validation_windows(data.val, CONTEXT, recipe.windows)
    tokens, targets = (part[:2] for part in windows)
    placement = "none" if recipe.norm.is_identity else "pre"
    for depth, init, seed in itertools.product(recipe.depths, recipe.inits, recipe.seeds):
        sizes = Model(n_layer=depth, n_head=2, n_embd=WIDTH, block_size=CONTEXT, init=init)
        torch.manual_seed(seed)
        model = Transformer(sizes, recipe.norm, placement, data.vocab_size).double().train()
        rows, _ = signals(loss_of(model, tokens, targets), list(model.blocks))
        yield {
            "depth": depth,
            "init": init,
            "seed": seed,
            "stream": ratio(rows[-1]["activation_rms"], rows[1]["activation_rms"]),
            "gradient": ratio(rows[2]["gradient"], rows[-1]["gradient"]),
        }


def ratio(a: float, b: float) -> float:
    """a over b; NaN where b is 0, as in a network whose norms start at 0."""
    return a / b if b else math.nan


def loss_of(model: Transformer, tokens: Tensor, targets: Tensor) -> Any:
    """A function that runs the forward pass to the mean loss."""
    return lambda: F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


LAYER = (
    *("mean_in", "radial_in", "rest_in", "mean_out", "radial_out", "rest_out"),
    *("input_rms", "largest", "smallest", "saturated"),
)
OUTPUT = ("last_gain", "logit_rms", "logit_max")


def through_norms(
    model: Transformer, tokens: Tensor, targets: Tensor, is_token_wise: bool
) -> Iterator[Row]:
    """One row per norm of a copy of a model in one forward and backward pass.

    Shares of the gradient's energy along 1, along the token and orthogonal to both, before and
    after the norm in the backward pass; the RMS of its input; extreme singular values of its
    Jacobian; saturation.
    """
    model = copy.deepcopy(model).double().train()
    named = norm_layers(model)
    if not named:
        return
    with passing(named) as seen:
        loss = loss_of(model, tokens[:BATCH], targets[:BATCH])()
    gradients = torch.autograd.grad(loss, [seen[name][1] for name in named], retain_graph=True)
    for (name, layer), g in zip(named.items(), gradients, strict=True):
        x, y = seen[name]
        (back,) = transposed_product(y, x, g, retain_graph=True)
        at = x.detach().flatten(0, -2)
        before, after = (properties.shares(v.flatten(0, -2), at) for v in (g, back))
        largest, smallest = extremes(layer, at[:: len(at) // AT][:AT], is_token_wise)
        yield {
            "layer": name,
            **{f"{name}_in": share for name, share in before._asdict().items()},
            **{f"{name}_out": share for name, share in after._asdict().items()},
            "input_rms": float(at.square().mean().sqrt()),
            "largest": largest,
            "smallest": smallest,
            "saturated": properties.saturation(layer, at),
        }


def extremes(layer: nn.Module, tokens: Tensor, is_token_wise: bool) -> tuple[float, float]:
    """The largest and the smallest singular value of the Jacobian, means over tokens.

    NaN for norms that depend on other tokens, and where an entry is not finite.
    """
    if not is_token_wise:
        return math.nan, math.nan
    layer.eval()
    values = torch.stack([properties.singular_values(layer, token) for token in tokens])
    layer.train()
    return float(values[:, 0].mean()), float(values[:, -1].mean())


@torch.no_grad()
def in_evaluation(model: Transformer, tokens: Tensor) -> Row:
    """Of a trained model: the residual gain of its last block, and the sizes of its logits."""
    model = model.float().eval()
    norms = stream_norms(model, list(model.blocks), None, [tokens])
    logits = model(tokens)
    centered = logits - logits.mean(-1, keepdim=True)
    return {
        "last_gain": math.exp(float(log_gain(norms)[-1, :, 1:].mean())),
        "logit_rms": float(centered.square().mean().sqrt()),
        "logit_max": float(logits.abs().max()),
    }
