"""``watch`` on drawn layers against autograd's Jacobian, and on what users may do to it."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from pretrained_models import config_of
from recall_recipes import move
from recipes import examples
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import normscope
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 6
KINDS = ("layernorm", "rmsnorm", "constant", "sqrt(d)", "1", "learned")


def constant(d: int, eps: float, *, bias: bool = True) -> nn.Module:
    """A LayerNorm whose eps is a number in its forward pass."""

    class UserLayerNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d))
            self.bias = nn.Parameter(torch.zeros(d)) if bias else None

        def forward(self, x: Tensor) -> Tensor:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps)

    return UserLayerNorm()


def layer_of(kind: str, d: int, *, center: bool, gain: bool, bias: bool, eps: float) -> nn.Module:
    """A norm of torch, of the registry or of a user."""
    if kind == "constant":
        return constant(d, eps, bias=bias)
    if kind == "layernorm":
        return nn.LayerNorm(d, eps=eps, elementwise_affine=gain, bias=bias)
    if kind == "rmsnorm":
        return nn.RMSNorm(d, eps=eps, elementwise_affine=gain)
    radius: Any = kind
    return build(Norm(center=center, radius=radius, gain=gain, bias=bias, eps=eps), d)


def scale_of(layer: nn.Module, d: int) -> Tensor:
    """``dy / dz``, by channel: gain, and radius over sqrt(d)."""
    parameters = dict(layer.named_parameters())
    gain = parameters.get("weight", parameters.get("gain", torch.ones(d).double()))
    radius = {"1": 1.0, "learned": parameters.get("g")}.get(getattr(layer, "radius", ""))
    return (gain if radius is None else gain * radius / math.sqrt(d)).detach()


@given(
    kind=st.sampled_from(KINDS),
    d=st.integers(3, 7),
    n=st.integers(1, 4),
    center=st.booleans(),
    gain=st.booleans(),
    bias=st.booleans(),
    eps=st.sampled_from([1e-12, 1e-5, 1e-2, 1.0, 1e12]),
    size=st.sampled_from([1e-2, 1.0, 1e2]),
    mean=st.sampled_from([0.0, 1.0, -30.0]),
    seed=st.integers(0, 99),
)
@examples(60)
def test_the_table_is_that_of_the_full_jacobian(*, kind, d, n, size, mean, seed, **factors):
    """Each quantity from the definition: J of autograd, and energies before and after each step."""
    if kind in ("1", "learned"):
        factors["eps"] = min(
            factors["eps"], 1e-5
        )  # shorter tokens than eps have no radial term: see standardize
    layer = move(layer_of(kind, d, **factors).double(), seed)
    g = torch.Generator().manual_seed(seed)
    x = size * torch.randn(n, d, generator=g, dtype=torch.float64) + mean
    dy = torch.randn(n, d, generator=g, dtype=torch.float64)
    with normscope.watch(layer) as norms:
        inputs = x.clone().requires_grad_()
        layer(inputs).backward(dy)
    (row,) = norms.table().to_dict("records")

    scale, centers = scale_of(layer, d), bool(row["center"])
    known = {"layernorm": True, "rmsnorm": False, "constant": True}
    assert centers == known.get(kind, factors["center"])
    assert (row["d"], row["tokens"]) == (d, n)
    J = torch.autograd.functional.jacobian(layer, x)
    assert isinstance(J, Tensor)
    ones = torch.ones(d).double() / math.sqrt(d)
    at_z, u = scale * dy, x - x.mean(-1, keepdim=True) * centers
    energy = at_z.square().sum(-1)
    mean_part = (at_z @ ones).square() * centers
    exact = torch.stack([J[i, :, i].T @ dy[i] for i in range(n)])
    eps = 0.0 if kind in ("1", "learned") else factors["eps"]
    passed = (u.square().mean(-1) + eps) * exact.square().sum(-1)
    assert inputs.grad is not None
    assert torch.allclose(inputs.grad, exact)
    expected = {"r_mean": mean_part, "r_radial": energy - mean_part - passed, "r_tangent": passed}
    for name, part in expected.items():
        assert row[name] == pytest.approx(float((part / energy).mean()), rel=1e-6, abs=1e-8), name
        of_batch = float(part.sum() / energy.sum())
        assert row[f"{name}_of_batch"] == pytest.approx(of_batch, rel=1e-6, abs=1e-8), name
    cosine = torch.cosine_similarity(at_z, exact, dim=-1).mean()
    assert row["cos_straight_through"] == pytest.approx(float(cosine), rel=1e-6, abs=1e-6)
    error = float((at_z - exact).norm() / exact.norm())
    assert row["error_straight_through"] == pytest.approx(error, rel=1e-5)


class Net(nn.Module):
    """A norm between two maps."""

    def __init__(self, norm: nn.Module | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.into, self.norm = nn.Linear(3, D), norm or nn.LayerNorm(D)
        self.out = nn.Linear(D, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.into(x))
        return self.out(y[0] if isinstance(y, tuple) else y)


def inputs() -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(1))


def plain(model: nn.Module, x: Tensor) -> None:
    model(x).square().sum().backward()


class PairLayerNorm(nn.LayerNorm):
    """Returns its output in a tuple, as fused kernels do."""

    def forward(self, input: Tensor) -> Any:
        return super().forward(input), input.mean()


class OverRMSNorm(nn.Module):
    """Writes over its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(x.detach().square().mean(-1, keepdim=True).rsqrt())


