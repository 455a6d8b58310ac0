"""Load a causal language model from a directory, within a memory limit for its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from normscope.errors import Explained
from normscope.hub.architecture import (
    Body,
    UnknownArchitecture,
    attention_shape,
    find_body,
    norm_kind,
)
from normscope.hub.recipe import Measured
from normscope.hub.weights import BrokenWeights, shards, stored_types

GB = 1e9  # bytes
# plain matrix products with an explicit mask: other implementations choose a kernel by shape
ATTENTION = "eager"
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


class TooLittleMemory(Explained):
    """The weights exceed the memory limit, and accelerate cannot offload this architecture."""


@dataclass(frozen=True)
class LoadedModel:
    """A model that computes in fp32, with its tokenizer.

    ``facts`` are the entries of ``model.json`` that describe the model.
    """

    model: PreTrainedModel
    body: Body
    tokenizer: Any
    facts: dict[str, Any]


def load_model(
    directory: Path, measured: Measured, memory_gb: float, device: str, offload: Path
) -> LoadedModel:
    """Load the model of a directory in fp32. Code that comes with the model is never run.

    If the weights exceed ``memory_gb``, accelerate keeps some of them in memory and reads the
    others from the safetensors files in every forward pass, one module at a time.

    Args:
        directory: with safetensors, see ``normscope.hub.source``.
        measured: names the blocks and the final norm if they have unusual names.
        memory_gb: limit for the fp32 weights in memory, in 10^9 bytes.
        device: ``cpu`` or ``cuda``.
        offload: directory for offloaded weights that transformers converts while it loads them
            (experts of mixture models). Keep it until the last forward pass.

    Raises:
        UnknownArchitecture: transformers does not know the model, or its blocks or final norm are
            not found.
        BrokenWeights: a file is truncated, or weights are missing.
        TooLittleMemory: the weights exceed the limit and cannot be offloaded.
    """
    files = shards(directory)
    if not any((directory / name).is_file() for name in VOCABULARIES):
        # for some models transformers would make up an empty tokenizer
        raise UnknownArchitecture(
            f"{directory} has no tokenizer: none of {', '.join(VOCABULARIES)}"
        )
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
        with torch.device("meta"):
            empty = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (ValueError, KeyError, OSError, ImportError, AttributeError, StrictDataclassError) as e:
        first = (str(e).splitlines() or [""])[0][:200]
        raise UnknownArchitecture(
            f"{directory}: transformers cannot build this model or its tokenizer, because files "
            f"are damaged or missing, or not without running code that comes with it: {first}"
        ) from e
    find_body(empty, measured.blocks, measured.final_norm)  # before any weights are read
    parameters = sum(p.numel() for p in empty.parameters())
    offloaded = parameters * 4 > memory_gb * GB
    options: dict[str, Any] = {}
    if offloaded:
        limit = {0 if device == "cuda" else "cpu": int(memory_gb * GB)}
        options = {"device_map": "auto", "max_memory": limit, "offload_folder": offload}
    model = _with_weights(directory, config, options)
    if not offloaded:
        model.to(device)
    body = find_body(model, measured.blocks, measured.final_norm)
    facts = {
        "class": type(model).__name__,
        "norm": norm_kind(body),
        "parameters": parameters,
        "stored": stored_types(files),
        "computed": "fp32",
        "streamed": offloaded,
        **attention_shape(model.config),
    }
    return LoadedModel(model, body, tokenizer, facts)


def _with_weights(directory: Path, config: Any, options: dict[str, Any]) -> Any:
    """The model in evaluation mode, with all its weights from the files.

    Raises:
        BrokenWeights: a weight is missing, or has another shape than the configuration gives it.
        TooLittleMemory: the weights are to be offloaded and transformers fails to plan it.
    """
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
            **options,
        )
    except (RuntimeError, ValueError) as e:
        raise BrokenWeights(f"{directory}: the weights are not those of config.json: {e}") from e
    except IndexError as e:  # heads of BERT and its relatives, whose bias is a tied parameter
        raise TooLittleMemory(
            f"{directory}: the weights of a {config.model_type} model cannot be offloaded to disk: "
            "raise memory_gb so that all of them fit"
        ) from e
    model, report = loaded
    if wrong := sorted(str(key[0]) for key in report["mismatched_keys"]):
        raise BrokenWeights(
            f"{directory}: {', '.join(wrong[:3])}: the shape is not that of config.json"
        )
    if missing := sorted(report["missing_keys"]):
        raise BrokenWeights(f"{directory} lacks {len(missing)} weight(s): {', '.join(missing[:3])}")
    return model.eval()
