"""Forward passes over the prompts: norms of the stream, what blocks do inside, and predictions."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from normscope.errors import Explained
from normscope.hub.architecture import Body
from normscope.hub.batching import Batch
from normscope.hub.inside import watching
from normscope.measure.residual import NotTheStream, recording, site_names

NOT_FINITE = (
    "load the model in float32 if it is in half precision; otherwise its weights are damaged, or "
    "of another model"
)
FLOOR = 1e-10  # lower bound of a probability in the published entropy


@dataclass(frozen=True)
class Outcome:
    """What the forward pass of one batch gives.

    ``norms`` (sites, sequences, positions) is in fp32 and undefined at padded positions; ``logits``
    (sequences, vocabulary) are those at the last real tokens; ``inside`` has the measures of
    ``normscope.hub.inside`` by name, each (blocks, sequences).
    """

    batch: Batch
    norms: Tensor
    logits: Tensor
    inside: dict[str, Tensor]


class Rows(NamedTuple):
    """The rows of the tables that are measured, by the name of the table."""

    gains: list[dict[str, Any]]
    norms: list[dict[str, Any]]
    inside: list[dict[str, Any]]


def last_logits(model: nn.Module, batch: Batch) -> Tensor:
    """The logits (sequences, vocabulary) at each last real token, by the model's forward method.

    The head is applied only to positions that are the last of some sequence, because in a small
    batch it would take a large part of the time. A model that ignores ``logits_to_keep`` returns
    the logits of all positions.
    """
    kept = batch.last.unique()
    logits = model(
        input_ids=batch.tokens, attention_mask=batch.mask, logits_to_keep=kept, use_cache=False
    ).logits
    rows = torch.arange(len(batch.last), device=kept.device)
    if logits.shape[1] == batch.tokens.shape[1]:
        return logits[rows, batch.last]
    return logits[rows, torch.searchsorted(kept, batch.last)]


def run_batches(model: PreTrainedModel, body: Body, batches: Sequence[Batch]) -> Iterator[Outcome]:
    """Run one forward pass per batch, and yield its outcome.

    Raises:
        Explained: a token or a position exceeds what the model has.
        NotTheStream: the blocks or the final norm do not pass one residual stream on in turn.
    """
    config = model.config.get_text_config(decoder=True)
    longest = max(batch.tokens.shape[1] for batch in batches)
    largest = max(int(batch.tokens.max()) for batch in batches)
    positions = getattr(config, "max_position_embeddings", None) or longest
    vocabulary = getattr(config, "vocab_size", None) or largest + 1
    if longest > positions or largest >= vocabulary:
        raise Explained(
            f"prompts have up to {longest} tokens, and token numbers up to {largest}; "
            f"{type(model).__name__} has {positions} positions and {vocabulary} tokens: "
            "shorten the prompts, or give the tokenizer of this model"
        )
    for batch in batches:
        with torch.inference_mode():  # left before yielding, as the caller may never return
            with (
                recording(body.blocks, body.final_norm, body.names) as recorder,
                watching(body.blocks, batch.mask) as inside,  # after the recorder's checks
            ):
                logits = last_logits(model, batch)
            outcome = Outcome(batch, recorder.stack(), logits, inside)
        yield outcome


def rows(outcomes: Iterable[Outcome], body: Body, tokenizer: Any) -> Rows:
    """The rows of three tables, per prompt and BOS policy.

    ``gains`` has one row per position, ``norms`` one per position and site, and ``inside`` one per
    block.

    Positions: ``first`` is position 0 (the BOS, if there is one); ``last`` is the last real token;
    ``later`` is the geometric mean over all real positions except the first.

    Raises:
        NotTheStream: the model does not have one stream per token.
        Explained: a norm is 0 or not finite.
    """
    sites = site_names(len(body.blocks), body.final_norm is not None)
    gains, norms, inside = made = Rows([], [], [])
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
            _check_finite(outcome, i, sites, tokenizer)
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
            first_norms = (at["first"] - at["later"]).exp()[1:]
            inside += [key | row for row in inside_rows(outcome, i, first_norms)]
    return made


def _check_finite(outcome: Outcome, i: int, sites: Sequence[str], tokenizer: Any) -> None:
    """Check that the norms of a sequence have logarithms, and that it has a prediction.

    Raises:
        Explained: a norm is 0, or something is not finite; with the first such site and position.
    """
    sequence = outcome.batch.sequences[i]
    norms = outcome.norms[:, i, : len(sequence.tokens)]
    for site, position in (~norms.log().isfinite()).nonzero().tolist():
        token = tokenizer.decode([sequence.tokens[position]])
        is_bos = position == 0 and sequence.bos == "on"
        where = (
            f"{sites[site]}: the norm at position {position}, "
            f"{'BOS' if is_bos else 'token'} {token!r}, of the prompt {sequence.prompt.text!r} is"
        )
        if norms[site, position]:
            raise Explained(f"{where} not finite: {NOT_FINITE}")
        way = "set bos_token of the tokenizer to None" if is_bos else "leave this token out"
        raise Explained(f"{where} 0, to which no ratio exists: {way}")
    if not outcome.logits[i].isfinite().any():
        raise Explained(
            f"the logits of the prompt {sequence.prompt.text!r} are not finite: {NOT_FINITE}"
        )


def inside_rows(outcome: Outcome, i: int, first_norms: Tensor) -> list[dict[str, Any]]:
    """One row per block for a sequence: its place, and what happens inside it.

    Args:
        first_norms: (at least blocks,), the norm of the stream after each block at position 0,
            divided by the geometric mean of the norms at the later positions.
    """
    blocks = site_names(len(outcome.inside["sink"]), final_norm=False)[1:]
    return [
        {"depth": k + 1, "site": block, "first_norm": float(first_norms[k])}
        | {name: float(values[k, i]) for name, values in outcome.inside.items()}
        for k, block in enumerate(blocks)
    ]


def gain_metrics(log_norms: Sequence[float], n_blocks: int) -> dict[str, float]:
    """Ratios of norms, from the logarithms of the norms at all sites (``site_names``).

    ``last_gain`` is the gain of the last block. ``total_amp`` is the norm after the last block over
    the norm after the first one, as published; ``total_amp_embedding`` divides by the norm of the
    embedding. The other two use the ``hidden_states`` of transformers, which contain the output of
    the last block only after the final norm: ``gain_with_final_norm`` (``[-1]`` over ``[-2]``) is
    the output of the final norm over that of the penultimate block; ``gain_hidden_states``
    (``[-2]`` over ``[-3]``) was published as the gain of the last block, and is the gain of the
    penultimate one.
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
    """Entropy of the next token in nats, the most probable token, and the size of the logits.

    ``logits`` is (vocabulary,) in float64. ``entropy_as_published`` first raises every probability
    to at least 1e-10 and rescales them. ``logit_sd`` is the standard deviation of the logits.
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
        "logit_sd": float(logits.std(correction=0)),
    }
