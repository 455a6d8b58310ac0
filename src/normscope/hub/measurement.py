"""One forward pass over the prompts: norms of the residual stream, and what is predicted next."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.hub.architecture import Body
from normscope.hub.batching import Batch
from normscope.measure.residual import NotTheStream, recording, site_names

FLOOR = 1e-10  # of a probability, in the entropy as published


class NotFinite(Explained):
    """The residual stream is not finite, or nothing at all, somewhere."""


@dataclass(frozen=True)
class Outcome:
    """What one batch gave.

    ``norms`` is (sites, sequences, positions) in fp32, with whatever at padded positions;
    ``logits`` (sequences, vocabulary) those of the last real tokens.
    """

    batch: Batch
    norms: Tensor
    logits: Tensor


def last_logits(model: nn.Module, batch: Batch) -> Tensor:
    """The logits (sequences, vocabulary) after each last real token, by the model's own forward.

    The head sees no other position: in a small batch it would be a good part of the arithmetic.
    A model that does not know ``logits_to_keep`` gives the logits of all positions.
    """
    kept = batch.last.unique()
    logits = model(
        input_ids=batch.tokens, attention_mask=batch.mask, logits_to_keep=kept, use_cache=False
    ).logits
    rows = torch.arange(len(batch.last), device=kept.device)
    if logits.shape[1] == batch.tokens.shape[1]:
        return logits[rows, batch.last]
    return logits[rows, torch.searchsorted(kept, batch.last)]


def resident(model: nn.Module, body: Body, batches: Sequence[Batch]) -> Iterator[Outcome]:
    """The outcome of every batch, with all weights in memory."""
    with torch.inference_mode():
        for batch in batches:
            with recording(body.blocks, body.final_norm, body.names) as recorder:
                logits = last_logits(model, batch)
            yield Outcome(batch, recorder.stacked(), logits)


def rows(
    outcomes: Iterable[Outcome], body: Body, tokenizer: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two tables: one row per prompt, BOS policy and position; and the same for every site.

    Positions: ``first`` is position 0, the BOS where there is one; ``last`` the last real token;
    ``later`` the geometric mean over all real positions but the first.

    Raises:
        NotTheStream: the model does not have one stream per token.
        NotFinite: a norm is 0 or not finite.
    """
    sites = site_names(len(body.blocks), body.final_norm is not None)
    gains: list[dict[str, Any]] = []
    norms: list[dict[str, Any]] = []
    for outcome in outcomes:
        if outcome.norms.shape[1:] != outcome.batch.tokens.shape:
            raise NotTheStream(
                f"the blocks {body.names[0]} to {body.names[len(body.blocks) - 1]} take a tensor "
                f"of {outcome.norms.ndim} dimensions that is not (sequences, positions, width): "
                "such a model has no residual gain"
            )
        logs = outcome.norms.double().log().cpu()
        for i, sequence in enumerate(outcome.batch.sequences):
            length = len(sequence.tokens)
            bad = (~logs[:, i, :length].isfinite()).any(1).nonzero().flatten().tolist()
            if bad or not outcome.logits[i].isfinite().any():
                where = ", ".join(sites[j] for j in bad[:3]) or "logits"
                raise NotFinite(
                    f"{where}: norms are 0 or not finite for the prompt {sequence.prompt.text!r}: "
                    "load the model in float32 if it is in half precision; otherwise its weights "
                    "are damaged, or of another model"
                )
            at = {
                "first": logs[:, i, 0],
                "later": logs[:, i, 1:length].mean(1),
                "last": logs[:, i, length - 1],
            }
            key = {"prompt": sequence.prompt.name, "bos": sequence.bos}
            for positions, values in at.items():
                steps = values.diff(prepend=torch.tensor([math.nan]))
                norms += [
                    key
                    | {"positions": positions, "depth": depth, "site": site}
                    | {"norm": float(values[depth].exp()), "log_gain": float(steps[depth])}
                    for depth, site in enumerate(sites)
                ]
                row = key | {"positions": positions, "tokens": length}
                row |= gain_metrics(values.tolist(), len(body.blocks))
                if positions == "last":
                    row |= prediction(outcome.logits[i].double().cpu(), tokenizer)
                gains.append(row)
    return gains, norms


def gain_metrics(log_norms: Sequence[float], n_blocks: int) -> dict[str, float]:
    """Ratios of norms, from the logarithms of the norms at all sites (``site_names``).

    ``last_gain`` is of the last block. ``total_amp`` starts at the first block's output, as was
    published; ``total_amp_embedding`` at what enters it. The other two are of transformers'
    ``hidden_states``, which has the last block's output only after the final norm:
    ``gain_with_final_norm``, ``[-1]`` over ``[-2]``, is the final norm's output over the
    penultimate block's; ``gain_hidden_states``, ``[-2]`` over ``[-3]``, was published as the last
    block's gain and is the penultimate block's.
    """
    first, last = 1, n_blocks  # sites of the first and of the last block
    has_penultimate = n_blocks > 1
    ratios = {
        "last_gain": log_norms[last] - log_norms[last - 1],
        "total_amp": log_norms[last] - log_norms[first],
        "total_amp_embedding": log_norms[last] - log_norms[0],
        "gain_with_final_norm": (
            log_norms[last + 1] - log_norms[last - 1] if len(log_norms) > last + 1 else math.nan
        ),
        "gain_hidden_states": (
            log_norms[last - 1] - log_norms[last - 2] if has_penultimate else math.nan
        ),
    }
    return {name: math.exp(value) for name, value in ratios.items()}


def prediction(logits: Tensor, tokenizer: Any) -> dict[str, Any]:
    """Entropy in nats of the next token, (vocabulary,) logits in float64, and the likeliest one.

    ``entropy_as_published`` has probabilities lifted to 1e-10 and rescaled before.
    """
    p = logits.softmax(0)
    lifted = p.clamp(min=FLOOR)
    lifted = lifted / lifted.sum()
    top = int(p.argmax())
    return {
        "entropy": float(torch.special.entr(p).sum()),
        "entropy_as_published": float(torch.special.entr(lifted).sum()),
        "top_token": tokenizer.decode([top]),
        "top_prob": float(p[top]),
    }
