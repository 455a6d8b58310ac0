"""Where models keep their blocks and final norm, and the shape of their attention."""

from typing import Any

import pytest
import torch
from pretrained_models import (
    HEADS,
    KINDS,
    LAYERS,
    WIDTH,
    load,
    random_model,
    save,
)
from torch import nn

from normscope.errors import Explained
from normscope.hub.architecture import attention_shape, find_body, norm_kind


def renamed() -> Any:
    """GPT-2 with its parts under other names."""

    class Body(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.stages, self.outer_norm = inner.h, inner.ln_f

    model = random_model("gpt2")
    model.body = Body(model.transformer)
    del model.transformer
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_the_final_norm_are_found(kind):
    """The output of the final norm is the input of the head."""
    model = random_model(kind)
    body, seen = find_body(model), []
    layers = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == LAYERS]
    assert list(body.blocks) == list(layers[0])
    if kind == "opt_post":
        assert body.final_norm is None
        assert norm_kind(body) == "none"
        return
    assert body.final_norm is not None
    body.final_norm.register_forward_hook(lambda _, args, output: seen.append(output))
    model.get_output_embeddings().register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.inference_mode():
        model(input_ids=torch.tensor([[5, 6, 7]]))
    assert torch.equal(*seen)
    layer_norms = ("gpt2", "gpt2_untied", "gpt_neox", "gptj", "opt")
    assert norm_kind(body) == ("LayerNorm" if kind in layer_norms else "RMSNorm")


def test_unknown_parts_are_errors_that_name_the_key_and_the_candidates():
    with pytest.raises(Explained, match=r"GPT2LMHeadModel.* its 4 blocks .*key blocks .*body\.sta"):
        find_body(renamed())
    with pytest.raises(Explained, match=r"key final_norm.*outside its blocks: body\.outer_norm$"):
        find_body(renamed(), "body.stages")


@pytest.mark.parametrize(
    ("blocks", "final_norm", "key"),
    [
        ("body.nowhere", "body.outer_norm", "blocks"),
        ("body", "body.outer_norm", "blocks"),
        ("body.stages", "body.nowhere", "final_norm"),
        ("body.stages", "lm_head.weight", "final_norm"),
    ],
)
def test_keys_that_do_not_name_a_module_are_errors(blocks, final_norm, key):
    with pytest.raises(Explained, match=rf"key {key}"):
        find_body(renamed(), blocks, final_norm)


@pytest.mark.parametrize(
    ("kind", "error", "keys"),
    [
        ("xglm", r"key final_norm.*model\.layer_norm", {"final_norm": "model.layer_norm"}),
        ("openai-gpt", "set final_norm to none if it has none", {"final_norm": "none"}),
    ],
)
def test_an_architecture_with_unusual_names_is_loaded_by_its_keys(tmp_path, kind, error, keys):
    directory = save(random_model(kind), tmp_path)
    with pytest.raises(Explained, match=error):
        load(directory)
    loaded = load(directory, **keys)
    assert len(loaded.body.blocks) == LAYERS
    assert loaded.facts["norm"] == ("LayerNorm" if kind == "xglm" else "none")


@pytest.mark.parametrize("kind", KINDS)
def test_heads_are_those_of_the_weights(kind):
    """In each class the projection to keys has n_kv_heads * head_dim rows."""
    model = random_model(kind)
    shape = attention_shape(model.config)
    assert shape["n_layers"] == LAYERS
    assert (shape["n_embd"], shape["n_heads"]) == (WIDTH, HEADS)
    rows = shape["n_kv_heads"] * shape["head_dim"]
    k_proj = [m for n, m in model.named_modules() if n.endswith("k_proj")]
    # without it, queries, keys and values are in one projection
    assert (k_proj[0].weight.shape[0] if k_proj else WIDTH) == rows
    assert shape["rho"] == HEADS / shape["head_dim"]
    assert shape["rho_as_published"] == HEADS / (WIDTH // HEADS)
    assert shape["grouped_queries"] == (kind in "llama llama_tied mistral gemma qwen2".split())
