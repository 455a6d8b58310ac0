"""Blocks, attention and norms of a trained model, and networks at the start."""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.io.dataset import Dataset
from normscope.measure.attention import (
    first_share,
    largest_score,
    scores,
    unselectable,
    unselectable_keys,
)
from normscope.measure.depth import added_losses, collapse_rate, last_gradient, output_change
from normscope.measure.equivalents import center_stream, logit_change
from normscope.measure.frozen_norms import freeze_norms
from normscope.measure.hooks import norm_layers, passing
from normscope.measure.signals import Row, signals
from normscope.measure.windows import as_tensor, draw, split_loss, validation_windows
from normscope.nn.model import Transformer
from normscope.nn.recipe import Norm
from normscope.studies.main.recipe import Starts
from normscope.train.recipe import Stack
from normscope.train.refine import refined_losses

CALIBRATED = 256  # windows of the training text over which the mean of sigma is taken
SELECTED = 4  # windows whose keys are tested, each by a linear program
FREE = 0.05  # nats below which a block counts as free
OF_SIGNALS = ("block", "activation_rms", "gradient", "gradient_parameters")


def tables(
    model: Transformer, data: Dataset, stack: Stack, windows: int, refined: int
) -> dict[str, list[Row]]:
    """What is measured of a model: one row for ``models``, and one per block and norm."""
    blocks = block_rows(model, data, stack, windows)
    row, norms = measure(model, data, stack, windows), []
    if refined:
        together, norms = without_norms(model, data, stack, refined)
        row |= together | of_norms(norms)
    return {"models": [row | of_blocks(blocks)], "blocks": blocks, "norms": norms}


def block_rows(model: Transformer, data: Dataset, stack: Stack, windows: int) -> list[Row]:
    """One row per block: size of the stream, gradient at its input, loss added without it.

    The gradients are those of evaluation mode, in single precision.
    """
    x, y = batch(data, stack, windows, device_of(model))
    rows, _ = signals(lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten()), [*model.blocks])
    added = added_losses(model, x, y)
    return [
        {name: row[name] for name in OF_SIGNALS}
        | {"entering_rms": before["activation_rms"], "added_loss": loss}
        for (before, row), loss in zip(pairwise(rows), added, strict=True)
    ]


def of_blocks(rows: list[Row]) -> Row:
    """What the blocks of a model say of it."""
    later = [row["added_loss"] < FREE for row in rows[1:]]
    last = rows[-1]["gradient_parameters"] or math.nan  # 0 in a model that is saturated
    gradients = [row["gradient_parameters"] / last for row in rows]
    rms = [row["activation_rms"] for row in rows]
    return {
        "stream_growth": rows[-1]["activation_rms"] / rows[0]["activation_rms"],
        "gradient_spread": log_spread(rows, "gradient"),
        "parameter_gradient_spread": log_spread(rows, "gradient_parameters"),
        "free_blocks": sum(later) / len(later) if later else math.nan,
        "growth_imbalance": growth_imbalance([rows[0]["entering_rms"], *rms]),
        "later_growth_imbalance": growth_imbalance(rms),
        "first_gradient_ratio": gradients[0],
        "second_gradient_ratio": gradients[1] if len(rows) > 2 else math.nan,
    }


def growth_imbalance(rms: list[float]) -> float:
    """How unevenly blocks add to the stream's mean square.

    This is the standard deviation over blocks of what a block adds, over the absolute value of its
    mean; NaN with fewer than two blocks.

    Args:
        rms: RMS of the stream before the first of these blocks, and after each of them.
    """
    added = torch.tensor(rms, dtype=torch.float64).square().diff()
    return float(added.std(correction=0) / added.mean().abs()) if len(added) > 1 else math.nan


def log_spread(rows: list[Row], name: str) -> float:
    """The standard deviation over blocks of the logarithm of a column; NaN if one is 0."""
    logs = torch.tensor([math.log(row[name] or math.nan) for row in rows])
    return float(logs.std(correction=0))