class FirstLayerNorm(nn.Module):
    """Has the name of a norm, and divides by the mean absolute value."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.abs().mean(-1, keepdim=True)


class Standardization(nn.Module):
    """A norm by what it computes alone."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / (
            x.var(-1, correction=0, keepdim=True) + 1e-5
        ).sqrt()


def shares(model: nn.Module, run: Callable[[], object]) -> list[dict]:
    with normscope.watch(model) as norms:
        run()
    return norms.table().drop(columns=["norm", "kind", "problem"]).to_dict("records")


def reference(norm: nn.Module | None = None) -> dict:
    model = Net(norm)
    (row,) = shares(model, lambda: plain(model, inputs()))
    return row


def checkpointed(model: nn.Module, x: Tensor) -> None:
    checkpoint(model, x.requires_grad_(), use_reentrant=True).square().sum().backward()


def nested(model: nn.Module, x: Tensor) -> None:
    with normscope.watch(model):
        plain(model, x)


def in_place_after(model: Net, x: Tensor) -> None:
    y = model.norm(model.into(x))
    model.out(y.mul_(1)).square().sum().backward()


def frozen_gain(model: Net, x: Tensor) -> None:
    model.norm.requires_grad_(False)
    plain(model, x)


def compiled(model: Net, x: Tensor) -> None:
    fast: Any = torch.compile(model, backend="eager")
    plain(fast, x)


def in_two_passes(model: Net, x: Tensor) -> None:
    plain(model, x[:1])
    plain(model, x[1:])


SAME = {
    "a pair": (lambda: Net(PairLayerNorm(D)), plain),
    "without affine": (lambda: Net(nn.LayerNorm(D, elementwise_affine=False)), plain),
    "constant eps": (lambda: Net(constant(D, 1e-5)), plain),
    "another name": (lambda: Net(Standardization()), plain),
    **{
        run.__name__: (Net, run)
        for run in (checkpointed, nested, in_place_after, frozen_gain, compiled, in_two_passes)
    },
}


@pytest.mark.parametrize("way", SAME)
def test_each_way_to_run_gives_the_same_numbers(way):
    make, run = SAME[way]
    model = make()
    (row,) = shares(model, lambda: run(model, inputs()))
    assert row == pytest.approx(reference(), rel=1e-5)


def test_a_norm_has_one_row_with_all_its_tokens_if_a_gradient_passes_it():
    norm = nn.LayerNorm(D)
    model = nn.ModuleDict({"a": Net(norm), "b": Net(norm), "idle": nn.LayerNorm(D)})
    with normscope.watch(model) as norms:
        for name in ("a", "b"):
            plain(model[name], inputs())
    assert norms.table()[["norm", "tokens"]].to_numpy().tolist() == [["a.norm", 8]]


