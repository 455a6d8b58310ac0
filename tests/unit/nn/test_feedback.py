"""Feedback alignment, fa and dfa, against autograd, against hooks on backprop, and by hand."""

from typing import get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.nn.feedback import FeedbackLinear
from normscope.nn.model import Transformer, cross_entropy
from normscope.nn.recipe import Feedback, Model, Placement

V, T, C = 11, 6, 12
LINEAR = ("attention.f.qkv", "attention.f.proj", "mlp.f.fc", "mlp.f.proj")
CELLS: list[tuple[str, Placement]] = [
    ("layernorm", "pre"),
    ("rmsnorm", "post"),
    ("scalenorm", "peri"),
    ("none", "none"),
]
ATTENTION = pytest.mark.parametrize("attention", ["softmax", "sigmoid"])
BIAS = pytest.mark.parametrize("linear_bias", [False, True], ids=["unbiased", "biased"])
CELL = pytest.mark.parametrize(("arm", "placement"), CELLS)
RANDOM = pytest.mark.parametrize("feedback", ["fa", "dfa"])
Gradients = dict[str, Tensor]


def start(
    feedback: Feedback, arm: str = "layernorm", placement: Placement = "pre", **changes
) -> Transformer:
    """A model as training finds it."""
    sizes = {"n_layer": 3, "n_head": 3, "n_embd": C, "block_size": T, "tied_head": False}
    model = Model.model_validate(sizes | {"feedback": feedback} | changes)
    return Transformer(model, ARMS[arm].norm, placement, V)


def transformer(feedback: Feedback, *args, **changes) -> Transformer:
    """In float64, with large weights and feedback: the weights are the same for every feedback."""
    torch.manual_seed(0)
    model = start(feedback, *args, **changes).double()
    g = torch.Generator().manual_seed(1)
    for p in model.parameters():
        nn.init.normal_(p, std=0.4, generator=g)
    for name, b in model.named_buffers():
        if "feedback" in name:
            nn.init.normal_(b, std=0.4, generator=g)
    return model


def random_tokens(seed: int = 1) -> Tensor:
    return torch.randint(V, (2, T), generator=torch.Generator().manual_seed(seed))


def loss_of(model: Transformer, seed: int = 1) -> Tensor:
    """In the precision of the model; half of the targets count."""
    targets = random_tokens(seed + 1)
    targets[:, ::2] = -100
    return F.cross_entropy(model(random_tokens(seed)).flatten(0, 1), targets.flatten())


def gradients(model: Transformer, loss: Tensor, **options) -> Gradients:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, **options), strict=True))


def off(ours: Tensor, theirs: Tensor) -> float:
    """Relative Frobenius error."""
    return float((ours.double() - theirs.double()).norm() / theirs.double().norm())


def assert_same(ours: Gradients, theirs: Gradients, tolerance: float = 1e-12) -> None:
    """Compare to a relative error; gradients that are zero in theory, relative to the largest."""
    assert ours.keys() == theirs.keys()
    largest = max(float(g.norm()) for g in theirs.values())
    for name, g in theirs.items():
        assert ours[name].dtype == g.dtype
        assert float((ours[name] - g).norm()) <= tolerance * max(float(g.norm()), largest / 100)


@ATTENTION
@BIAS
@CELL
def test_fa_is_backprop_through_feedback_matrices(arm, placement, attention, linear_bias):
    options = {"attention": attention, "linear_bias": linear_bias}
    fa, exact = (transformer(f, arm, placement, **options) for f in ("fa", "backprop"))
    plain = gradients(exact, loss_of(exact))
    for name, layer in fa.named_modules():
        if isinstance(layer, FeedbackLinear):
            exact.get_submodule(name).register_full_backward_hook(
                lambda _, __, dy, b=layer.feedback: (torch.einsum("oi,bto->bti", b, dy[0]),)
            )
    ours = gradients(fa, loss_of(fa))
    assert_same(ours, gradients(exact, loss_of(exact)))
    for name in plain:
        same = off(ours[name], plain[name]) < 1e-9
        assert same == (name == "head.weight"), name


