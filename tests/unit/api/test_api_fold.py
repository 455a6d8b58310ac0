"""``fold``: the same logits in float64 with plain norms, or the reason for each that is not."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from pretrained_models import random_model
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.pytorch_utils import Conv1D

import normscope
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model, Placement

TOKENS = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(0))
V, T = 11, 6
ADDS = "its output goes to add in"
TIED = "weight is tied: embedding in"


def exact_rms(module: Any, x: Tensor) -> Tensor:
    """What an RMSNorm of transformers computes, without its rounding to float32."""
    eps = getattr(module, "variance_epsilon", None) or module.eps
    gain = module.weight + ("Gemma" in type(module).__name__)
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain


@torch.no_grad()
def logits(model: nn.Module, tokens: Tensor) -> Tensor:
    """The logits in float64, of a model whose other operations are in float64."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = partial(exact_rms, module)
    y = model(tokens)
    return y if isinstance(y, Tensor) else y[0] if isinstance(y, tuple) else y.logits


def change(model: nn.Module, other: nn.Module, tokens: Tensor = TOKENS) -> float:
    before, after = logits(model, tokens), logits(other, tokens)
    return float((after - before).abs().max() / before.abs().max())


def problems(table: Any) -> dict[str, str]:
    """The reasons for norms that are not folded, by their last name."""
    rows = table[~table["folded"]].to_dict("records")
    return {row["norm"].rpartition(".")[2]: row["problem"] for row in rows}


# what does not fold, and whether a linear layer gets a bias
LANGUAGE_MODELS: dict[str, tuple[dict[str, str], bool]] = {
    "gpt2": ({"ln_f": f"lm_head.{TIED} transformer.wte"}, False),
    "gpt2_untied": ({}, True),
    "gpt_neox": ({}, True),
    "llama": ({}, False),
    "llama_tied": ({"norm": f"lm_head.{TIED} model.embed_tokens"}, False),
    "gemma2": (
        {
            "norm": f"lm_head.{TIED} model.embed_tokens",
            "post_attention_layernorm": f"{ADDS} model.layers.3",
            "post_feedforward_layernorm": f"{ADDS} model.layers.3",
        },
        False,
    ),
    "opt_post": (
        {
            "self_attn_layer_norm": f"{ADDS} model.decoder.layers.3",
            "final_layer_norm": f"{ADDS} model.decoder.layers.3",  # the last goes to project_out
        },
        True,
    ),
    "qwen3": (
        dict.fromkeys(["q_norm", "k_norm"], "goes to mul in model.layers.3.self_attn"),
        False,
    ),
}


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_models_of_transformers_fold_or_say_why_not(kind):
    left, adds_bias = LANGUAGE_MODELS[kind]
    model = random_model(kind).double()
    state = copy.deepcopy(model.state_dict())
    made, table, error = normscope.fold(model)
    assert error < 1e-10
    assert change(model, made) < 1e-10
    assert all(torch.equal(t, state[name]) for name, t in model.state_dict().items())
    found = problems(table)
    assert found.keys() == left.keys()
    assert all(words in found[name] for name, words in left.items())
    assert table["adds_bias"].any() == adds_bias
    for name in table["norm"][table["folded"]]:
        norm: Any = made.get_submodule(name)
        gain = norm.weight + ("Gemma" in type(norm).__name__)
        assert torch.equal(gain, torch.ones_like(gain))
        assert not getattr(norm, "bias", gain * 0).any()
    again = normscope.fold(made).table
    assert again["into"].str.len().sum() == 0  # there is nothing left to fold


