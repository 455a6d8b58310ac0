"""``norms``: what is known of published architectures is found by running random models of them."""

import math
from typing import Any

import pandas as pd
import pytest
import torch
from pretrained_models import LAYERS, random_model, shallow_model
from torch import Tensor, nn
from torch.nn import functional as F

import normscope
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

BEFORE, AFTER, SUM = "before a sublayer", "after a sublayer", "after the sum"
FINAL, EMBEDDING, INSIDE = "final", "embedding", "inside a sublayer"
HEADS = {"q_norm": "queries per head", "k_norm": "keys per head"}
WHOLE = {"q_norm": "queries over all heads", "k_norm": "keys over all heads"}

LLAMA = {"input_layernorm": BEFORE, "post_attention_layernorm": BEFORE, "norm": FINAL}
GPT2 = {"ln_1": BEFORE, "ln_2": BEFORE, "ln_f": FINAL}
GPTJ = {"ln_1": BEFORE, "ln_f": FINAL}
PHI = {"input_layernorm": BEFORE, "final_layernorm": FINAL}
COHERE = {"input_layernorm": BEFORE, "norm": FINAL}
OLMO2 = {"post_attention_layernorm": AFTER, "post_feedforward_layernorm": AFTER, "norm": FINAL}
SANDWICH = OLMO2 | {"input_layernorm": BEFORE, "pre_feedforward_layernorm": BEFORE}
BART = {"self_attn_layer_norm": BEFORE, "final_layer_norm": BEFORE, "layer_norm": FINAL}
MAMBA = {"norm": BEFORE, "norm_f": FINAL}

