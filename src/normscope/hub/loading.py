"""Load a causal language model from a directory, within a memory limit for its weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from normscope.errors import Explained
from normscope.hub.architecture import Body, attention_shape, find_body, norm_kind
from normscope.hub.recipe import Measured

GB = 1e9  # bytes
# plain matrix products with an explicit mask: other implementations choose a kernel by shape
ATTENTION = "eager"
SINGLE = ("model.safetensors", "pytorch_model.bin")  # in transformers' order of preference
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


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
    others from disk in every forward pass, one module at a time.

    Args:
        directory: with configuration, tokenizer, and weights as safetensors or pytorch_model.bin.
        measured: names the blocks and the final norm if they have unusual names.
        memory_gb: limit for the fp32 weights in memory, in 10^9 bytes.
        device: ``cpu`` or ``cuda``.
        offload: directory for offloaded weights that are not in safetensors in this form: pickled
            ones, and the experts of mixture models. Keep it until the last forward pass.

    Raises:
        Explained: transformers does not know the model, its blocks or final norm are not found,
            weights are missing or damaged, or they exceed the limit and cannot be offloaded.
    """
    stored = stored_types(directory)
    if not any((directory / name).is_file() for name in VOCABULARIES):
        # for some models transformers would make up an empty tokenizer
        raise Explained(f"{directory} has no tokenizer: none of {', '.join(VOCABULARIES)}")
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
        with torch.device("meta"):
            empty = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (ValueError, KeyError, OSError, ImportError, AttributeError, StrictDataclassError) as e:
        first = (str(e).splitlines() or [""])[0][:200]
        raise Explained(
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
    model = with_weights(directory, config, options)
    if not offloaded:
        model.to(device)
    body = find_body(model, measured.blocks, measured.final_norm)
    facts = {
        "class": type(model).__name__,
        "norm": norm_kind(body),
        "parameters": parameters,
        "stored": stored,
        "computed": "fp32",
        "streamed": offloaded,
        **attention_shape(model.config),
    }
    return LoadedModel(model, body, tokenizer, facts)


def with_weights(directory: Path, config: Any, options: dict[str, Any]) -> Any:
    """The model in evaluation mode, with all its weights from the files. Pickles run no code.

    Args:
        directory: with the weights.
        config: the configuration of the model.
        options: further options of ``from_pretrained``, about offloading.

    Raises:
        Explained: the weights are damaged, or not those of the configuration, or transformers does
            not plan to offload them.
    """
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            config=config,
            dtype=torch.float32,
            attn_implementation=ATTENTION,
            trust_remote_code=False,
            weights_only=True,
            ignore_mismatched_sizes=True,  # they are reported, with their names
            output_loading_info=True,
            **options,
        )
    except UnpicklingError as e:  # whose message advises to unpickle the file without restrictions
        raise Explained(
            f"{directory}: pytorch_model.bin is damaged, or holds more than tensors, and is not "
            "loaded: fetch it again, or give weights in safetensors"
        ) from e
    except Exception as e:  # torch and transformers raise errors of many types
        if options and isinstance(e, IndexError):  # heads of BERT's relatives, with a tied bias
            raise Explained(
                f"{directory}: the weights of a {config.model_type} model cannot be offloaded to "
                "disk: raise memory_gb so that all of them fit"
            ) from e
        first = (str(e).splitlines() or [""])[0][:200]
        raise Explained(
            f"{directory}: the weights are damaged, or not those of config.json "
            f"({type(e).__name__}: {first}): fetch them again"
        ) from e
    model, report = loaded
    if wrong := sorted(str(key[0]) for key in report["mismatched_keys"]):
        raise Explained(
            f"{directory}: {', '.join(wrong[:3])}: the shape is not that of config.json"
        )
    if missing := sorted(report["missing_keys"]):
        raise Explained(f"{directory} lacks {len(missing)} weight(s): {', '.join(missing[:3])}")
    return model.eval()


def weight_files(directory: Path) -> list[Path]:
    """The files from which transformers reads the weights.

    Raises:
        Explained: there are none, or their index is damaged or names anything other than files in
            its directory.
    """
    for name in SINGLE:
        index = directory / f"{name}.index.json"
        if (directory / name).is_file():
            return [directory / name]
        if index.is_file():
            return _named_in(index)
    raise Explained(f"{directory} has no weights: none of {', '.join(SINGLE)} and their indices")


def _named_in(index: Path) -> list[Path]:
    try:
        names = sorted(map(str, json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Explained(f"{index} is damaged ({e!r}): fetch it again") from e
    paths = [index.parent / name for name in dict.fromkeys(names)]
    for path in paths:
        if path.parent != index.parent or not path.is_file():
            raise Explained(
                f"{index} names {path}, which is not a file in its directory: fetch it again"
            )
    return paths


def stored_types(directory: Path) -> str:
    """The data types of the stored weights, such as ``BF16``; ``pickle`` for pytorch_model.bin.

    Raises:
        Explained: a file is missing, truncated or damaged.
    """
    types: set[str] = set()
    for path in weight_files(directory):
        if path.suffix == ".bin":
            types.add("pickle")
            continue
        try:
            with safe_open(path, "pt") as weights:  # compares the size of the file with its header
                types |= {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
        except SafetensorError as e:
            raise Explained(f"{path} is truncated or damaged ({e}): fetch it again") from e
    return ", ".join(sorted(types))
