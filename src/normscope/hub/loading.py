"""A causal language model from a directory, ready for one pass: in memory, or to be streamed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from normscope.hub.architecture import (
    Body,
    UnknownArchitecture,
    attention_shape,
    find_body,
    norm_kind,
)
from normscope.hub.batching import Batch, TokenizerError
from normscope.hub.measurement import Outcome, resident
from normscope.hub.recipe import Measured
from normscope.hub.streaming import GB, Stream, check_memory, pieces, skeleton, streamed
from normscope.hub.weights import BrokenWeights, Weights, shards, stored_types

# written out, with the mask as it is: other implementations choose their kernel by shapes
ATTENTION = "eager"
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


@dataclass(frozen=True)
class Loaded:
    """A model in fp32; ``stream`` is None if its weights are in memory."""

    model: PreTrainedModel
    body: Body
    tokenizer: Any
    facts: dict[str, Any]
    stream: Stream | None

    def outcomes(self, batches: Sequence[Batch]) -> Iterator[Outcome]:
        """One pass over the weights for all batches.

        Raises:
            TokenizerError: a token, or a position, is beyond what the model has.
        """
        config = self.model.config.get_text_config(decoder=True)
        longest = max(batch.tokens.shape[1] for batch in batches)
        largest = max(int(batch.tokens.max()) for batch in batches)
        positions = getattr(config, "max_position_embeddings", None) or longest
        vocabulary = getattr(config, "vocab_size", None) or largest + 1
        if longest > positions or largest >= vocabulary:
            raise TokenizerError(
                f"prompts have up to {longest} tokens, up to number {largest}; "
                f"{type(self.model).__name__} has {positions} positions and {vocabulary} tokens: "
                "shorten the prompts, or give the model's own tokenizer"
            )
        if self.stream is None:
            return resident(self.model, self.body, batches)
        return streamed(self.body, batches, self.stream)


def load(directory: Path, measured: Measured, memory_gb: float, device: str) -> Loaded:
    """The model of a directory; no code that comes with it is run.

    Args:
        directory: with safetensors, see ``normscope.hub.source``.
        measured: names its blocks and final norm where they are not known.
        memory_gb: a model whose fp32 weights exceed it is streamed.
        device: to compute on.

    Raises:
        UnknownArchitecture: transformers does not know the model, or its parts are not found.
        BrokenWeights: a file is truncated, or weights are missing.
        TooLittleMemory: one part of it exceeds the memory.
    """
    files = shards(directory)
    if not any((directory / name).is_file() for name in VOCABULARIES):
        # transformers makes up a tokenizer of nothing for some models
        raise UnknownArchitecture(
            f"{directory} has no tokenizer: none of {', '.join(VOCABULARIES)}"
        )
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
        model = skeleton(config, ATTENTION)
    except (ValueError, KeyError, OSError, ImportError, AttributeError, StrictDataclassError) as e:
        first = (str(e).splitlines() or [""])[0][:200]
        raise UnknownArchitecture(
            f"{directory}: transformers cannot make this model or its tokenizer, of files that are "
            f"damaged or missing, or not without running code that comes with it: {first}"
        ) from e
    body = find_body(model, measured.blocks, measured.final_norm)
    parameters = sum(p.numel() for p in model.parameters())
    stream = None
    if parameters * 4 > memory_gb * GB:
        check_memory(model, pieces(model, body), memory_gb)
        stream = Stream(model, Weights(files, model), memory_gb, device)
    else:
        model = _resident(directory, config, device)
        body = find_body(model, measured.blocks, measured.final_norm)
    facts = {
        "class": type(model).__name__,
        "norm": norm_kind(body),
        "parameters": parameters,
        "stored": stored_types(files),
        "computed": "fp32",
        "streamed": stream is not None,
        **attention_shape(model.config),
    }
    return Loaded(model, body, tokenizer, facts, stream)


def _resident(directory: Path, config: Any, device: str) -> PreTrainedModel:
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            config=config,
            dtype=torch.float32,
            attn_implementation=ATTENTION,
            trust_remote_code=False,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # they are reported, with their names
            output_loading_info=True,
        )
    except (RuntimeError, ValueError) as e:
        raise BrokenWeights(f"{directory}: the weights are not those of config.json: {e}") from e
    model, report = loaded
    if wrong := sorted(str(key[0]) for key in report["mismatched_keys"]):
        raise BrokenWeights(
            f"{directory}: {', '.join(wrong[:3])}: the shape is not that of config.json"
        )
    if missing := sorted(report["missing_keys"]):
        raise BrokenWeights(f"{directory} lacks {len(missing)} weight(s): {', '.join(missing[:3])}")
    model.eval().to(device)
    return model