LAYERNORM, RMSNORM, ONE_PLUS = ("LayerNorm", "w"), ("RMSNorm", "w"), ("RMSNorm", "1 + w")
# what norms compute, how they store gains, and their places by the names in the code of
# transformers, with two blocks; the papers say so
PUBLISHED: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    **dict.fromkeys(("gpt2", "gpt_bigcode"), (LAYERNORM, GPT2)),
    **dict.fromkeys(("gptj", "codegen"), (LAYERNORM, GPTJ)),
    "gpt_neox": (LAYERNORM, LLAMA | {"final_layer_norm": FINAL}),
    "phi": (LAYERNORM, PHI),
    "falcon": (LAYERNORM, {"input_layernorm": BEFORE, "ln_f": FINAL}),
    "bloom": (LAYERNORM, LLAMA | {"word_embeddings_layernorm": EMBEDDING, "ln_f": FINAL}),
    "mpt": (LAYERNORM, {"norm_1": BEFORE, "norm_2": BEFORE, "norm_f": FINAL}),
    **dict.fromkeys(("xglm", "biogpt"), (LAYERNORM, BART)),
    "opt": (LAYERNORM, BART | {"model.decoder.final_layer_norm": FINAL}),
    "opt_post": (
        LAYERNORM,
        {"self_attn_layer_norm": SUM, "final_layer_norm": SUM}
        | {"model.decoder.layers.1.final_layer_norm": FINAL},
    ),
    "openai-gpt": (LAYERNORM, {"ln_1": SUM, "ln_2": SUM, "transformer.h.1.ln_2": FINAL}),
    "ctrl": (LAYERNORM, {"layernorm1": BEFORE, "layernorm2": BEFORE, "layernorm": FINAL}),
    **dict.fromkeys(("starcoder2", "stablelm"), (LAYERNORM, LLAMA)),
    "persimmon": (
        LAYERNORM,
        LLAMA
        | {"q_layernorm": "queries per head", "k_layernorm": "keys per head"}
        | {"final_layernorm": FINAL},
    ),
    "nemotron": (("LayerNorm", "1 + w"), LLAMA),
    "cohere": (LAYERNORM, COHERE | HEADS),
    "cohere2": (LAYERNORM, COHERE),
    "olmo": (("LayerNorm", "none"), LLAMA),
    "rwkv": (LAYERNORM, {"pre_ln": EMBEDDING, "ln1": BEFORE, "ln2": BEFORE, "ln_out": FINAL}),
    **dict.fromkeys(
        "llama mistral mixtral qwen2 phi3 granite smollm3 glm ernie4_5 gpt_oss".split(),
        (RMSNORM, LLAMA),
    ),
    "qwen3": (RMSNORM, LLAMA | HEADS),
    "olmoe": (RMSNORM, LLAMA | WHOLE),
    **dict.fromkeys(("olmo2", "olmo3"), (RMSNORM, OLMO2 | WHOLE)),
    "exaone4": (RMSNORM, OLMO2 | HEADS),
    "glm4": (RMSNORM, LLAMA | {"post_self_attn_layernorm": AFTER, "post_mlp_layernorm": AFTER}),
    "bitnet": (RMSNORM, LLAMA | {"attn_sub_norm": INSIDE, "ffn_sub_norm": INSIDE}),
    "mamba": (RMSNORM, MAMBA),
    "nanochat": (("RMSNorm", "none"), LLAMA | HEADS | {"norm": f"{EMBEDDING} and {FINAL}"}),
    "gemma": (ONE_PLUS, LLAMA),
    "gemma2": (ONE_PLUS, SANDWICH),
    "gemma3_text": (ONE_PLUS, SANDWICH | HEADS),
    "recurrent_gemma": (
        ONE_PLUS,
        {"temporal_pre_norm": BEFORE, "channel_pre_norm": BEFORE, "final_norm": FINAL},
    ),
}
EPS = 3e-4
EPS_KEYS = "rms_norm_eps layer_norm_epsilon layer_norm_eps norm_epsilon norm_eps".split()
# whose code has an eps, or one of some norms, whatever the configuration says
CONSTANT = {"biogpt": 1e-5, "ctrl": 1e-6, "xglm": 1e-5, "opt": 1e-5, "opt_post": 1e-5, "olmo": 1e-5}
OUTERMOST = {"rwkv.ln_out": 1e-5, "transformer.layernorm": EPS}
ALSO: dict[str, dict[str, Any]] = {
    "cohere": {"use_qk_norm": True},
}
TOKENS = torch.randint(3, 300, (3, 7), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", PUBLISHED)
def test_published_architectures(kind):
    model = shallow_model(kind, **dict.fromkeys(EPS_KEYS, EPS), **ALSO.get(kind, {}))
    (computes, gain_as), places = PUBLISHED[kind]
    table, says = normscope.norms(model)
    rows = table.set_index("norm").to_dict("index")
    expected = {name: places.get(name, places.get(name.rpartition(".")[2])) for name in rows}
    assert {name: row["place"] for name, row in rows.items()} == expected
    assert {row["computes"] for row in rows.values()} == {computes}
    assert {row["gain_as"] for row in rows.values()} == {gain_as}
    eps = CONSTANT.get(kind, EPS)
    for name, row in rows.items():
        assert row["eps"] == pytest.approx(OUTERMOST.get(name, eps), rel=1e-3)
    # random gains are drawn between 0.5 and 1.5
    offset = {"none": 1, "w": 0, "1 + w": 1}[gain_as]
    for name, row in rows.items():
        weight = next(iter(model.get_submodule(name).parameters()), torch.zeros(1)) + offset
        found = [row["gain_low"], row["gain_high"]]
        assert found == pytest.approx([float(weight.min()), float(weight.max())], rel=1e-6)
    final = next(name for name, place in expected.items() if FINAL in str(place))
    outputs: list[Tensor] = []
    hook = model.get_submodule(final).register_forward_hook(lambda *args: outputs.append(args[2]))
    last = model(TOKENS, output_hidden_states=True, use_cache=False).hidden_states[-1]
    hook.remove()
    is_output = last.shape == outputs[-1].shape and torch.equal(last, outputs[-1])
    assert f"hidden_states[-1] is {'the output' if is_output else 'neither'}" in says[1]


OF_THE_PROJECT: dict[str, str] = {
    **{"before": BEFORE, "after": AFTER, "outside": SUM, "final_norm": FINAL},
    **{"embedding_norm": EMBEDDING, "blocks.1.mlp.outside": FINAL},
}


@pytest.mark.parametrize(
    ("placement", "choices", "also"),
    [
        ("pre", {"qk_norm": "head"}, HEADS),
        ("post", {"embedding_norm": True}, {}),
        ("peri", {"qk_norm": "all"}, WHOLE),
        ("hybrid", {}, HEADS | {"v_norm": "values per head"}),
        ("mix", {}, {}),
        ("deepnorm", {}, {}),
        ("none", {"qk_norm": "head"}, HEADS),
    ],
)
def test_placements_of_the_project(placement, choices, also):
    """Its attention joins queries, keys and values, and parts them again."""
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 6} | choices
    model = Transformer(Model.model_validate(sizes), ARMS["rmsnorm"].norm, placement, 11)
    places, expected = (
        normscope.norms(model).table.set_index("norm")["place"],
        OF_THE_PROJECT | also,
    )
    assert len(places) > 3
    for name, place in places.items():
        assert place == expected.get(str(name), expected.get(str(name).rpartition(".")[2]))


