"""The Transformer against GPT-2, against formulas, and against nanoGPT's initialization."""

import math
from collections.abc import Iterator
from typing import get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from normscope.nn.arms import ARMS
from normscope.nn.model import MLP, Attention, Branch, Transformer
from normscope.nn.recipe import Model, Placement

V, T, C = 11, 6, 12
SIZES = Model.model_validate({"n_layer": 2, "n_head": 3, "n_embd": C, "block_size": T})
# one of each kind of layer, in every placement that it can have
KINDS = ["layernorm", "rmsnorm_affine", "manual_l2", "scalenorm", "batchnorm", "dyt", "none"]
CELLS: list[tuple[str, Placement]] = [
    (arm, placement)
    for arm in KINDS
    for placement in get_args(Placement)
    if ARMS[arm].norm.is_identity == (placement == "none")
]


def variant(**changes) -> Model:
    return Model.model_validate(SIZES.model_dump() | changes)


def transformer(arm: str, placement: Placement, **changes) -> Transformer:
    """In float64, every parameter random."""
    torch.manual_seed(0)
    model = Transformer(variant(**changes), ARMS[arm].norm, placement, V).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return model


def random_tokens() -> Tensor:
    return torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


# of modules and parameters
GPT2_NAMES = {
    "token_embedding": "wte",
    "position_embedding": "wpe",
    "final_norm": "ln_f",
    "blocks": "h",
    "attention.before": "ln_1",
    "attention.f.qkv": "attn.c_attn",
    "attention.f.proj": "attn.c_proj",
    "mlp.before": "ln_2",
    "mlp.f.fc": "mlp.c_fc",
    "mlp.f.proj": "mlp.c_proj",
    "gain": "weight",
}


def in_gpt2(model: Transformer) -> Iterator[tuple[Tensor, str]]:
    """Our parameters, and the name that each has in GPT-2."""
    for our_name, p in model.named_parameters():
        name = f"transformer.{our_name}"
        for ours, theirs in GPT2_NAMES.items():
            name = name.replace(ours, theirs)
        yield p, name


def transposed(their_name: str) -> bool:
    """transformers' Conv1D stores (in, out)."""
    return their_name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))


@pytest.fixture(scope="module")
def twins() -> tuple[Transformer, GPT2LMHeadModel]:
    """Our model and transformers' GPT-2 with the same random weights, in float64."""
    ours = transformer("layernorm", "pre", linear_bias=True)
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=V,
            n_positions=T,
            n_embd=C,
            n_layer=SIZES.n_layer,
            n_head=SIZES.n_head,
            activation_function="gelu",
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
    ).double()
    weights = dict(theirs.named_parameters())
    assert {name for _, name in in_gpt2(ours)} == set(weights)
    with torch.no_grad():
        for p, name in in_gpt2(ours):
            weights[name].copy_(p.T if transposed(name) else p)
    return ours, theirs


def test_logits_and_gradients_equal_gpt2s(twins):
    ours, theirs = twins
    x, y = random_tokens(), random_tokens().flip(1)
    logits = ours(x), theirs(x).logits
    torch.testing.assert_close(*logits, rtol=0, atol=1e-10)
    for each in logits:
        F.cross_entropy(each.flatten(0, 1), y.flatten()).backward()
    weights = dict(theirs.named_parameters())
    for p, name in in_gpt2(ours):
        grad = weights[name].grad
        torch.testing.assert_close(p.grad, grad.T if transposed(name) else grad, rtol=0, atol=1e-10)


def test_arms_of_one_seed_start_with_the_same_matrices():
    starts = []
    for arm, placement in CELLS:
        torch.manual_seed(7)
        model = Transformer(SIZES, ARMS[arm].norm, placement, V)
        starts.append([p for p in model.parameters() if p.dim() == 2])
    shrunk = [placement == "deepnorm" for _, placement in CELLS]
    assert any(shrunk)
    for start, is_shrunk in zip(starts, shrunk, strict=True):
        first = starts[shrunk.index(True)] if is_shrunk else starts[0]
        assert all(torch.equal(p, q) for p, q in zip(start, first, strict=True))


def logits_before_and_after_a_change_at(position: int, model: Transformer) -> tuple[Tensor, Tensor]:
    x = random_tokens()
    changed = x.clone()
    changed[:, position] = (changed[:, position] + 1) % V
    with torch.inference_mode():
        return model(x), model(changed)


@pytest.mark.parametrize("attention", ["softmax", "sigmoid"])
@pytest.mark.parametrize(("arm", "placement"), CELLS)
def test_a_later_token_changes_no_earlier_logit(arm, placement, attention):
    model = transformer(arm, placement, attention=attention).eval()
    before, after = logits_before_and_after_a_change_at(3, model)
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=1e-12)
    assert (before[:, 3:] - after[:, 3:]).abs().amax(-1).gt(1e-6).all()


