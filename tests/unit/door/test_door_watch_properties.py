"""``watch`` on drawn layers against autograd's Jacobian, and on what users may do to it."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from recall_recipes import moved
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import normscope
from normscope.nn.norms import build
from normscope.nn.recipe import Norm, NormBackward

D = 6
KINDS = ("layernorm", "rmsnorm", "sqrt(d)", "1", "learned")


def layer_of(kind: str, d: int, *, center: bool, gain: bool, bias: bool, eps: float) -> nn.Module:
    """A norm of torch or of the registry."""
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
    eps=st.sampled_from([1e-12, 1e-5, 1e-2, 1.0]),
    size=st.sampled_from([1e-2, 1.0, 1e2]),
    mean=st.sampled_from([0.0, 1.0, -30.0]),
    seed=st.integers(0, 99),
)
@examples(60)
def test_the_table_is_that_of_the_full_jacobian(*, kind, d, n, size, mean, seed, **factors):
    """Each quantity from the definition: J of autograd, and energies along 1 and along z."""
    if kind in ("1", "learned"):
        factors["eps"] = min(
            factors["eps"], 1e-5
        )  # shorter tokens than eps have no radial term: see standardize
    layer = moved(layer_of(kind, d, **factors).double(), seed)
    g = torch.Generator().manual_seed(seed)
    x = size * torch.randn(n, d, generator=g, dtype=torch.float64) + mean
    dy = torch.randn(n, d, generator=g, dtype=torch.float64)
    with normscope.watch(layer) as norms:
        inputs = x.clone().requires_grad_()
        layer(inputs).backward(dy)
    (row,) = norms.table().to_dict("records")

    scale, centers = scale_of(layer, d), bool(row["center"])
    assert centers == {"layernorm": True, "rmsnorm": False}.get(kind, factors["center"])
    assert (row["d"], row["tokens"]) == (d, n)
    J = torch.autograd.functional.jacobian(layer, x)
    assert isinstance(J, Tensor)
    ones = torch.ones(d).double() / math.sqrt(d)
    at_z, u = scale * dy, x - x.mean(-1, keepdim=True) * centers
    energy = at_z.square().sum(-1)
    mean_part = (at_z @ ones).square() * centers
    radial = (at_z * u / u.norm(dim=-1, keepdim=True)).sum(-1).square()
    exact = torch.stack([J[i, :, i].T @ dy[i] for i in range(n)])
    assert inputs.grad is not None
    assert torch.allclose(inputs.grad, exact)
    expected = {"r_mean": mean_part, "r_radial": radial, "r_tangent": energy - mean_part - radial}
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
        return self.out(self.norm(self.into(x)))


def inputs() -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(1))


def plain(model: nn.Module, x: Tensor) -> None:
    model(x).square().sum().backward()


class PairLayerNorm(nn.LayerNorm):
    """Returns its output in a container, as fused kernels do."""

    def forward(self, input: Tensor) -> Any:
        return super().forward(input), input.mean()


class First(nn.Module):
    """Takes the first of a pair."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)[0]


class OverRMSNorm(nn.Module):
    """Writes over its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(x.detach().square().mean(-1, keepdim=True).rsqrt())


class TextLayerNorm(nn.Module):
    """Returns no tensor; the map before it goes on."""

    def forward(self, x: Tensor) -> str:
        return str(x.shape)


class Ignoring(nn.Module):
    """Calls a norm and leaves its output."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        self.norm(x)
        return x