@pytest.mark.parametrize("kind", ["gpt2", "gpt2_untied", "olmo2", "opt_post"])
def test_what_folds_is_what_fold_folds(kind):
    model = shallow_model(kind)
    table, folded = normscope.norms(model).table, normscope.fold(model).table
    assert table["folds"].tolist() == folded["folded"].tolist()
    assert table["adds_bias"].tolist() == folded["adds_bias"].tolist()
    assert table["problem"].tolist() == folded["problem"].tolist()
    into = table["feeds"][table["folds"]]
    assert into.tolist() == folded["into"][folded["folded"]].tolist()


@pytest.mark.parametrize(
    ("kind", "norm", "dtype"),
    [
        ("gpt2", "transformer.h.{}.ln_1", torch.float32),
        ("llama", "model.layers.{}.input_layernorm", torch.bfloat16),
    ],
)
def test_sigma_and_size_are_means_over_tokens_position_0_apart(kind, norm, dtype):
    model = random_model(kind).to(dtype)
    table = normscope.norms(model, TOKENS).table.set_index("norm")
    assert {p.dtype for p in model.parameters()} == {dtype}
    states = model.float()(TOKENS, output_hidden_states=True).hidden_states
    for i in range(LAYERS):
        x = states[i].double()
        u = x - x.mean(-1, keepdim=True) if kind == "gpt2" else x
        for name, vector in (("sigma", u), ("size", x)):
            length, row = vector.square().mean(-1).sqrt(), table.loc[norm.format(i)]
            assert row[name] == pytest.approx(float(length[:, 1:].mean()), rel=1e-3)
            assert row[f"{name}_first"] == pytest.approx(float(length[:, 0].mean()), rel=1e-3)


def test_as_many_heads_as_positions_have_no_first_position():
    table = normscope.norms(random_model("gemma3_text"), TOKENS[:, :4]).table.set_index("norm")
    assert math.isnan(table["sigma_first"]["model.layers.0.self_attn.q_norm"])
    assert table["sigma_first"]["model.layers.0.self_attn.k_norm"] > 0  # of two heads


class Affine(nn.Module):
    """nanoGPT's LayerNorm with an optional bias."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d)), None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Block(nn.Module):
    """A block of nanoGPT."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = Affine(d), Affine(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.c_attn(self.ln_1(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.c_proj(y)
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    """nanoGPT with a tied head, and a way to read the output of the last norm."""

    def __init__(self, last: nn.Module, read: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wte, self.wpe = nn.Embedding(30, 8), nn.Embedding(16, 8)
        self.h, self.ln_f, self.read = nn.ModuleList([Block(8), Block(8)]), last, read
        self.lm_head = nn.Linear(8, 30, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, None]:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.read(self.ln_f(x))), None


def test_a_plain_module_whose_parameters_are_frozen():
    model = NanoGPT(Affine(8), nn.Identity()).requires_grad_(False).train()
    table, says = normscope.norms(model)
    assert table["place"].tolist() == [BEFORE] * 4 + [FINAL]
    assert table["feeds"].tolist() == [
        ["h.0.c_attn"],
        ["h.0.mlp.0"],
        ["h.1.c_attn"],
        ["h.1.mlp.0"],
        ["lm_head"],
    ]
    assert table["folds"].tolist() == [True] * 4 + [False]
    assert "hidden_states" not in " ".join(says)
    assert model.training
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize(
    ("last", "read", "is_cancelled"),
    [
        (nn.RMSNorm(8), nn.RMSNorm(8), True),
        (nn.LayerNorm(8), nn.RMSNorm(8), True),
        (nn.RMSNorm(8), nn.Linear(8, 8), False),
        (nn.RMSNorm(8), nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8)), False),  # not directly
    ],
)
def test_a_norm_that_another_one_reads_has_no_effect(last, read, is_cancelled):
    model = NanoGPT(last, read)
    cancelled = normscope.norms(model).table.set_index("norm")["cancelled_by"]["ln_f"]
    assert cancelled == ["read"] * is_cancelled
    tokens = torch.arange(12).view(2, 6)
    before = model(tokens)[0]
    model.ln_f.register_forward_hook(lambda *args: args[2] * torch.linspace(1, 9, 6)[:, None])
    change = float((model(tokens)[0] - before).detach().abs().max())
    assert (change < 1e-4) == is_cancelled


