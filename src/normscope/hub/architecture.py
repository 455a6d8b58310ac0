"""Where a causal language model keeps its blocks and final norm, and the shape of its attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from normscope.errors import Explained

BLOCKS = ("transformer.h", "model.layers", "gpt_neox.layers", "model.decoder.layers")
FINAL_NORMS = (
    "transformer.ln_f",
    "model.norm",
    "model.final_layernorm",
    "gpt_neox.final_layer_norm",
    "model.decoder.final_layer_norm",
)


class UnknownArchitecture(Explained):
    """The list of blocks or the final norm is not where it is known to be."""


@dataclass(frozen=True)
class Body:
    """The parts of a model that its residual stream passes.

    ``final_norm`` is None where the last block's output goes to the head as it is.
    """

    blocks: Sequence[nn.Module]
    final_norm: nn.Module | None


def find_body(
    model: PreTrainedModel, blocks: str | None = None, final_norm: str | None = None
) -> Body:
    """The blocks and the final norm, by the names given or by the known ones.

    Args:
        model: of a transformers class with a language model head.
        blocks: dotted name of the list of blocks.
        final_norm: dotted name of the norm after the last one.

    Raises:
        UnknownArchitecture: naming the lists of modules that are there, and the keys to set.
    """
    kind = type(model).__name__
    depth = model.config.get_text_config().num_hidden_layers
    if blocks is None:
        blocks = next((name for name in BLOCKS if _find(model, name) is not None), None)
    modules = None if blocks is None else _find(model, blocks)
    if not isinstance(modules, nn.ModuleList) or len(modules) != depth:
        lists = [name for name, m in model.named_modules() if isinstance(m, nn.ModuleList)]
        raise UnknownArchitecture(
            f"{kind} has no list of its {depth} blocks at {blocks or ', '.join(BLOCKS)}: name it "
            f"with the key blocks (and final_norm) of this model; lists of modules in it: "
            f"{', '.join(lists) or 'none'}"
        )
    if final_norm is not None:
        norm = _find(model, final_norm)
        if not isinstance(norm, nn.Module):
            raise UnknownArchitecture(f"{kind} has no module {final_norm}: mend the key final_norm")
        return Body(list(modules), norm)
    for name in FINAL_NORMS:
        owner, _, leaf = name.rpartition(".")
        if hasattr(_find(model, owner), leaf):  # it may be None: then there is no final norm
            return Body(list(modules), _find(model, name))
    outer = [n for n, _ in model.named_modules() if "norm" in n.lower() and str(blocks) not in n]
    raise UnknownArchitecture(
        f"{kind} has none of the known final norms {', '.join(FINAL_NORMS)}: name it with the key "
        f"final_norm of this model; norms outside its blocks: {', '.join(outer) or 'none'}"
    )


def _find(model: nn.Module, name: str) -> Any:
    """The module of a dotted name, or None."""
    module: Any = model
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def norm_kind(body: Body) -> str:
    """LayerNorm or RMSNorm, by the class of the final norm; else that class, or none."""
    if isinstance(body.final_norm, nn.LayerNorm):
        return "LayerNorm"
    name = type(body.final_norm).__name__
    if "RMSNorm" in name:
        return "RMSNorm"
    return "none" if body.final_norm is None else name


def attention_shape(config: Any) -> dict[str, int | float | bool]:
    """Heads and what follows of them.

    ``rho`` is heads over head dimension, with the head dimension that the model has;
    ``rho_as_published`` takes width over heads for it, which is another number where the two
    differ (Gemma). With grouped queries (``n_kv_heads`` below ``n_heads``) rho counts query heads.
    """
    config = config.get_text_config()
    heads, width = config.num_attention_heads, config.hidden_size
    head_dim = getattr(config, "head_dim", None) or width // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    return {
        "n_layers": config.num_hidden_layers,
        "n_embd": width,
        "n_heads": heads,
        "n_kv_heads": kv_heads,
        "grouped_queries": kv_heads < heads,
        "head_dim": head_dim,
        "rho": heads / head_dim,
        "rho_as_published": heads / (width // heads),
    }