def test_the_weights_are_those_of_the_definition_and_keep_their_type():
    model = random_model("llama").to(torch.bfloat16)
    made = normscope.fold(model).model
    before, after = model.state_dict(), made.state_dict()
    assert {t.dtype for t in after.values()} == {torch.bfloat16}
    layer = "model.layers.1"
    for norm, linear in (
        ("input_layernorm", "self_attn.k_proj"),
        ("post_attention_layernorm", "mlp.up_proj"),
    ):
        weight, gain = before[f"{layer}.{linear}.weight"], before[f"{layer}.{norm}.weight"]
        expected = (weight.double() * gain.double()).to(torch.bfloat16)
        assert torch.equal(after[f"{layer}.{linear}.weight"], expected)
    untouched = f"{layer}.mlp.down_proj.weight"
    assert torch.equal(after[untouched], before[untouched])


def transformer(arm: str, placement: Placement, **choices: Any) -> Transformer:
    """A model in float64 whose parameters are all random."""
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": T} | choices
    model = Transformer(Model.model_validate(sizes), ARMS[arm].norm, placement, V)
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return model.eval().double()


@pytest.mark.parametrize(
    ("arm", "placement", "choices", "left"),
    [
        ("layernorm", "pre", {}, {"final_norm": f"token_embedding.{TIED} token_embedding"}),
        ("layernorm", "pre", {"tied_head": False, "feedback": "fa"}, {}),
        ("manual_l2_affine", "pre", {"tied_head": False, "linear_bias": True}, {}),
        ("scalenorm_gain", "lns", {"tied_head": False}, {}),
        ("layernorm", "lns", {"tied_head": False}, {}),
        ("rmsnorm", "post", {}, {"outside": f"{ADDS} blocks.1.mlp"}),
    ],
)
def test_models_of_the_project_fold_or_say_why_not(arm, placement, choices, left):
    model = transformer(arm, placement, **choices)
    made, table, error = normscope.fold(model)
    tokens = torch.randint(V, (3, T), generator=torch.Generator().manual_seed(1))
    assert max(error, change(model, made, tokens)) < 1e-10
    found = problems(table)
    if placement == "post":
        # the last norm goes to a head that is tied, the others are added to the next sublayer
        assert table["problem"].str.contains(TIED).tolist() == [False, False, False, True]
        found["outside"] = table["problem"].iloc[2]
    assert found.keys() == left.keys()
    assert all(words in found[name] for name, words in left.items())


def test_frozen_norms_disappear():
    model = random_model("gpt_neox").double()
    removed = normscope.remove(model, TOKENS)
    made, table, error = normscope.fold(removed)
    assert table["folded"].all()
    assert set(table["kind"]) == {"FrozenNorm"}
    assert max(error, change(removed, made)) < 1e-10
    kinds = {type(module).__name__ for module in made.modules()}
    assert not [kind for kind in kinds if "Norm" in kind]
    apart = normscope.remove(model, TOKENS, ["gpt_neox.final_layer_norm"], first_apart=True)
    assert "first position" in normscope.fold(apart).table["problem"].iloc[-1]


