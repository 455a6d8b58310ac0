"""Trained models: norms and gains of their residual stream, gain against entropy, folded gains."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.io import dataset
from normscope.io.dataset import Dataset
from normscope.measure.equivalents import fold_norms, logit_change
from normscope.measure.residual import log_gain, site_names, stream_norms
from normscope.measure.windows import EVAL_BATCH, as_tensor, spread
from normscope.nn.model import Transformer
from normscope.statistics.inference import correlation
from normscope.studies.main import inside
from normscope.studies.main.measures import FOLDINGS, LAWS, MEASURES
from normscope.studies.main.recipe import Probe
from normscope.studies.stage import ProbeInputs
from normscope.train.recipe import Stack
from normscope.train.trained import load_verified

LEVEL = 0.95  # of intervals of r, which are not kept
OF_LAWS, OF_FOLDINGS = ([column.name for column in part] for part in (LAWS, FOLDINGS))
# named here: tables.py depends on the registry of arms, and a new arm must not remeasure models
COLUMNS = {
    "stream": ["seed", "site", "depth", "position", "windows", "norm", "log_gain"],
    "laws": ["seed", *OF_LAWS, *OF_FOLDINGS],
    "models": ["seed", *(column.name for column in MEASURES)],
    "blocks": ["seed", *inside.OF_SIGNALS, "entering_rms", "added_loss"],
    "norms": ["seed", "norm", "place", "frozen_loss", "refined_loss"],
    "networks": ["arm", "placement", "depth", "seed", "output_change", "last_gradient"],
    "towers": ["arm", "causal", "seed", "collapse_rate"],
}


def probe(recipe: Probe, inputs: ProbeInputs, device: torch.device) -> dict[str, pd.DataFrame]:
    """The models of one training job that did not diverge, or untrained networks.

    Returns:
        The tables of ``COLUMNS``; those of what is not measured are empty.
    """
    data = dataset.read(inputs.corpus)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in COLUMNS}
    if recipe.starts is not None:
        tables["networks"] = inside.networks(recipe.starts, data)
        tables["towers"] = inside.towers(recipe.starts)
    else:
        stack, models = load_verified(inputs.models / inputs.name)
        for seed, model in models.items():
            for name, rows in rows_by_table(model.to(device), data, stack, recipe).items():
                tables[name] += [{"seed": seed, **row} for row in rows]
    return {name: pd.DataFrame(tables[name], columns=COLUMNS[name]) for name in COLUMNS}


def rows_by_table(
    model: Transformer, data: Dataset, stack: Stack, recipe: Probe
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a model by table."""
    tables = {}
    if recipe.stream:
        tables |= stream_tables(model, data, stack, recipe.stream)
    if recipe.inside:
        tables |= inside.tables(model, data, stack, recipe.inside, recipe.refined)
    return tables


def stream_tables(
    model: Transformer, data: Dataset, stack: Stack, windows: int
) -> dict[str, list[dict[str, Any]]]:
    """The residual stream by site and position, and what is measured of the whole model."""
    tokens, T = as_tensor(data.val), stack.model.block_size
    start = spread(len(tokens), T, windows)
    device = next(model.parameters()).device
    batches = tokens[start[:, None] + torch.arange(T)].to(device).split(EVAL_BATCH)
    norms, entropy = norms_and_entropy(model, batches)
    values = laws(model, norms, entropy)
    if stack.placement == "pre" and stack.norm.statistic == "token" and stack.norm.gain:
        values |= foldings(model, batches[0])
    return {"stream": stream(model, norms), "laws": [values]}


def norms_and_entropy(model: Transformer, batches: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Norms of the stream and entropies of predictions, by one pass over all windows.

    Args:
        batches: tokens, each (windows, positions).

    Returns:
        The norms, (sites, windows, positions), and the entropy of the prediction at the last
        position in nats, (windows,).
    """
    entropies = []

    def forward(tokens: Tensor) -> None:
        p = model(tokens)[:, -1].double().softmax(-1)
        entropies.append(torch.special.entr(p).sum(-1))

    norms = stream_norms(forward, list(model.blocks), final_norm(model), batches).double()
    return norms, torch.cat(entropies)


def final_norm(model: Transformer) -> nn.Module | None:
    return None if isinstance(model.final_norm, nn.Identity) else model.final_norm


def stream(model: Transformer, norms: Tensor) -> list[dict[str, float | str | None]]:
    """One row per site and position: geometric mean of the norms, and log-gain."""
    geometric = norms.log().mean(1).exp()  # (sites, positions)
    gains = log_gain(norms).mean(1)
    return [
        {
            "site": site,
            "depth": depth,
            "position": position,
            "windows": norms.shape[1],
            "norm": float(geometric[depth, position]),
            "log_gain": float(gains[depth - 1, position]) if depth else None,
        }
        for depth, site in enumerate(site_names(len(model.blocks), final_norm(model) is not None))
        for position in range(norms.shape[2])
    ]


def laws(model: Transformer, norms: Tensor, entropy: Tensor) -> dict[str, float]:
    """Pearson's r over windows of the entropy with the last block's gain, and with abs(gain - 1).

    Both are measured at the last position, which attends to the whole window.
    """
    last = len(model.blocks)
    gain = log_gain(norms)[last - 1, :, -1].exp()
    known = entropy.tolist()
    columns = zip(OF_LAWS, (gain, (gain - 1).abs()), strict=True)
    return {name: correlation(known, x.tolist(), LEVEL).r for name, x in columns}


def foldings(model: Transformer, tokens: Tensor) -> dict[str, float]:
    """The change of logits if gains and biases are folded: of the block norms, and of all norms.

    Args:
        model: pre-norm, with a gain.
        tokens: (windows, positions).
    """
    others = (fold_norms(model, final=final) for final in (False, True))
    changes = (logit_change(model, other, tokens) for other in others)
    return dict(zip(OF_FOLDINGS, changes, strict=True))
