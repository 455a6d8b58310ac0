"""Find the blocks and the final norm of a causal language model, and its attention shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from normscope.errors import Explained

BLOCKS = ("transformer.h", "model.layers", "gpt_neox.layers", "model.decoder.layers")
FINAL_NORMS = (
    "transformer.ln_f",
    "model.norm",
    "model.final_layernorm",
    "gpt_neox.final_layer_norm",
    "model.decoder.final_layer_norm",
)
NO_NORM = "none"  # as a value of the key final_norm
SEES_LATER = "a position sees later ones"
# configuration values of models that cannot be measured, and the reason
UNSUITED: dict[tuple[str, object], str] = {
    ("is_encoder_decoder", True): "it has an encoder",
    ("is_decoder", False): SEES_LATER,
    ("is_causal", False): SEES_LATER,
    ("causal", False): SEES_LATER,  # XLM
    ("use_bidirectional_attention", True): SEES_LATER,
    ("use_bidirectional_attention", "all"): SEES_LATER,
    ("model_type", "xlnet"): "it predicts tokens in permuted orders",
    ("model_type", "reformer"): "it has two residual streams",
}
CAUSAL_ANYWAY = ("gpt_neox", "gpt_neox_japanese")  # they ignore is_decoder


@dataclass(frozen=True)
class Body:
    """The modules of a model that the residual stream passes through.

    ``final_norm`` is None if the output of the last block goes directly to the head. ``names`` are
    the dotted names of the blocks and of the final norm, if there is one.
    """

    blocks: Sequence[nn.Module]
    final_norm: nn.Module | None
    names: Sequence[str]


def check_causal(model: PreTrainedModel) -> None:
    """Check by class and configuration that a model is causal and has one residual stream."""
    kind = type(model).__name__
    classes = [c for c in type(model).__mro__ if c.__module__.startswith("transformers.models.")]
    known = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    if classes and not known.intersection(c.__name__ for c in classes):
        raise Explained(
            f"{kind} is not a causal language model: give what AutoModelForCausalLM loads"
        )
    config = model.config
    configs = (config, config.get_text_config(decoder=True))
    for (key, value), reason in UNSUITED.items():
        if key == "is_decoder" and config.model_type in CAUSAL_ANYWAY:
            continue
        if any(getattr(c, key, None) == value for c in configs):
            raise Explained(
                f"{kind} is not a causal language model with one residual stream: {reason}, as "
                f"its configuration has {key} {value}; give a decoder"
            )


def find_body(
    model: PreTrainedModel, blocks: str | None = None, final_norm: str | None = None
) -> Body:
    """Find the blocks and the final norm by the given names, or else by well-known names.

    Args:
        model: of a transformers class with a language model head.
        blocks: dotted name of the list of blocks.
        final_norm: dotted name of the norm after the last block; ``none`` for a model without one.

    Raises:
        Explained: the model is not causal, or its parts are not found. The message lists
            the candidates and the keys to set.
    """
    check_causal(model)
    kind = type(model).__name__
    depth = _decoder_size(model.config, "layers", "num_hidden_layers")
    if blocks is None:
        blocks = next((name for name in BLOCKS if _find(model, name) is not None), None)
    modules = None if blocks is None else _find(model, blocks)
    if not isinstance(modules, nn.ModuleList) or len(modules) != depth:
        lists = [name for name, m in model.named_modules() if isinstance(m, nn.ModuleList)]
        number = "blocks" if depth is None else f"{depth} blocks"
        raise Explained(
            f"{kind} has no list of its {number} at {blocks or ', '.join(BLOCKS)}: name it "
            f"with the key blocks (and final_norm) of this model; lists of modules in it: "
            f"{', '.join(lists) or 'none'}"
        )
    name = _final_norm(model, str(blocks)) if final_norm is None else final_norm
    names = [f"{blocks}.{i}" for i in range(len(modules))]
    if name == NO_NORM:
        return Body(list(modules), None, names)
    norm = _find(model, name)
    if not isinstance(norm, nn.Module):
        raise Explained(
            f"{kind} has no module {name}: correct the key final_norm, or set it to {NO_NORM} if "
            "the model has no norm after its last block"
        )
    return Body(list(modules), norm, [*names, name])


def _final_norm(model: PreTrainedModel, blocks: str) -> str:
    """The well-known name of the final norm that exists; ``none`` if the attribute is None."""
    for name in FINAL_NORMS:
        owner, _, leaf = name.rpartition(".")
        if hasattr(_find(model, owner), leaf):
            return NO_NORM if _find(model, name) is None else name
    outer = [n for n, _ in model.named_modules() if "norm" in n.lower() and blocks not in n]
    raise Explained(
        f"{type(model).__name__} has none of the known final norms {', '.join(FINAL_NORMS)}: name "
        f"it with the key final_norm of this model, or set final_norm to {NO_NORM} if it has "
        f"none; norms outside its blocks: {', '.join(outer) or 'none'}"
    )


def _decoder_size(config: Any, name: str, usual: str) -> Any:
    """A size of the decoder. In Bart and similar models the usual name is that of the encoder."""
    config = config.get_text_config(decoder=True)
    return getattr(config, f"decoder_{name}", None) or getattr(config, usual, None)


def _find(model: nn.Module, name: str) -> Any:
    """The attribute with a dotted name, or None."""
    module: Any = model
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def norm_kind(body: Body) -> str:
    """LayerNorm or RMSNorm, by the class of the final norm; otherwise its class name, or none."""
    if isinstance(body.final_norm, nn.LayerNorm):
        return "LayerNorm"
    name = type(body.final_norm).__name__
    if "RMSNorm" in name:
        return "RMSNorm"
    return "none" if body.final_norm is None else name


def attention_shape(config: Any) -> dict[str, int | float | bool]:
    """Depth, width, numbers of heads, and their ratio ``rho`` to the head dimension.

    ``rho`` uses the head dimension of the configuration. ``rho_as_published`` uses width divided by
    heads instead, which differs for some models (Gemma). With grouped queries (``n_kv_heads`` below
    ``n_heads``), both count query heads.

    Raises:
        Explained: the model has no heads, or different numbers of heads in its blocks.
    """
    heads = _decoder_size(config, "attention_heads", "num_attention_heads")
    layers = _decoder_size(config, "layers", "num_hidden_layers")
    config = config.get_text_config(decoder=True)
    width = config.hidden_size
    if not isinstance(heads, int) or not heads:
        raise Explained(
            f"a {config.model_type} model does not have the same number of attention heads in "
            f"every block (num_attention_heads is {heads}): rho is not defined; measure its gain "
            "with normscope.gain"
        )
    head_dim = getattr(config, "head_dim", None) or width // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    return {
        "n_layers": layers,
        "n_embd": width,
        "n_heads": heads,
        "n_kv_heads": kv_heads,
        "grouped_queries": kv_heads < heads,
        "head_dim": head_dim,
        "rho": heads / head_dim,
        "rho_as_published": heads / (width // heads),
    }
