"""Trained models: norms and gains of their residual stream, gain against entropy, folded gains."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.io import dataset
from normscope.measure.equivalents import fold_norms, logit_change
from normscope.measure.residual import log_gain, site_names, stream_norms
from normscope.measure.windows import EVAL_BATCH, as_tensor, spread
from normscope.nn.model import Transformer
from normscope.statistics.inference import correlation
from normscope.studies.main.recipe import StreamProbe
from normscope.studies.stage import ProbeInputs
from normscope.train.trained import load_verified

LEVEL = 0.95  # of intervals of r, which are not kept
STREAM = ["seed", "site", "depth", "position", "windows", "norm", "log_gain"]
# named here: tables.py depends on the registry of arms, and a new arm must not remeasure models
LAWS = ["r_entropy_gain", "r_entropy_deviation"]
FOLDINGS = ["folding_blocks", "folding_all"]


def probe(
    recipe: StreamProbe, inputs: ProbeInputs, device: torch.device
) -> dict[str, pd.DataFrame]:
    """The models of one training job that did not diverge: tables ``stream`` and ``laws``."""
    stack, models = load_verified(inputs.models / inputs.name)
    tokens, T = as_tensor(dataset.read(inputs.corpus).val), stack.model.block_size
    start = spread(len(tokens), T, recipe.windows)
    batches = tokens[start[:, None] + torch.arange(T)].to(device).split(EVAL_BATCH)
    rows, of_models = [], []
    for seed, model in models.items():
        norms, entropy = passed(model.to(device), batches)
        rows += [{"seed": seed, **row} for row in stream(model, norms)]
        values = laws(model, norms, entropy)
        if stack.placement == "pre" and stack.norm.statistic == "token" and stack.norm.gain:
            values |= foldings(model, batches[0])
        of_models.append({"seed": seed, "windows": len(entropy), **values})
    return {
        "stream": pd.DataFrame(rows, columns=STREAM),
        "laws": pd.DataFrame(of_models, columns=["seed", "windows", *LAWS, *FOLDINGS]),
    }


def passed(model: Transformer, batches: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Norms of the stream and entropies of predictions, by one pass over all windows.

    Args:
        model: whose stream is measured.
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
    columns = zip(LAWS, (gain, (gain - 1).abs()), strict=True)
    return {name: correlation(known, x.tolist(), LEVEL).r for name, x in columns}


def foldings(model: Transformer, tokens: Tensor) -> dict[str, float]:
    """The change of logits if gains and biases are folded: of the block norms, and of all norms.

    Args:
        model: pre-norm, with a gain.
        tokens: (windows, positions).
    """
    others = (fold_norms(model, final=final) for final in (False, True))
    changes = (logit_change(model, other, tokens) for other in others)
    return dict(zip(FOLDINGS, changes, strict=True))
