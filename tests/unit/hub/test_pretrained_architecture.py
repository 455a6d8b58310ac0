"""Where models keep their blocks and final norm, and the shape of their attention."""

import math
from typing import Any

import pytest
import torch
import transformers
from pretrained_models import (
    HEADS,
    KINDS,
    LAYERS,
    WIDTH,
    config_of,
    half_of_memory,
    load,
    outcomes,
    perturb,
    random_model,
    save,
    stock,
)
from torch import nn
from transformers import AutoModelForCausalLM

from normscope.hub.architecture import UnknownArchitecture, attention_shape, find_body
from normscope.hub.architecture import norm_kind as kind_of
from normscope.hub.measurement import rows

NORMS = {
    "gpt2": "LayerNorm",
    "gpt_neox": "LayerNorm",
    "gptj": "LayerNorm",
    "opt": "LayerNorm",
    "opt_post": "none",
    "llama": "RMSNorm",
    "mistral": "RMSNorm",
    "gemma": "RMSNorm",
    "qwen2": "RMSNorm",
}


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
    model = random_model(kind)
    body = find_body(model)
    layers = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == LAYERS]
    assert list(body.blocks) == list(layers[0])
    if kind == "opt_post":
        assert body.final_norm is None
    else:
        names = {id(m): name for name, m in model.named_modules()}
        assert names[id(body.final_norm)].count(".") <= 2
        assert "norm" in names[id(body.final_norm)] or "ln_f" in names[id(body.final_norm)]
    assert kind_of(body) == NORMS[kind.removesuffix("_untied").removesuffix("_tied")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "opt_post"])
def test_the_output_of_the_final_norm_is_the_input_of_the_head(kind):
    model = random_model(kind)
    body, seen = find_body(model), []
    assert body.final_norm is not None
    body.final_norm.register_forward_hook(lambda _, args, output: seen.append(output))
    model.get_output_embeddings().register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.inference_mode():
        model(input_ids=torch.tensor([[5, 6, 7]]))
    assert torch.equal(*seen)


def test_unknown_parts_are_errors_that_name_the_key_and_the_candidates():
    with pytest.raises(
        UnknownArchitecture, match=r"GPT2LMHeadModel.* its 4 blocks .*key blocks .*body\.stages"
    ):
        find_body(renamed())
    with pytest.raises(
        UnknownArchitecture, match=r"key final_norm.*norms outside its blocks: body\.outer_norm$"
    ):
        find_body(renamed(), "body.stages")


@pytest.mark.parametrize(
    ("blocks", "final_norm", "key"),
    [
        ("body.nowhere", "body.outer_norm", "blocks"),
        ("body.outer_norm", "body.outer_norm", "blocks"),
        ("body", "body.outer_norm", "blocks"),
        ("body.stages", "body.nowhere", "final_norm"),
        ("body.stages", "nowhere.at.all", "final_norm"),
        ("body.stages", "config.vocab_size", "final_norm"),
        ("body.stages", "lm_head.weight", "final_norm"),
    ],
)
def test_keys_that_do_not_name_a_module_are_errors(blocks, final_norm, key):
    with pytest.raises(UnknownArchitecture, match=rf"key {key}"):
        find_body(renamed(), blocks, final_norm)


UNUSUAL = {
    "xglm": (  # its final norm is at model.layer_norm
        transformers.XGLMConfig(
            vocab_size=400,
            d_model=WIDTH,
            ffn_dim=WIDTH,
            num_layers=LAYERS,
            attention_heads=HEADS,
            max_position_embeddings=64,
        ),
        {"blocks": "model.layers", "final_norm": "model.layer_norm"},
        r"key final_norm.*model\.layer_norm",
    ),
    "gpt": (  # normalizes within its blocks only
        transformers.OpenAIGPTConfig.from_dict(
            {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
            | {"vocab_size": 400}
        ),
        {"final_norm": "none"},
        "set final_norm to none if it has none",
    ),
}


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("share", [1, 1e9], ids=["offloaded", "in memory"])
def test_an_architecture_with_unusual_names_is_measured_by_its_keys(tmp_path, kind, share):
    config, keys, error = UNUSUAL[kind]
    directory = save(perturb(AutoModelForCausalLM.from_config(config)), tmp_path)
    with pytest.raises(UnknownArchitecture, match=error):
        load(directory)
    loaded = load(directory, share * half_of_memory(directory), **keys)
    assert loaded.facts["streamed"] == (share == 1)
    outcome = outcomes(loaded)[0]
    sequence = outcome.batch.sequences[0]
    with torch.inference_mode():
        states = stock(directory)(torch.tensor([sequence.tokens]), output_hidden_states=True)
    expected = torch.stack([h[0].norm(dim=-1) for h in states.hidden_states])
    ours = outcome.norms[:, 0, : len(sequence.tokens)]
    torch.testing.assert_close(ours[:LAYERS], expected[:LAYERS], rtol=1e-5, atol=0)
    torch.testing.assert_close(ours[-1], expected[-1], rtol=1e-5, atol=0)
    if kind == "gpt":
        gains, norms = rows([outcome], loaded.body, loaded.tokenizer)
        assert loaded.facts["norm"] == "none"
        assert {r["site"] for r in norms} == {"embedding", *(f"block_{i}" for i in range(LAYERS))}
        assert all(math.isnan(row["gain_with_final_norm"]) for row in gains)


def test_heads_and_depth_are_those_of_the_decoder():
    layers, heads = (2, 3), (4, 8)  # of the encoder, of the decoder
    config = transformers.BartConfig(
        d_model=32,
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        encoder_attention_heads=heads[0],
        decoder_attention_heads=heads[1],
    )
    with torch.device("meta"):
        shape = attention_shape(AutoModelForCausalLM.from_config(config).config)
    assert (shape["n_layers"], shape["n_heads"]) == (layers[1], heads[1])


def test_a_model_without_attention_has_no_rho():
    with pytest.raises(UnknownArchitecture, match=r"mamba .*rho is not defined"):
        attention_shape(transformers.MambaConfig())


@pytest.mark.parametrize("kind", KINDS)
def test_heads_are_those_of_the_weights(kind):
    """In each class the projection to keys has n_kv_heads * head_dim rows."""
    model = random_model(kind)
    shape = attention_shape(model.config)
    assert shape["n_layers"] == LAYERS
    assert (shape["n_embd"], shape["n_heads"]) == (WIDTH, HEADS)
    rows = shape["n_kv_heads"] * shape["head_dim"]
    k_proj = [m for n, m in model.named_modules() if n.endswith("k_proj")]
    if k_proj:
        assert k_proj[0].weight.shape[0] == rows
    else:  # queries, keys and values in one
        assert rows == WIDTH
    assert shape["rho"] == HEADS / shape["head_dim"]
    assert shape["rho_as_published"] == HEADS / (WIDTH // HEADS)
    assert shape["grouped_queries"] == (kind in "llama llama_tied mistral gemma qwen2".split())


def test_rho_of_gemma_uses_the_head_dimension_of_its_configuration():
    """Gemma-7b: 16 heads of 256 at a width of 3072."""
    sizes = {"hidden_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 16}
    shape = attention_shape(config_of("gemma", head_dim=256, **sizes))
    assert shape["rho"] == 16 / 256
    assert shape["rho_as_published"] == 16 / 192
    assert not shape["grouped_queries"]
