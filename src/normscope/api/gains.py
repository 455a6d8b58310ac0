"""The residual gain of a causal language model in memory."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from normscope.api.arguments import public
from normscope.api.running import check_model, evaluating
from normscope.errors import Explained
from normscope.hub.architecture import find_body
from normscope.hub.batching import batches, tokenize
from normscope.hub.measurement import rows, run_batches
from normscope.hub.prompts import Prompt


@public
def gain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: str | Iterable[str],
    *,
    blocks: str | None = None,
    final_norm: str | None = None,
) -> pd.DataFrame:
    """Measure the residual gain ``||h_l|| / ||h_(l-1)||`` of every block l, by prompt.

    The table has one row per prompt, BOS, position and site. Columns: prompt (its text), bos
    (``on`` with a BOS before it, ``off`` without), positions (``first``; ``last``, the last token;
    ``later``, the geometric mean over all but the first), depth, site (``embedding``, ``block_0``
    and so on, ``final_norm`` if the model has one), norm, gain (norm divided by the norm at the
    previous site; missing at the embedding, and at ``later`` if a prompt has only one token),
    log_gain.

    For a model in float32 with ``attn_implementation="eager"`` the numbers equal those of the
    workflow; in another type they have the precision of that type.

    Args:
        model: a causal language model of transformers; it is not changed.
        tokenizer: the tokenizer of the model.
        prompts: distinct texts; of chat messages, that of ``tokenizer.apply_chat_template`` with
            ``tokenize=False``.
        blocks: dotted name of the list of blocks, such as ``model.layers``; known for most models.
        final_norm: dotted name of the norm after the last block, such as ``model.norm``, or
            ``none`` for a model without one; known for most models.

    Raises:
        Explained: there are no prompts, or the tokenizer or the model cannot take one; the model
            is not causal, has no head or no weights; its blocks or its final norm are not known,
            or the residual stream does not pass the named modules in turn; the stream is not
            finite.
    """
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not texts:
        raise Explained("no prompts: give at least one text")
    if twice := [text for text, count in Counter(texts).items() if count > 1]:
        raise Explained(f"prompts has {twice[0]!r} twice: give distinct texts")
    if model.get_output_embeddings() is None:
        raise Explained(
            f"{type(model).__name__} is not a causal language model of transformers: give what "
            "AutoModelForCausalLM loads"
        )
    check_model(model)
    body = find_body(model, blocks, final_norm)
    if not body.blocks:
        raise Explained(f"{type(model).__name__} has no blocks: there is no gain to measure")
    sequences, _ = tokenize(tokenizer, [Prompt("", "", text, text, None) for text in texts])
    order = {text: i for i, text in enumerate(texts)}
    with evaluating(model):
        outcomes = run_batches(model, body, batches(sequences, str(model.device)))
        norms = rows(outcomes, body, tokenizer).norms
    table = pd.DataFrame(norms)
    table.insert(list(table).index("log_gain"), "gain", np.exp(table["log_gain"]))
    return table.sort_values(
        "prompt", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