@torch.no_grad()
def measure(model: Transformer, data: Dataset, stack: Stack, windows: int) -> Row:
    """The measures of a model that need no gradient.

    Args:
        model: In evaluation mode.
        data: The text that it learned.
        stack: Its recipe.
        windows: Windows of the validation split, and of the training split.
    """
    x, _ = batch(data, stack, windows, device_of(model))
    with passing({f"{i}": block for i, block in enumerate(model.blocks)}) as seen:
        model(x)
    streams = torch.stack([output for _, output in seen.values()])
    cosines = F.cosine_similarity(streams, torch.ones_like(streams[..., :1]).expand_as(streams), -1)
    of_scores = scores(model, x)
    row = {
        "uniform_energy": float(stack.model.n_embd * cosines.square().mean()),
        "largest_score": largest_score(of_scores),
        "sink": first_share(of_scores),
        "largest_activation": float(streams.abs().max() / streams.abs().median()),
    }
    if stack.model.n_embd < stack.model.block_size - 1:  # else all points are vertices
        row["unselectable"] = unselectable(model, x[:SELECTED])
        row["unselectable_keys"] = unselectable_keys(model, x[:SELECTED])
    if can_be_recentred(stack):
        row["recentring_change"] = logit_change(model, center_stream(model), x)
    return row


def can_be_recentred(stack: Stack) -> bool:
    """Whether the stream is read by LayerNorms alone, as ``center_stream`` needs it."""
    norm, model = stack.norm, stack.model
    is_layernorm = norm.statistic == "token" and norm.center and norm.radius == "sqrt(d)"
    has_others = model.embedding_norm or model.qk_norm != "none"
    return is_layernorm and stack.placement == "pre" and model.final_norm and not has_others


def without_norms(
    model: Transformer, data: Dataset, stack: Stack, steps: int
) -> tuple[Row, list[dict[str, Any]]]:
    """What freezing sigma adds to the loss: at once, and after further steps.

    After further steps, the loss is compared with that of the model after as many steps.

    Returns:
        The added losses with all norms frozen together, and one row per norm that is frozen alone.
    """
    device = device_of(model)
    tokens = as_tensor(data.train[: stack.training.train_tokens]).to(device)
    batches = [
        draw(tokens, stack.model.block_size, CALIBRATED, torch.Generator().manual_seed(0))[0]
    ]
    names = list(norm_layers(model))
    variants = {"whole": model, "all": freeze_norms(model, names, batches)}
    variants |= {name: freeze_norms(model, [name], batches) for name in names}
    val = as_tensor(data.val[: stack.training.eval_tokens]).to(device)
    T = stack.model.block_size
    now = {name: split_loss(one, val, T).mean for name, one in variants.items()}
    later = refined_losses(variants, stack, data, steps, device)

    def costs(name: str) -> Row:
        return {
            "frozen_loss": now[name] - now["whole"],
            "refined_loss": later[name] - later["whole"],
        }

    alone = [{"norm": name, "place": i, **costs(name)} for i, name in enumerate(names, start=1)]
    return costs("all"), alone


def of_norms(rows: list[dict[str, Any]]) -> Row:
    """The median over norms of what freezing one of them alone adds to the loss."""
    names = {"one_frozen_loss": "frozen_loss", "one_refined_loss": "refined_loss"}
    return {name: float(np.median([row[loss] for row in rows])) for name, loss in names.items()}


def batch(data: Dataset, stack: Stack, windows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs and targets of the validation split, each (windows, T)."""
    x, y = validation_windows(data.val, stack.model.block_size, windows)
    return x.to(device), y.to(device)


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def networks(starts: Starts, data: Dataset) -> list[dict[str, Any]]:
    """One row per arm, placement, depth and seed: an untrained network in float64."""
    x, y = validation_windows(data.val, starts.block_size, starts.windows)
    cells = product(starts.norms.items(), starts.placements, starts.depths, starts.seeds)
    rows = []
    for (arm, norm), placement, depth, seed in cells:
        torch.manual_seed(seed)
        model = Transformer(starts.model(depth), norm, placement, data.vocab_size).double()
        g = torch.Generator().manual_seed(seed)
        row = {"arm": arm, "placement": placement, "depth": depth, "seed": seed}
        change = output_change(model, x, g)
        gradient = last_gradient(model, x, y)
        rows.append(row | {"output_change": change, "last_gradient": gradient})
    return rows


def towers(starts: Starts) -> list[dict[str, Any]]:
    """One row per arm, mask and seed: a tower of attention whose inputs are normal vectors."""
    cells = product(starts.towers.items(), (True, False), starts.seeds)
    return [
        {"arm": arm, "causal": causal, "seed": seed}
        | {"collapse_rate": tower(norm, starts, causal, seed)}
        for (arm, norm), causal, seed in cells
    ]


def tower(norm: Norm, u: Starts, causal: bool, seed: int) -> float:
    """The collapse rate of one tower."""
    torch.manual_seed(seed)
    inputs = torch.randn(u.windows, u.block_size, u.n_embd)
    return collapse_rate(norm, u.model(u.tower, causal=causal), inputs)