class StdLayerNorm(nn.Module):
    """A norm by its name alone."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


def shares(model: nn.Module, run: Callable[[], object]) -> list[dict]:
    with normscope.watch(model) as norms:
        run()
    return norms.table().drop(columns=["norm", "kind"]).to_dict("records")


def reference() -> dict:
    model = Net()
    (row,) = shares(model, lambda: plain(model, inputs()))
    return row


def checkpointed(model: nn.Module, x: Tensor) -> None:
    checkpoint(model, x.requires_grad_(), use_reentrant=True).square().sum().backward()


def nested(model: nn.Module, x: Tensor) -> None:
    with normscope.watch(model):
        plain(model, x)


def with_factors(model: Net, x: Tensor) -> None:
    normscope.factors(model.norm, torch.ones(2, D) * torch.arange(D))
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


SAME = {
    "as usual": (Net, plain),
    "a pair": (lambda: Net(First(PairLayerNorm(D))), plain),
    "a wrapper": (lambda: nn.DataParallel(Net()), plain),
    "checkpointed": (Net, checkpointed),
    "nested": (Net, nested),
    "with factors": (Net, with_factors),
    "in place after": (Net, in_place_after),
    "frozen gain": (Net, frozen_gain),
    "without affine": (lambda: Net(nn.LayerNorm(D, elementwise_affine=False)), plain),
    "compiled in the body": (Net, compiled),
    "transposed": (Net, lambda model, x: plain(model, x.T.contiguous().T)),
}


@pytest.mark.parametrize("way", SAME)
def test_each_way_to_run_gives_the_same_numbers(way):
    make, run = SAME[way]
    model = make()
    (row,) = shares(model, lambda: run(model, inputs()))
    assert row == pytest.approx(reference(), rel=1e-5)


def test_a_model_that_was_compiled_before_gives_the_same_numbers_and_is_not_recompiled():
    model = Net()
    fast: Any = torch.compile(model, backend="eager")
    before = fast(inputs())
    (row,) = shares(fast, lambda: plain(fast, inputs()))
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(fast(inputs()), before)
    assert row == pytest.approx(reference(), rel=1e-5)

    @torch.compile(backend="eager")
    def step() -> None:
        shares(model, lambda: plain(model, inputs()))

    with pytest.raises(normscope.Explained, match="call it outside"):
        step()


def test_a_norm_used_twice_or_by_two_names_has_one_row_with_all_its_tokens():
    norm = nn.LayerNorm(D)
    model = nn.ModuleDict({"a": Net(norm), "b": Net(norm)})
    with normscope.watch(model) as norms:
        for net in model.values():
            plain(net, inputs())
    assert norms.table()[["norm", "tokens"]].to_numpy().tolist() == [["a.norm", 8]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_near_full(dtype):
    model = Net().to(dtype)
    (row,) = shares(model, lambda: plain(model, inputs().to(dtype)))
    expected = reference()
    for name in ("r_mean", "r_radial", "r_tangent"):
        assert row[name] == pytest.approx(expected[name], abs=0.05)


def test_a_token_of_several_dimensions_is_one():
    norm = nn.LayerNorm([2, 3])
    (row,) = shares(norm, lambda: norm(torch.randn(4, 2, 3).requires_grad_()).sum().backward())
    assert (row["d"], row["tokens"]) == (6, 4)


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


def surrogate(rule: NormBackward) -> tuple:
    layer = partial(build, Norm(center=True, gain=True), D, rule)
    return lambda: Net(layer()), plain, f"norm: its norm_backward is {rule}.*set its norm_backward"


def batched(model: Net, x: Tensor) -> None:
    torch.autograd.functional.jacobian(model, x, vectorize=True)


def late_nan(model: Net, x: Tensor) -> None:
    (model(x).sum() * math.nan).backward()


NAMED: dict[str, tuple] = {
    "nothing": (Net, lambda model, x: None, "no gradient has passed"),
    "no backward": (Net, lambda model, x: model(x), r"call loss\.backward"),
    "no_grad": (Net, under(torch.no_grad), r"without torch\.no_grad"),
    "inference": (Net, under(torch.inference_mode), r"torch\.inference_mode"),
    "all frozen": (Net, frozen, "are frozen, call requires_grad_"),
    "no tokens": (Net, lambda model, x: plain(model, x[:0]), "inputs that are not empty"),
    "NaN loss": (Net, late_nan, "norm: the gradient at the output is not finite"),
    "infinite loss": (Net, lambda m, x: (m(x) * math.inf).sum().backward(), "not finite"),
    "NaN input": (
        Net,
        lambda m, x: plain(m, x * math.nan),
        "norm: the input of LayerNorm is not fin",
    ),
    "func.grad": transformed(lambda m, x: torch.func.grad(lambda t: m(t).sum())(x)),
    "func.vmap": transformed(lambda m, x: torch.func.vmap(m)(x).sum().backward()),
    "func.jacrev": transformed(lambda m, x: torch.func.jacrev(m)(x)),
    "vectorized": transformed(batched),
    "another norm": (lambda: Net(StdLayerNorm()), plain, "norm: StdLayerNorm does not compute"),
    "center_scale": surrogate("center_scale"),
    "straight_through": surrogate("straight_through"),
    "projected": surrogate("projected"),
    "over its input": (lambda: Net(OverRMSNorm()), plain, "output over its input"),
    "no tensor": (lambda: Net(Ignoring(TextLayerNorm())), plain, r"norm\.norm: its output holds"),
    "meta": (lambda: Net().to("meta"), lambda m, x: plain(m, x.to("meta")), "meta device"),
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
    for ours, theirs in zip(model.parameters(), unwatched.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None and not ours.is_meta:
            assert torch.equal(ours.grad.nan_to_num(), theirs.grad.nan_to_num())


def test_an_error_names_the_norm_closest_to_the_loss():
    model = nn.Sequential(*(nn.LayerNorm(D) for _ in range(9)))
    with normscope.watch(model) as norms:
        (model(torch.randn(2, D).requires_grad_()) * math.nan).sum().backward()
    with pytest.raises(normscope.Explained, match="measure 8 and 8 other norms: the gradient"):
        norms.table()


def test_an_exception_in_the_body_is_the_users_and_no_hook_stays():
    model = Net()
    with pytest.raises(RuntimeError), normscope.watch(model):
        model(inputs()).backward()  # not a scalar
    assert not model.norm._forward_hooks


@given(st.one_of(st.none(), st.text(), st.integers(), st.binary(), st.lists(st.integers())))
@examples(20)
def test_an_argument_that_is_not_a_module_is_an_error_that_names_it(model):
    with pytest.raises(normscope.Explained, match="model is of type"), normscope.watch(model):
        pass
