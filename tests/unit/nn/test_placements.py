"""Placements and further norms against their papers' equations and transformers' attention."""

import math
import re
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from pydantic import ValidationError
from recipes import recipe
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.olmo2.configuration_olmo2 import Olmo2Config
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from normscope.nn.arms import ARMS
from normscope.nn.attention import Attention
from normscope.nn.initialization import deepnorm_beta
from normscope.nn.model import Transformer
from normscope.nn.norms import PointwiseNorm
from normscope.nn.recipe import (
    Model,
    NormPlace,
    Placement,
    QKNorm,
    in_branches,
    norm_places,
)

V, T, C, H, L = 11, 6, 12, 3, 8  # Mix-LN has two blocks of eight in post-norm
Parameters = dict[str, Tensor]


def settings(**changes) -> Model:
    sizes = {"n_layer": L, "n_head": H, "n_embd": C, "block_size": T}
    return Model.model_validate(sizes | changes)


def transformer(placement: Placement, arm: str = "layernorm", **changes) -> Transformer:
    """In float64, every parameter random."""
    torch.manual_seed(0)
    model = Transformer(settings(**changes), ARMS[arm].norm, placement, V).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return model


def tokens() -> Tensor:
    return torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


class ByHand:
    """A Transformer with LayerNorm in the functions of ``torch.nn.functional``."""

    def __init__(self, model: nn.Module) -> None:
        self.p: Parameters = dict(model.named_parameters())

    def norm(self, at: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.p[f"{at}.gain"], self.p[f"{at}.bias"])

    def attention(self, at: str, x: Tensor, *, norms_qkv: bool = False) -> Tensor:
        parts = F.linear(x, self.p[f"{at}.f.qkv.weight"]).split(C, dim=-1)
        heads = [part.unflatten(-1, (H, C // H)) for part in parts]
        if norms_qkv:
            heads = [self.norm(f"{at}.f.{n}_norm", h) for n, h in zip("qkv", heads, strict=True)]
        q, k, v = (head.transpose(1, 2) for head in heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        return F.linear(y, self.p[f"{at}.f.proj.weight"])

    def mlp(self, at: str, x: Tensor) -> Tensor:
        hidden = F.gelu(F.linear(x, self.p[f"{at}.f.fc.weight"]))
        return F.linear(hidden, self.p[f"{at}.f.proj.weight"])

    def pre(self, x: Tensor, block: int, *, scale: float = 1.0) -> Tensor:
        a, m = f"blocks.{block - 1}.attention", f"blocks.{block - 1}.mlp"
        x = x + self.attention(a, scale * self.norm(f"{a}.before", x))
        return x + self.mlp(m, scale * self.norm(f"{m}.before", x))

    def post(self, x: Tensor, block: int, *, alpha: float = 1.0) -> Tensor:
        a, m = f"blocks.{block - 1}.attention", f"blocks.{block - 1}.mlp"
        x = self.norm(f"{a}.outside", alpha * x + self.attention(a, x))
        return self.norm(f"{m}.outside", alpha * x + self.mlp(m, x))

    def lns(self, x: Tensor, block: int) -> Tensor:
        return self.pre(x, block, scale=1 / math.sqrt(block))

    def mix(self, x: Tensor, block: int) -> Tensor:
        return self.post(x, block) if block <= 2 else self.pre(x, block)

    def deepnorm(self, x: Tensor, block: int) -> Tensor:
        return self.post(x, block, alpha=2.0)  # (2 * 8)^(1/4)

    def hybrid(self, x: Tensor, block: int) -> Tensor:
        """The residual connection of the MLP begins after its norm."""
        a, m = f"blocks.{block - 1}.attention", f"blocks.{block - 1}.mlp"
        y = self.norm(f"{a}.outside", x + self.attention(a, x, norms_qkv=True))
        return y + self.mlp(m, y)

    def embedding(self) -> Tensor:
        return self.p["token_embedding.weight"][tokens()] + self.p["position_embedding.weight"]

    def logits(self, x: Tensor, block: Callable[[Tensor, int], Tensor]) -> Tensor:
        for i in range(L):
            x = block(x, i + 1)
        x = self.norm("final_norm", x) if "final_norm.gain" in self.p else x
        return x @ self.p["token_embedding.weight"].T


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("placement", ["lns", "mix", "hybrid", "deepnorm"])
def test_a_placement_equals_its_equations(placement):
    model = transformer(placement)
    by_hand = ByHand(model)
    assert ("final_norm.gain" in by_hand.p) == (placement != "deepnorm")
    logits = by_hand.logits(by_hand.embedding(), getattr(by_hand, placement))
    assert_same(model(tokens()), logits)


def test_the_embedding_has_a_norm_and_the_head_none_if_the_model_says_so():
    model = transformer("pre", embedding_norm=True, final_norm=False)
    by_hand = ByHand(model)
    x = by_hand.norm("embedding_norm", by_hand.embedding())
    assert "final_norm.gain" not in by_hand.p
    assert_same(model(tokens()), by_hand.logits(x, by_hand.pre))


@pytest.mark.parametrize(("n_layer", "post"), [(1, 1), (3, 1), (4, 1), (12, 3), (48, 12)])
def test_a_quarter_of_mix_ln_is_post_norm(n_layer, post):
    places = [in_branches("mix", block + 1, n_layer) for block in range(n_layer)]
    assert places == [("post", "post")] * post + [("pre", "pre")] * (n_layer - post)


@pytest.mark.parametrize("init", ["gpt2", "gpt2_flat", "xavier"])
@pytest.mark.parametrize("feedback", ["backprop", "fa"])
def test_deepnorm_shrinks_all_matrices_of_blocks_but_queries_and_keys(init, feedback):
    assert deepnorm_beta(L) == pytest.approx(1 / math.sqrt(8))  # (8 * 8)^(-1/4)
    starts = []
    for placement in ("post", "deepnorm"):
        torch.manual_seed(2)
        model = settings(init=init, feedback=feedback, tied_head=False)
        starts.append(Transformer(model, ARMS["layernorm"].norm, placement, V).state_dict())
    post, deep = starts
    assert post.keys() == deep.keys()
    for name, weight in post.items():
        factor = torch.ones(len(weight))
        if "blocks." in name and weight.dim() == 2:
            factor[2 * C if "qkv" in name else 0 :] /= math.sqrt(8)
        torch.testing.assert_close(deep[name], factor.view(-1, *[1] * (weight.dim() - 1)) * weight)


LLAMA = {
    "hidden_size": C,
    "num_attention_heads": H,
    "num_key_value_heads": H,
    "head_dim": C // H,
    "rms_norm_eps": 1e-5,
    "attn_implementation": "eager",
}


@pytest.mark.parametrize(
    ("over", "theirs"),
    [
        ("head", Qwen3Attention(Qwen3Config(**LLAMA), 0)),
        ("all", Olmo2Attention(Olmo2Config(**LLAMA), 0)),
    ],
    ids=["Qwen3", "OLMo 2"],
)
def test_normalized_queries_and_keys_are_transformers(over: QKNorm, theirs: nn.Module):
    """Without rotation: its cosines are 1 and its sines 0. Their norm computes in fp32."""
    torch.manual_seed(4)
    ours = Attention(settings(qk_norm=over), ARMS["rmsnorm"].norm)
    for p in ours.parameters():
        nn.init.normal_(p, std=0.5)
    q, k, v = ours.qkv.weight.detach().chunk(3)
    weights = {"q_proj.weight": q, "k_proj.weight": k, "v_proj.weight": v}
    weights |= {"o_proj.weight": ours.proj.weight}
    for name in ("q_norm", "k_norm"):
        weights[f"{name}.weight"] = ours.get_parameter(f"{name}.gain")
    theirs.load_state_dict(weights)
    x = torch.randn(2, T, C)
    mask = torch.full((T, T), -math.inf).triu(1)[None, None]
    angles = torch.ones(1, T, C // H), torch.zeros(1, T, C // H)
    torch.testing.assert_close(ours(x), theirs(x, angles, mask)[0], rtol=1e-5, atol=1e-5)


PLACES = {  # the layers of each place, in the first block for all
    "before_attention": {"blocks.0.attention.before"},
    "before_mlp": {"blocks.0.mlp.before"},
    "after": {"blocks.0.attention.after", "blocks.0.mlp.after"},
    "outside": {"blocks.0.attention.outside", "blocks.0.mlp.outside"},
    "qkv": {f"blocks.0.attention.f.{part}_norm" for part in "qkv"},
    "embedding": {"embedding_norm"},
    "final": {"final_norm"},
}


@pytest.mark.parametrize("n_layer", [1, 5])
@pytest.mark.parametrize("placement", get_args(Placement))
@pytest.mark.parametrize(
    "others", [{}, {"embedding_norm": True}, {"qk_norm": "head"}, {"final_norm": False}]
)
def test_alpha_may_differ_by_place(n_layer, placement, others):
    """Every norm has the alpha of its place, and every place that is said to be there is."""
    model = settings(n_layer=n_layer, **others)
    known = norm_places(placement, model)
    assert norm_places(placement, settings(n_layer=10**15, **others)) >= known  # at once
    alphas = {place: 2.0 + i for i, place in enumerate(get_args(NormPlace)) if place in known}
    norm = ARMS["dyt"].norm.model_copy(update={"alpha_at": alphas})
    found = [
        (re.sub(r"blocks.\d", "blocks.0", name), layer.alpha.item())
        for name, layer in Transformer(model, norm, placement, V).named_modules()
        if isinstance(layer, PointwiseNorm)
    ]
    place_of = {name: place for place, names in PLACES.items() for name in names}
    assert all(alphas[place_of[name]] == alpha for name, alpha in found)
    assert {place_of[name] for name, _ in found} == known


REFUSED = [
    (("none", "none", {"final_norm": False}), "placement none has no final norm to leave out"),
    (("layernorm", "deepnorm", {"final_norm": False}), "placement deepnorm has no final norm"),
    (("layernorm", "deepnorm", {"sigma_penalty": 0.1}), "deepnorm has no final norm to hold"),
    (("layernorm", "pre", {"final_norm": False, "sigma_penalty": 0.1}), "final_norm false has no"),
    (
        ("layernorm", "pre", {"final_norm": False, "surrogates_in": "blocks"}),
        "surrogates_in blocks: final_norm false has no norm outside the blocks",
    ),
    (("layernorm", "hybrid", {"qk_norm": "all"}), "hybrid normalizes queries and keys"),
    (("none", "none", {"qk_norm": "head"}), "qk_norm and embedding_norm need a norm that is not"),
    (("none", "none", {"embedding_norm": True}), "qk_norm and embedding_norm need a norm"),
    (
        ("dyt_attention", "post", {}),
        "alpha_at: placement post has no norm before_attention; .* outside",
    ),
    (("layernorm", "pre", {"momentum": 0.9}), "momentum has no effect with optimizer adamw"),
]


@pytest.mark.parametrize(("stack", "message"), REFUSED)
def test_what_has_no_effect_is_refused(stack, message):
    arm, placement, changes = stack
    with pytest.raises(ValidationError, match=message):
        recipe(arm, placement, **changes)


def test_fields_that_were_added_later_are_not_in_recipes_of_their_defaults():
    """What older recipes are, to the byte, and that a recipe comes back."""
    old, new = recipe(), recipe("dyt_attention", qk_norm="head", optimizer="sgd", momentum=0.5)
    added = {
        "norm": {"custom", "alpha_at"},
        "model": {"qk_norm", "embedding_norm", "final_norm"},
        "training": {"optimizer", "momentum", "train_tokens"},
    }
    for part, fields in added.items():
        dumped, kept = getattr(old, part).model_dump(), getattr(new, part).model_dump()
        assert set(type(getattr(old, part)).model_fields) - set(dumped) == fields
        changed = fields & {"alpha_at", "qk_norm", "optimizer", "momentum"}
        assert set(kept) - set(dumped) == changed
    assert type(new).model_validate_json(new.model_dump_json()) == new
