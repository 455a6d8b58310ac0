"""The residual gain of a causal language model in memory, as that of a pretrained model."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from normscope.errors import Explained
from normscope.hub.architecture import find_body
from normscope.hub.batching import batches, tokenize
from normscope.hub.loading import Loaded
from normscope.hub.measurement import rows
from normscope.hub.prompts import SET, Prompt
from normscope.schema import distinct


def gain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Iterable[str],
    *,
    blocks: str | None = None,
    final_norm: str | None = None,
) -> pd.DataFrame:
    """The residual gain ``||h_l|| / ||h_(l-1)||`` of every block l, by prompt.

    A row a prompt, BOS, position and site. Columns: prompt (its text), bos (``on`` with a BOS
    before it, ``off`` without), positions (``first``; ``last``, the last token; ``later``, the
    geometric mean over all but the first), depth, site (``embedding``, ``block_0`` and so on,
    ``final_norm``), norm, gain (norm over that of the site before; missing at the embedding, and
    at ``later`` where a prompt has one token alone), log_gain.

    The numbers are those of the workflow for a model in float32 with
    ``attn_implementation="eager"``; in another type the stream is as exact as that type.

    Args:
        model: a causal language model of transformers; it stays as it is.
        tokenizer: its own.
        prompts: texts, each once.
        blocks: dotted name of its list of blocks, where that is not known.
        final_norm: dotted name of the norm after the last block; where blocks is given.

    Raises:
        Explained: no prompts, or one that the tokenizer or the model cannot take; a model without a
            head or whose blocks are not known; a residual stream that is not finite.
    """
    texts = _texts(prompts)
    if not isinstance(model, PreTrainedModel) or model.get_output_embeddings() is None:
        raise Explained(
            f"{type(model).__name__} is no causal language model of transformers: give what "
            "AutoModelForCausalLM loads"
        )
    sequences, _ = tokenize(tokenizer, [Prompt(SET, "", text, text, None, None) for text in texts])
    body = find_body(model, blocks, final_norm)
    if not body.blocks:
        raise Explained(f"{type(model).__name__} has no blocks: there is no gain to measure")
    with _evaluating(model):
        loaded = Loaded(model, body, tokenizer, {}, None)
        outcomes = loaded.outcomes(batches(sequences, str(model.device)))
        _, norms = rows(outcomes, body, tokenizer)
    table = pd.DataFrame(norms)
    table.insert(list(table).index("log_gain"), "gain", np.exp(table["log_gain"]))
    order = {text: i for i, text in enumerate(texts)}
    return table.sort_values(
        "prompt", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def _texts(prompts: Iterable[str]) -> list[str]:
    """The prompts; a lone text is no list of its letters."""
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not texts:
        raise Explained("no prompts: give one text at least")
    try:
        return distinct(texts)
    except ValueError as e:
        raise Explained(f"prompts: {e}") from e


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout; each module's mode is restored."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
