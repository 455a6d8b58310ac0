"""A causal language model from a directory, ready for one pass: in memory, or to be streamed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from normscope.pretrained.architecture import (
    Body,
    UnknownArchitecture,
    attention_shape,
    find_body,
    norm_kind,
)
from normscope.pretrained.batching import Batch
from normscope.pretrained.checkpoint import BrokenWeights, Weights, shards, stored_types
from normscope.pretrained.grid import Measured
from normscope.pretrained.measurement import Outcome, resident
from normscope.pretrained.streaming import GB, Stream, check_memory, pieces, skeleton, streamed

# written out, with the mask as it is: other implementations choose their kernel by shapes
ATTENTION = "eager"


@dataclass(frozen=True)
class Loaded:
    """A model in fp32; ``stream`` is None if its weights are in memory."""

    model: PreTrainedModel
    body: Body
    tokenizer: Any
    facts: dict[str, Any]
    stream: Stream | None

    def outcomes(self, batches: Sequence[Batch]) -> Iterator[Outcome]:
        """One pass over the weights for all batches."""
        if self.stream is None:
            return resident(self.model, self.body, batches)
        return streamed(self.body, batches, self.stream)


def load(directory: Path, what: Measured, memory_gb: float, device: str) -> Loaded:
    """The model of a directory; no code that comes with it is run.

    Args:
        directory: with safetensors, see ``normscope.pretrained.source``.
        what: names its blocks and final norm where they are not known.
        memory_gb: a model whose fp32 weights exceed it is streamed.
        device: to compute on.

    Raises:
        UnknownArchitecture: transformers does not know the model, or its parts are not found.
        BrokenWeights: a file is truncated, or weights are missing.
        TooLittleMemory: one part of it exceeds the memory.
    """
    files = shards(directory)
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
        model = skeleton(config, ATTENTION)
    except (ValueError, KeyError, OSError, ImportError, AttributeError) as e:
        raise UnknownArchitecture(
            f"{directory}: transformers cannot make this model without running code that comes "
            f"with it, or a file of its configuration or tokenizer is missing: {e}"
        ) from e
    body = find_body(model, what.blocks, what.final_norm)
    parameters = sum(p.numel() for p in model.parameters())
    stream = None
    if parameters * 4 > memory_gb * GB:
        check_memory(model, pieces(model, body), memory_gb)
        stream = Stream(model, Weights(files, model), memory_gb, device)
    else:
        model = _resident(directory, config, device)
        body = find_body(model, what.blocks, what.final_norm)
    facts = {
        "class": type(model).__name__,
        "norm": norm_kind(body),
        "parameters": parameters,
        "stored": stored_types(files),
        "computed": "fp32",
        "streamed": stream is not None,
        **attention_shape(config),
    }
    return Loaded(model, body, tokenizer, facts, stream)


def _resident(directory: Path, config: Any, device: str) -> PreTrainedModel:
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        directory,
        config=config,
        dtype=torch.float32,
        attn_implementation=ATTENTION,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    model, found = loaded
    if missing := sorted(found["missing_keys"]):
        raise BrokenWeights(f"{directory} lacks {len(missing)} weight(s): {', '.join(missing[:3])}")
    model.eval().to(device)
    return model