# norms of queries and keys, with a gain of each head or without parameters, and 1 + weight
MODELS = {
    "llama": ({}, 5),
    "qwen3": ({}, 9),
    "cohere": ({"use_qk_norm": True}, 7),
    "gemma3_text": ({}, 13),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_norm_of_a_transformers_model_has_a_row(kind):
    changes, n = MODELS[kind]
    config = config_of(kind, num_hidden_layers=2, **changes)
    model = transformers.AutoModelForCausalLM.from_config(config)
    ids = torch.arange(8)[None]
    with normscope.watch(model) as norms:
        model(ids, labels=ids).loss.backward()
    table = norms.table()
    modules = model.named_modules()
    assert list(table["norm"]) == [name for name, m in modules if "Norm" in type(m).__name__]
    assert len(table) == n
    assert table["problem"].isna().all()
    centers = kind == "cohere"
    assert (table["center"] == centers).all()
    assert ((table["r_mean"] != 0) == centers).all()
    # the last token's loss has no target: its gradient has no direction, and counts in no mean
    shares = table[["r_mean", "r_radial", "r_tangent"]].sum(axis=1)
    assert shares.tolist() == pytest.approx([1.0] * n)


def under(context: Callable[[], Any]) -> Callable[[Net, Tensor], object]:
    def run(model: Net, x: Tensor) -> None:
        with context():
            model(x)

    return run


def frozen(model: Net, x: Tensor) -> None:
    model.into.requires_grad_(False)
    model.norm.requires_grad_(False)
    plain(model, x)


def transformed(f: Callable[[Net, Tensor], object]) -> tuple:
    return Net, f, r"norm: torch\.func.*use loss\.backward"


def late_nan(model: Net, x: Tensor) -> None:
    (model(x).sum() * math.nan).backward()


NAMED: dict[str, tuple] = {
    "nothing": (Net, lambda model, x: None, "no gradient has passed"),
    "no backward": (Net, lambda model, x: model(x), r"call loss\.backward"),
    "no_grad": (Net, under(torch.no_grad), r"without torch\.no_grad"),
    "inference": (Net, under(torch.inference_mode), r"torch\.inference_mode"),
    "all frozen": (Net, frozen, "are frozen, call requires_grad_"),
    "NaN loss": (Net, late_nan, "norm: the gradient at the output is not finite"),
    "NaN input": (
        Net,
        lambda m, x: plain(m, x * math.nan),
        "norm: the input of LayerNorm is not fin",
    ),
    "func.vmap": transformed(lambda m, x: torch.func.vmap(m)(x).sum().backward()),
    "another norm": (lambda: Net(FirstLayerNorm()), plain, "FirstLayerNorm does not comp"),
    "surrogate": (
        lambda: Net(build(Norm(center=True, gain=True), D, "projected")),
        plain,
        "norm: its norm_backward is projected.*set its norm_backward",
    ),
    "over its input": (lambda: Net(OverRMSNorm()), plain, "output over its input"),
    "meta": (lambda: Net().to("meta"), lambda m, x: plain(m, x.to("meta")), "meta tensors"),
}


@pytest.mark.parametrize("case", NAMED)
def test_an_error_of_one_line_says_what_cannot_be_measured_and_the_passes_go_on(case):
    make, run, words = NAMED[case]
    model, unwatched = make(), make()
    run(unwatched, inputs())
    with normscope.watch(model) as norms:
        run(model, inputs())
    with pytest.raises(normscope.Explained, match=words) as error:
        norms.table()
    assert "\n" not in str(error.value)
    assert not any(m._forward_hooks for m in model.modules())
    for ours, other in zip(model.parameters(), unwatched.parameters(), strict=True):
        assert (ours.grad is None) == (other.grad is None)
        if ours.grad is not None and not ours.is_meta:
            assert torch.equal(ours.grad.nan_to_num(), other.grad.nan_to_num())


def test_a_norm_that_cannot_be_measured_has_a_row_with_the_reason_and_the_others_have_theirs():
    model = nn.Sequential(Net(), nn.Linear(2, D), FirstLayerNorm(), nn.ReLU())
    first: Any = model[0]
    with normscope.watch(model) as norms:
        plain(first, inputs())
        plain(model[1:], torch.ones(4, 2))
    table = norms.table()
    assert table["norm"].tolist() == ["0.norm", "2"]
    row, other = table.drop(columns=["norm", "kind"]).to_dict("records")
    assert pd.isna(row.pop("problem"))
    assert row == pytest.approx(reference(), rel=1e-5)
    assert "FirstLayerNorm does not compute a norm of each token" in other.pop("problem")
    assert all(map(math.isnan, other.values()))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt2", "model is of type str"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), r"Sequential.*BatchNorm1d"),
    ],
)
def test_what_has_no_norms_is_an_error(model, words):
    with pytest.raises(normscope.Explained, match=words), normscope.watch(model):
        pass