def test_a_bias_before_another_norm_keeps_its_effect():
    last = nn.LayerNorm(8)
    nn.init.normal_(last.bias)
    table = normscope.norms(NanoGPT(last, nn.RMSNorm(8))).table
    assert table["cancelled_by"].tolist() == [[]] * 6


def test_what_is_unusual_is_said():
    model = random_model("gpt2", layer_norm_epsilon=1e12)
    for name, gain in (("0.ln_1", 0.0), ("1.ln_2", 50.0), ("2.ln_2", 0.01)):
        model.get_submodule(f"transformer.h.{name}").weight.fill_(gain)
    table, says = normscope.norms(model)
    assert table["eps"].tolist() == pytest.approx([1e12] * 9, rel=1e-3)
    assert len(says) <= 5
    text = next(one for one in says if one.startswith("Unusual"))
    for words in (
        "eps is up to 1 of",
        "gain is 0 in transformer.h.0.ln_1",
        "50 in transformer.h.1",
    ):
        assert words in text
    assert "below 0.01 in transformer.h.2.ln_2" in text


class Gated(nn.Module):
    """A norm whose output depends on more than the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (8,), self.weight) * torch.sigmoid(x)


class GatedRMSNorm(Gated):
    """The same, with the name of a norm."""


class Exponent(nn.Module):
    """An RMSNorm that learns the logarithm of its gain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 8))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (8,), self.weight.exp(), 1e-3)


def test_a_gain_that_is_stored_in_another_way_has_a_range():
    row = normscope.norms(NanoGPT(Exponent(), nn.Identity())).table.iloc[-1]
    assert row["computes"] == "RMSNorm"
    assert pd.isna(row["gain_as"])
    assert [row["gain_low"], row["gain_high"]] == pytest.approx([math.exp(-1), math.exp(1)])
    assert row["eps"] == pytest.approx(1e-3, rel=1e-4)


def test_what_is_not_known_is_missing_and_said():
    model = NanoGPT(GatedRMSNorm(), nn.Identity())
    model.other = nn.LayerNorm(8)
    table, says = normscope.norms(model)
    rows = table.set_index("norm")
    assert (
        rows.loc[["ln_f", "other"], ["computes", "gain_as", "eps", "gain_low", "sigma"]]
        .isna()
        .all(axis=None)
    )
    assert pd.isna(rows["place"]["other"])
    assert rows["place"]["ln_f"] == FINAL
    assert "does not compute a norm" in rows["problem"]["ln_f"]
    assert "does not run it" in rows["problem"]["other"]
    assert "ln_f" in says[-1]
    assert says[-1].startswith("Not known")


@pytest.mark.parametrize(
    ("model", "tokens", "words"),
    [
        (3, None, "model is of type int"),
        (nn.Sequential(nn.Embedding(3, 3), nn.Linear(3, 3)), None, "Sequential has no LayerNorm"),
        (nn.Sequential(nn.LayerNorm(3)), None, "no torch.nn.Embedding"),
        (NanoGPT(Affine(8), nn.Identity()), torch.ones(2, 1, dtype=torch.int64), "at least 2"),
        (NanoGPT(Affine(8), nn.Flatten()), None, "fails in torch.float32"),
    ],
)
def test_what_has_no_passport_is_an_error_of_one_line(model, tokens, words):
    with pytest.raises(normscope.Explained, match=words) as e:
        normscope.norms(model, tokens)
    assert "\n" not in str(e.value)