def attend(layer: Attention, x: Tensor, kind: str, causal: bool) -> Tensor:
    """Attention query by query, head by head."""
    B, length, width = x.shape
    c = width // layer.n_head
    q, k, v = (x @ layer.qkv.weight.T).split(width, dim=-1)
    y = torch.zeros_like(x)
    for b in range(B):
        for head in (slice(h * c, h * c + c) for h in range(layer.n_head)):
            for i in range(length):
                n = i + 1 if causal else length
                scores = k[b, :n, head] @ q[b, i, head] / math.sqrt(c)
                if kind == "softmax":
                    weights = scores.exp() / scores.exp().sum()
                else:
                    weights = 1 / (1 + (-scores + math.log(n)).exp())
                y[b, i, head] = weights @ v[b, :n, head]
    return y @ layer.proj.weight.T


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("length", [T, T - 2])
def test_attention_equals_its_formula(kind, causal, length):
    torch.manual_seed(0)
    layer = Attention(variant(attention=kind, causal=causal)).double()
    x = torch.randn(2, length, C, dtype=torch.float64)
    torch.testing.assert_close(layer(x), attend(layer, x, kind, causal), rtol=0, atol=1e-12)


def compose(branch: Branch, placement: Placement, x: Tensor) -> Tensor:
    if placement == "pre":
        return x + branch.f(branch.before(x))
    if placement == "post":
        return branch.outside(x + branch.f(x))
    if placement == "peri":
        return x + branch.after(branch.f(branch.before(x)))
    return x + branch.f(x)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    ("arm", "placement"),
    [("layernorm", "pre"), ("layernorm", "post"), ("layernorm", "peri"), ("none", "none")],
)
def test_placements_equal_their_composition(arm, placement, tied):
    model = transformer(arm, placement, tied_head=tied)
    tokens = random_tokens()
    x = model.token_embedding.weight[tokens] + model.position_embedding.weight
    for block in model.blocks:
        for name in ("attention", "mlp"):
            branch = block.get_submodule(name)
            assert isinstance(branch, Branch)
            x = compose(branch, placement, x)
    if placement in ("pre", "peri"):
        x = model.final_norm(x)
    head = model.token_embedding if model.head is None else model.head
    torch.testing.assert_close(model(tokens), x @ head.weight.T, rtol=0, atol=1e-12)


def test_without_residual_a_branch_is_its_sublayer_alone():
    x = torch.randn(2, T, C, generator=torch.Generator().manual_seed(0))
    model = variant(residual=False)
    f = MLP(model)
    norm = ARMS["layernorm_plain"].norm
    normed = F.layer_norm(x, (C,))
    assert torch.equal(Branch(f, norm, "pre", model)(x), f(normed))
    assert torch.equal(Branch(f, norm, "post", model)(x), F.layer_norm(f(x), (C,)))
    assert torch.equal(Branch(f, norm, "peri", model)(x), F.layer_norm(f(normed), (C,)))
    assert torch.equal(Branch(f, norm, "none", model)(x), f(x))


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("arm", "placement"), [cell for cell in CELLS if cell[1] != "none"])
def test_under_autocast_norms_read_and_write_fp32(arm, placement, residual):
    further = {"embedding_norm": True} | ({} if placement == "hybrid" else {"qk_norm": "head"})
    model = Transformer(variant(residual=residual, **further), ARMS[arm].norm, placement, V)
    seen: list[torch.dtype] = []

    def keep(_: nn.Module, args: tuple[Tensor], output: Tensor) -> None:
        seen.extend((args[0].dtype, output.dtype))

    for name, module in model.named_modules():
        place = name.endswith(("before", "after", "outside", "_norm"))
        if place and not isinstance(module, nn.Identity):
            module.register_forward_hook(keep)
    with torch.autocast("cpu", torch.bfloat16):
        model(random_tokens())
    assert set(seen) == {torch.float32}


def test_the_embedding_scale_equals_larger_embeddings():
    """Of tokens and positions; the scale starts at sqrt(d)."""
    scaled = transformer("dyt_scaled", "pre", tied_head=False)
    plain = transformer("dyt_scaled", "pre", tied_head=False)
    with torch.no_grad():
        scaled.get_parameter("embedding_scale.factor").fill_(math.sqrt(C))
        plain.get_parameter("embedding_scale.factor").fill_(1)
        for embedding in (plain.token_embedding, plain.position_embedding):
            embedding.weight.mul_(math.sqrt(C))
    torch.testing.assert_close(scaled(random_tokens()), plain(random_tokens()))
    started = Transformer(SIZES, ARMS["dyt_scaled"].norm, "pre", V)
    start = started.get_parameter("embedding_scale.factor").item()
    assert start == pytest.approx(math.sqrt(C))


def test_the_logit_scale_is_a_temperature():
    plain, scaled = transformer("manual_l2", "pre"), transformer("manual_l2_logits", "pre")
    missing = scaled.load_state_dict(plain.state_dict(), strict=False)
    assert missing.missing_keys == ["logit_scale.factor"]
    nn.init.constant_(scaled.get_parameter("logit_scale.factor"), 3.0)
    torch.testing.assert_close(scaled(random_tokens()), 3 * plain(random_tokens()))
