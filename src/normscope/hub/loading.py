"""Load a causal language model from a directory, within a memory limit for its weights."""

import json
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from normscope.errors import Explained
from normscope.hub.architecture import Body, attention_shape, find_body, norm_kind
from normscope.hub.recipe import Measurement

GB = 1e9  # bytes
# plain matrix products with an explicit mask: other implementations choose a kernel by shape
ATTENTION = "eager"
SINGLE = ("model.safetensors", "pytorch_model.bin")  # in transformers' order of preference
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")

READERS = {"SentencePiece": {"sentencepiece", "protobuf"}, "tiktoken": {"tiktoken"}}


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
    directory: Path, measured: Measurement, memory_gb: float, device: str, offload: Path
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
    config, empty = outline(directory)
    tokenizer = load_tokenizer(directory, config, measured.vocabulary)
    find_body(empty, measured.blocks, measured.final_norm)  # before any weights are read
    parameters = sum(p.numel() for p in empty.parameters())
    offloaded = parameters * 4 > memory_gb * GB
    options: dict[str, Any] = {}
    if offloaded:
        limit = {0 if device == "cuda" else "cpu": int(memory_gb * GB)}
        options = {"device_map": "auto", "max_memory": limit, "offload_folder": offload}
    model = load_weights(directory, config, options)
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


def outline(directory: Path) -> tuple[Any, Any]:
    """The configuration of a directory, and its model without weights.

    Raises:
        Explained: transformers has no causal language model for config.json.
    """
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        with torch.device("meta"):
            return config, AutoModelForCausalLM.from_config(
                config, attn_implementation=ATTENTION, trust_remote_code=False
            )
    except Exception as e:  # transformers raises errors of many types
        raise _error(directory, e, "config.json makes no model", "correct or fetch it again") from e


def load_tokenizer(directory: Path, config: Any, vocabulary: str | None) -> Any:
    """The tokenizer of a directory; with a vocabulary, one that splits a text at spaces.

    Args:
        config: of the model.
        vocabulary: tokens in the order of their numbers, separated by spaces. Any other word in a
            text is an error.

    Raises:
        Explained: the directory has no tokenizer that can be read, or the vocabulary is not as
            large as that of the model.
    """
    if vocabulary is not None:
        words = {word: i for i, word in enumerate(vocabulary.split())}
        if len(words) != (size := config.get_text_config(decoder=True).vocab_size):
            raise Explained(
                f"the vocabulary has {len(words)} distinct tokens, and the model in {directory} "
                f"has {size}: correct its key vocabulary"
            )
        splitter = Tokenizer(WordLevel(words))
        splitter.pre_tokenizer = WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
        return PreTrainedTokenizerFast(tokenizer_object=splitter)
    if not any((directory / name).is_file() for name in VOCABULARIES):
        # for some models transformers would make up an empty tokenizer
        raise Explained(
            f"{directory} has no tokenizer: none of {', '.join(VOCABULARIES)}; give its tokens by "
            "the key vocabulary"
        )
    try:
        return AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
    except Exception as e:
        raise _tokenizer_error(directory, e) from e


def load_weights(directory: Path, config: Any, options: dict[str, Any]) -> Any:
    """The model in evaluation mode, with all its weights from the files. Pickles run no code.

    Args:
        options: of ``from_pretrained``, in addition to those here, or in place of one.

    Raises:
        Explained: the weights are damaged, or not those of the configuration, or transformers does
            not plan to offload them.
    """
    method = (_facts(directory).get("quantization_config") or {}).get("quant_method")
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            config=config,
            trust_remote_code=False,
            weights_only=True,
            ignore_mismatched_sizes=True,  # they are reported, with their names
            output_loading_info=True,
            **{"dtype": torch.float32, "attn_implementation": ATTENTION} | options,
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
        reason, remedy = "the weights are damaged, or not those of config.json", "fetch them again"
        if method:
            reason = f"the weights are quantized ({method}), and transformers cannot read them"
            remedy = "give weights without quantization"
        raise _error(directory, e, reason, remedy) from e
    model, report = loaded
    if method and (report["mismatched_keys"] or report["missing_keys"]):
        raise Explained(
            f"{directory}: the weights are quantized ({method}), and transformers "
            f"{transformers.__version__} does not read them: give weights without quantization"
        )
    if wrong := sorted(str(key[0]) for key in report["mismatched_keys"]):
        raise Explained(
            f"{directory}: {', '.join(wrong[:3])}: the shape is not that of config.json"
        )
    if missing := sorted(report["missing_keys"]):
        raise Explained(f"{directory} lacks {len(missing)} weight(s): {', '.join(missing[:3])}")
    return model.eval()


def _error(directory: Path, e: Exception, otherwise: str, remedy: str) -> Explained:
    """The error for a model that transformers cannot load, with its reason and the way out.

    Args:
        otherwise: the reason where e shows no other.
    """
    facts, text = _facts(directory), " ".join(str(e).split())[:300]
    kind, version = facts.get("model_type"), transformers.__version__
    has_code = "auto_map" in facts and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if isinstance(e, ImportError):
        reason, remedy = f"a package is missing ({text})", "install it"
    elif isinstance(e, MemoryError | torch.OutOfMemoryError) or "allocate memory" in text:
        reason, remedy = f"there is not enough memory ({text})", "lower memory_gb, or free some"
    elif isinstance(e, OSError) and e.errno:
        reason, remedy = f"{e.strerror}: {e.filename or directory}", "correct this and start again"
    elif has_code or "trust_remote" in str(e):
        reason = "it needs code that comes with it, which is not run"
        remedy = "give a model whose code transformers has"
    elif kind and kind not in CONFIG_MAPPING:
        reason = f"transformers {version} does not know the model_type {kind!r} of its config.json"
        remedy = "correct it, or install a newer transformers"
    elif kind and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        reason = f"transformers {version} has no causal language model of the model_type {kind!r}"
        remedy = "give a decoder"
    else:
        reason = f"{otherwise} ({type(e).__name__}: {text})"
    return Explained(f"{directory}: {reason}: {remedy}")


def _tokenizer_error(directory: Path, e: Exception) -> Explained:
    """The error for a tokenizer that transformers cannot load.

    Where a package is missing, transformers tries others in turn, and its error names the last.
    """
    if (directory / "tokenizer.json").is_file():
        reason, remedy = "tokenizer.json cannot be read", "fetch it again, or update transformers"
        return _error(directory, e, reason, remedy)
    for path in (directory / "tokenizer.model", directory / "spiece.model"):
        if path.is_file():
            with path.open("rb") as file:
                kind = "SentencePiece" if file.read(1) == b"\n" else "tiktoken"
            lacking = READERS[kind] - {distribution.name for distribution in distributions()}
            if lacking:
                return Explained(
                    f"{path} has the format of {kind}, and packages that read it are missing: "
                    f"install {' and '.join(sorted(lacking))}, or give a tokenizer.json"
                )
    return _error(directory, e, "its tokenizer cannot be read", "fetch it again")


def _facts(directory: Path) -> dict[str, Any]:
    """The content of config.json, if it has any."""
    try:
        content = json.loads((directory / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


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
            return _indexed_files(index)
    raise Explained(f"{directory} has no weights: none of {', '.join(SINGLE)} and their indices")


def _indexed_files(index: Path) -> list[Path]:
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
    """The data types of the stored weights, such as ``BF16``; ``pickle`` for pytorch_model.bin."""
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