@ATTENTION
@BIAS
@CELL
def test_dfa_delivers_the_error_at_the_logits_to_each_block_through_its_matrix(
    arm, placement, attention, linear_bias
):
    model = transformer("dfa", arm, placement, attention=attention, linear_bias=linear_bias)
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Tensor], y: Tensor) -> None:
        y.retain_grad()
        inputs.append(args[0].detach())
        outputs.append(y)

    for block in model.blocks:
        block.register_forward_hook(keep)
    targets = random_tokens(2)
    logits = model(random_tokens(1))
    F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    error = (logits.detach().softmax(-1) - F.one_hot(targets, V)) / targets.numel()
    assert len(model.blocks) == len(inputs) == 3
    into_first = torch.empty(0)
    for i, block in reversed(list(enumerate(model.blocks))):
        delivered = torch.einsum("cv,btv->btc", model.direct_feedback[i], error)
        torch.testing.assert_close(outputs[i].grad, delivered, rtol=0, atol=1e-12)
        names, parameters = zip(*block.named_parameters(), strict=True)
        x = inputs[i].requires_grad_()
        into_first, *exact = torch.autograd.grad(block(x), [x, *parameters], delivered)
        ours = {n: p.grad for n, p in zip(names, parameters, strict=True) if p.grad is not None}
        assert_same(ours, dict(zip(names, exact, strict=True)))
    positions = model.position_embedding.weight.grad
    torch.testing.assert_close(positions, into_first.sum(0), rtol=0, atol=1e-12)
    vectors = torch.zeros(V, C, dtype=torch.float64)
    vectors.index_add_(0, random_tokens(1).flatten(), into_first.flatten(0, 1))
    torch.testing.assert_close(model.token_embedding.weight.grad, vectors, rtol=0, atol=1e-12)


@BIAS
def test_feedback_is_a_buffer(linear_bias):
    fa, dfa, exact = (start(f, linear_bias=linear_bias) for f in ("fa", "dfa", "backprop"))
    places = [f"blocks.{i}.{layer}" for i in range(3) for layer in LINEAR]
    weights = exact.state_dict()
    assert fa.state_dict().keys() - weights.keys() == {
        f"{place}.feedback" for place in [*places, "head"]
    }
    assert dfa.state_dict().keys() - weights.keys() == {"direct_feedback"}
    assert dfa.direct_feedback.shape == (3, C, V)
    for model in (fa, dfa):
        assert [n for n, _ in model.named_parameters()] == [n for n, _ in exact.named_parameters()]


def test_dfa_matrices_have_the_deviation_of_the_head_and_are_independent():
    torch.manual_seed(0)
    model = start("dfa", n_embd=384)
    assert model.head is not None
    n = model.head.weight.numel()
    for i, b in enumerate(model.direct_feedback):
        assert float(b.std() / model.head.weight.detach().std()) == pytest.approx(1, abs=5 / n**0.5)
        others = [*model.direct_feedback[:i], model.head.weight.detach().T]
        for other in others:
            pair = torch.stack([b.flatten(), other.flatten()])
            assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / n**0.5


@RANDOM
@BIAS
def test_gradients_under_autocast_are_near_those_of_fp32(feedback, linear_bias):
    """bf16 keeps 8 bits: a few roundings add up to some percent."""
    torch.manual_seed(0)
    model = start(feedback, linear_bias=linear_bias)
    exact = gradients(model, loss_of(model))
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(random_tokens(1))
    assert logits.dtype == torch.bfloat16
    targets = random_tokens(2)
    targets[:, ::2] = -100
    ours = gradients(model, cross_entropy(logits, targets))
    assert all(g.isfinite().all() for g in ours.values())
    assert_same(ours, exact, tolerance=0.03)


@BIAS
def test_models_of_one_seed_start_with_the_same_weights_under_every_feedback(linear_bias):
    starts = []
    for feedback in get_args(Feedback):
        torch.manual_seed(7)
        model = start(feedback, linear_bias=linear_bias)
        starts.append({n: p.detach().clone() for n, p in model.named_parameters()})
    for other in starts[1:]:
        assert other.keys() == starts[0].keys()
        assert all(torch.equal(other[name], starts[0][name]) for name in other)