class Read(nn.Module):
    """A language model of one norm whose output is read in a way.

    It has the head and the table only where the way names them.
    """

    def __init__(self, way: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(V, 4), nn.Linear(4, V, bias=False)
        self.norm = nn.LayerNorm(4)
        self.table = nn.Parameter(torch.randn(V, 4))
        for p in self.parameters():
            nn.init.normal_(p)
        for name in {"head", "table"} - {*way.__code__.co_names}:  # pyright: ignore
            delattr(self, name)
        self.way = way

    def forward(self, tokens: Tensor) -> Tensor:
        return self.way(self, self.norm(self.embedding(tokens)))


def by_matrix(model: Any, y: Tensor) -> Tensor:
    """As Falcon multiplies."""
    z = y @ model.head.weight.T
    return z if model.head.bias is None else z + model.head.bias


def in_place(model: Any, y: Tensor) -> Tensor:
    y += 1
    return model.head(y)


def by_numpy(model: Any, y: Tensor) -> Tensor:
    return model.head(y) + torch.from_numpy(y.detach().numpy().max(-1, keepdims=True))


WAYS: dict[str, tuple[Callable[[Any, Tensor], Any], str | None]] = {
    "views": (lambda m, y: m.head(y[:, :].reshape(-1, 4)).view(*y.shape[:2], V), None),
    "constants": (lambda m, y: m.head(2 * y / 3), None),
    "a transposed matrix": (by_matrix, None),
    "in place": (in_place, "goes to add in the model"),
    "twice": (lambda m, y: m.head(y) + y.sum(-1, keepdim=True), "goes to sum in the model"),
    "a computed matrix": (lambda m, y: F.linear(y, m.table * 2), "is not a parameter"),
    "a matrix of two": (lambda m, y: m.head(y) + m.head(m.table[:1]), "head.weight is tied: lin"),
    "no reader": (lambda m, y: m.head(m.embedding.weight[:4][None]), "not go to a linear layer"),
    "the caller": (lambda m, y: (m.head(y), y[..., :]), "goes to what the model returns"),
    "no bias": (lambda m, y: F.linear(y, m.table), "a Read, cannot take its bias"),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_that_reads_a_norm_decides(way):
    read, words = WAYS[way]
    model = Read(read).double()
    tokens = torch.arange(4)[None]
    made, table, _ = normscope.fold(model, tokens)
    assert change(model, made, tokens) < 1e-10
    if words is None:
        assert table["problem"].isna().all()
        assert table["into"].tolist() == [["head"]]
    else:
        assert words in table["problem"].item()


class Valued(nn.Module):
    """A language model with a value head, which its forward method runs, or only its method."""

    def __init__(self, in_forward: bool, head: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.model, self.value_head = random_model("gpt2_untied"), head()
        self.in_forward = in_forward

    def values(self, tokens: Tensor) -> Tensor:
        return self.value_head(self.model.transformer(tokens).last_hidden_state)

    def forward(self, tokens: Tensor) -> Any:
        logits = self.model(tokens).logits
        return (logits, self.values(tokens)) if self.in_forward else logits


HEADS: dict[str, Callable[[], nn.Module]] = {
    "a linear layer": lambda: nn.Linear(32, 1),
    "Conv1D": lambda: Conv1D(1, 32),
    "another norm": lambda: nn.RMSNorm(32),
}


@pytest.mark.parametrize("head", HEADS)
def test_a_reader_that_a_call_does_not_run_is_named_and_the_norm_stays(head):
    model = Valued(in_forward=False, head=HEADS[head]).double()
    made, table, _ = normscope.fold(model, TOKENS)
    others = table[table["norm"] != "value_head"]
    assert others["problem"].str.contains(r"value_head\.\S+ may read its output").all()
    assert all(torch.equal(t, made.state_dict()[n]) for n, t in model.state_dict().items())


def test_a_reader_that_cannot_be_seen_is_an_error_that_names_the_norm():
    with pytest.raises(normscope.Explained, match=r"^norm cannot be folded: a logit changes by"):
        normscope.fold(Read(by_numpy).double())


@pytest.mark.parametrize(
    ("model", "tokens", "words"),
    [
        (3, None, "model is of type int"),
        (nn.Sequential(nn.Embedding(3, 3), nn.Linear(3, 3)), None, "Sequential has no LayerNorm"),
        (nn.Sequential(nn.LayerNorm(3)), None, "no torch.nn.Embedding"),
        (nn.Sequential(nn.Embedding(3, 3), nn.LayerNorm(4)), None, "Sequential fails in torch.flo"),
        (random_model("gpt2"), [1], "tokens is of type list"),
        (random_model("gpt2"), torch.ones(2, 2), "give token numbers"),
        (random_model("gpt2"), torch.full((1, 2), 400), "up to 400"),
    ],
)
def test_what_cannot_be_folded_is_an_error_of_one_line(model, tokens, words):
    with pytest.raises(normscope.Explained, match=words) as e:
        normscope.fold(model, tokens)
    assert "\n" not in str(e.value)
