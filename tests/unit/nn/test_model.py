"""The model, with dropout and the penalty on activations."""

import math
from collections.abc import Iterator
from typing import get_args

import pytest
import torch
from pydantic import ValidationError
from recipes import recipe
from torch import Generator, Tensor, nn
from torch.func import vmap
from torch.nn import functional as F
from trainings import problem_of, train
from transformers import GPT2Config, GPT2LMHeadModel

from normscope.nn.arms import ARMS
from normscope.nn.dropout import Dropout, drawing
from normscope.nn.model import MLP, Attention, Branch, Transformer, cross_entropy
from normscope.nn.penalty import add_penalty
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


def is_transposed(their_name: str) -> bool:
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
            weights[name].copy_(p.T if is_transposed(name) else p)
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
        expected = grad.T if is_transposed(name) else grad
        torch.testing.assert_close(p.grad, expected, rtol=0, atol=1e-10)


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


SEEDS = [1, 2, 3]


def generators() -> list[Generator]:
    return [Generator().manual_seed(seed) for seed in SEEDS]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_a_fraction_p_and_rescales_the_rest(p):
    n, layer = 200_000, Dropout(p)
    x = torch.full((n,), 3.0, requires_grad=True)
    with drawing(generators()[:1]):
        y = layer(x)
        again = layer(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 3 / (1 - p)))
    error = math.sqrt(p * (1 - p) / n)  # of a share among n
    assert float(kept.float().mean()) == pytest.approx(1 - p, abs=5 * error)
    assert float(y.detach().mean()) == pytest.approx(3, abs=5 * 3 * error / (1 - p))
    both = float((kept & (again != 0)).float().mean())  # two masks are independent
    assert both == pytest.approx((1 - p) ** 2, abs=5 * error)
    (dx,) = torch.autograd.grad(y, x, torch.arange(float(n)))
    torch.testing.assert_close(dx, torch.arange(float(n)) * y.detach() / 3)


def masks(layer: Dropout, x: Tensor) -> Tensor:
    """Of two layers one after the other, as a model has them."""
    return torch.stack([layer(x), layer(x.T).T])


def test_stacked_models_have_the_masks_that_they_draw_alone():
    layer, x = Dropout(0.3), torch.ones(3, 4, 50)
    with drawing(generators()):
        stacked = vmap(lambda part: masks(layer, part))(x)
    after = []
    for i, generator in enumerate(generators()):
        with drawing([generator]):
            assert torch.equal(masks(layer, x[i]), stacked[i])
            after.append(layer(x[i]))
    assert not any(torch.equal(stacked[i], stacked[j]) for i in range(3) for j in range(i))
    assert not any(torch.equal(after[i], stacked[i, 0]) for i in range(3))


def test_gradients_of_a_stack_are_masked():
    layer, x = Dropout(0.3), torch.randn(3, 4, 5, requires_grad=True)
    with drawing(generators()):
        y = vmap(layer)(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(dx, torch.where(y == 0, 0.0, 1 / 0.7))


WEIGHT = 0.3


def normal(*shape: int) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return 2 * torch.randn(*shape, generator=g, dtype=torch.float64) + 1


def penalty(x: Tensor) -> Tensor:
    """Written out: a mean over tokens."""
    return WEIGHT * x.var(-1, correction=0).mean()


def test_the_penalty_adds_its_gradient_and_returns_its_input():
    x, dy = normal(2, 3, 5).requires_grad_(), normal(2, 3, 5)
    y = add_penalty(x, WEIGHT)
    assert torch.equal(y, x)
    (ours,) = torch.autograd.grad(y, x, dy)
    (added,) = torch.autograd.grad(penalty(x), x)
    torch.testing.assert_close(ours, dy + added, rtol=0, atol=1e-14)


def test_a_model_in_training_descends_the_loss_with_the_penalty_of_its_final_norm():
    stack = recipe("layernorm", "pre", sigma_penalty=WEIGHT)
    torch.manual_seed(0)
    model = Transformer(stack.model, stack.norm, "pre", 6).double()
    x = torch.randint(6, (3, 8), generator=torch.Generator().manual_seed(1))
    seen: list[Tensor] = []
    model.final_norm.register_forward_hook(lambda _, args, __: seen.append(args[0]))
    parameters = list(model.parameters())
    ours = torch.autograd.grad(cross_entropy(model(x), x.flip(1)), parameters)
    model.eval()
    loss = cross_entropy(model(x), x.flip(1))
    expected = torch.autograd.grad(loss + penalty(seen[-1]), parameters)
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)  # the loss is fp32


@pytest.mark.parametrize("placement", ["post", "none"])
def test_a_penalty_without_a_final_norm_is_an_error(placement):
    arm = "none" if placement == "none" else "layernorm"
    with pytest.raises(ValidationError, match="sigma_penalty"):
        recipe(arm, placement, sigma_penalty=WEIGHT)


def test_training_records_scales_on_the_batch_of_the_step():
    """At powers of two too; against the formulas on what hooks see in a forward pass."""
    stack = recipe(records_scales=True, seeds=[3, 4], sigma_penalty=WEIGHT, dropout=0.5, n_layer=2)
    problem = problem_of(stack)
    steps = [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    for learner in train(stack).learners:
        assert [row["step"] for row in learner.curve if "sigma" in row] == steps
        g = torch.Generator().manual_seed(learner.seed)
        *_, (tokens, _) = (problem.draw(g) for _ in range(stack.training.steps))
        seen: dict[str, Tensor] = {}
        for name in ("blocks.1", "final_norm"):
            learner.model.get_submodule(name).register_forward_hook(
                lambda _, args, __, name=name, seen=seen: seen.update({name: args[0]})
            )
        logits = learner.model.eval()(tokens)
        before, after = seen["blocks.1"], seen["final_norm"]
        length = [x.square().sum(-1).log() / 2 for x in (before, after)]
        expected = {
            "sigma": after.var(-1, correction=0).sqrt().mean(),
            "last_gain": (length[1] - length[0])[:, 1:].mean().exp(),
            "logit_sd": logits.var(-1, correction=0).sqrt().mean(),
        }
        for name, value in expected.items():
            assert learner.curve[-1][name] == pytest.approx(value.item(), rel=1e-5), name
