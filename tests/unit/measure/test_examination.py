"""The examination of norms with code of their own: what is found, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from normscope.errors import Explained
from normscope.measure.examination import examine
from normscope.nn.recipe import Custom

HEAD = """
import random
import torch
from torch import nn

class N(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.eps = eps
"""
RMS = "x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()"


def examined(folder: Path, body: str, **options: Any) -> Custom:
    """What is found of a class with the parameters of RMSNorm; its code goes on with the body."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    (folder / "n.py").write_text(f"{HEAD}{lines}\n")
    return examine(Custom(name="n.py:N", folder=str(folder), code="0", options=options))


def forward(*statements: str, gives: str = f"self.gain * {RMS}") -> str:
    lines = [f"    {statement}" for statement in statements]
    return "\n".join(["def forward(self, x):", *lines, f"    return {gives}"])


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("torch.nn:LayerNorm", {}, (False, True, False, True)),
        ("torch.nn:RMSNorm", {"eps": 1e-5}, (False, True, False, True)),
        ("torch.nn:GroupNorm", {"num_groups": 4}, (True, True, False, True)),
        ("torch.nn:BatchNorm1d", {}, (True, False, False, True)),
        (
            "transformers.models.llama.modeling_llama:LlamaRMSNorm",
            {"eps": 1e-5},
            (False, True, False, True),
        ),
        # these compute in float32, the last one its statistic alone
        ("transformers.models.olmo.modeling_olmo:OlmoLayerNorm", {}, (False, True, False, True)),
        ("transformers.models.t5.modeling_t5:T5LayerNorm", {}, (False, True, False, True)),
    ],
)
def test_norms_of_packages_are_found_to_be_what_they_are(name, options, found):
    """GroupNorm and BatchNorm take (N, d); d is the argument that has no default."""
    norm = examine(Custom(name=name, options=options, code="a package"))
    assert (norm.is_flat, norm.is_token_wise, norm.is_random, norm.stacks) == found
    assert norm.is_exact


def test_a_norm_that_vmap_cannot_stack_is_trained_alone(tmp_path):
    body = forward("assert float(x.abs().max()) > -1")  # reads a value, which vmap does not have
    assert not examined(tmp_path, body).stacks


@pytest.mark.parametrize("size", [1, 0])  # also while it cannot be seen
def test_a_norm_that_is_random_in_training_is_trained_alone(size, tmp_path):
    noise = f"x = x + {size} * torch.randn_like(x) if self.training else x"
    found = examined(tmp_path, forward(noise))
    assert (found.is_random, found.stacks) == (True, False)


@pytest.mark.parametrize(
    "code",
    [
        "class N(nn.Module):\n    def forward(self, x): return x.tanh()",
        "class N(nn.Module):\n    def __init__(self, *args, d): super().__init__()\n"
        "    def forward(self, x): return x.tanh()",
        "class N(nn.Module):\n"
        "    def __init__(self, eps=1e-5, width=8): super().__init__(); self.width = width\n"
        "    def forward(self, x): return x.tanh() * torch.ones(self.width)",
        "def N(d): return nn.LayerNorm(d)",
    ],
)
def test_a_width_is_given_where_there_is_a_place_for_it(code, tmp_path):
    head = "from __future__ import annotations\nimport torch\nfrom torch import nn\n"
    (tmp_path / "n.py").write_text(head + code)
    assert examine(Custom(name="n.py:N", folder=str(tmp_path), code="0")).stacks


HIDDEN = """
def forward(self, x):
    self.count = getattr(self, "count", 0) + self.training
    return self.gain * x / (x.abs().mean(-1, keepdim=True) + self.eps + self.count)
"""
MEAN = """
    self.register_buffer("m", torch.zeros(()))
def forward(self, x):
    if self.training:
        {}
    return self.gain * x / (x.abs().mean(-1, keepdim=True) + self.eps) + self.m
"""
ONCE = """
class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.detach().abs()) ** 2
def forward(self, x):
    return self.gain * self.Once.apply(x)
"""
FLOAT64 = """
def forward(self, x):
    return x.float() * self.gain.float() / (x.float().abs().mean(-1, keepdim=True) + 1e-5)
"""


SIGMA = "(x.square().mean(-1, keepdim=True) + self.eps).sqrt()"
ROUNDED = ".to(DTYPE).to(x.dtype)"
SCALED = f"""
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x, gain)
        return x.tanh(){ROUNDED} * gain
    @staticmethod
    def backward(ctx, g):
        x, gain = ctx.saved_tensors
        return INPUT * g * gain / x.cosh() ** 2, GAIN * (g * x.tanh()).flatten(0, -2).sum(0)
def forward(self, x):
    return self.Scaled.apply(x, self.gain)
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("body", "is_exact"),
    [
        (forward(gives=f"self.gain * ({RMS}){ROUNDED}"), True),
        (forward("u = x.to(DTYPE)", gives="self.gain * (u.relu() / (1 + u.abs())).to(x)"), True),
        (forward(gives=f"self.gain * x / {SIGMA}{ROUNDED}"), True),
        (forward(gives=f"self.gain * x / {SIGMA}{ROUNDED}.detach()"), False),
        (forward(gives=f"self.gain * (x + (x.tanh() - x){ROUNDED}.detach())"), False),
        (SCALED.replace("INPUT", "1").replace("GAIN", "1"), True),
        (SCALED.replace("INPUT", "2").replace("GAIN", "1"), False),
        (SCALED.replace("INPUT", "1").replace("GAIN", "2"), False),
    ],
)
def test_a_backward_pass_that_is_not_the_derivative_is_found(dtype, body, is_exact, tmp_path):
    """In whatever precision the norm computes; it is not refused."""
    assert examined(tmp_path, body.replace("DTYPE", f"torch.{dtype}")).is_exact == is_exact


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (forward(gives="(self.gain * x)[..., :-1]"), "must map (..., d) to (..., d)"),
        (forward(gives="(x, self.gain)"), "must map (..., d) to (..., d): it makes tuple"),
        (forward("raise KeyError('state')"), "must map (..., d) to (..., d): KeyError: 'state'"),
        (forward("x *= 2"), "changes its input in place"),
        (forward(gives=f"self.gain * {RMS} + torch.rand(())"), "random in evaluation"),
        (
            forward("x = x + random.random() if self.training else x"),
            "torch.manual_seed does not determine",
        ),
        (forward(gives="self.gain * x / x.norm(dim=-1, keepdim=True)"), "tokens of zeros is not f"),
        (forward(gives="self.gain * x.exp()"), "tokens of scale 1000 is not finite"),
        (forward(gives=RMS), "gain gets no gradient: use it, or remove it"),
        (forward(gives="self.gain * x.detach()"), "its input gets no gradient"),
        (forward(gives="self.gain * x / (x.sum(1, keepdim=True).abs() + 1)"), "later tokens"),
        ("    self.twin = self.gain\n" + forward(), "gain and twin are one parameter"),
        (
            "    self.fixed = nn.Parameter(torch.ones(d), requires_grad=False)\n" + forward(),
            "fixed requires no gradient: register it as a buffer",
        ),
        (MEAN.format("self.m = 0.9 * self.m + 0.1 * x.mean()"), "a second step fails"),
        (ONCE, "its second derivative, which the curvature needs"),
        (HIDDEN, "state that is neither a parameter nor a buffer"),
        (FLOAT64, "in float64 it makes torch.float32"),
        (
            "    self.shift = nn.Parameter(torch.zeros(d).double())\n" + forward(),
            "shift is torch.float64: make it torch.float32",
        ),
        ("    self.shift = nn.LazyLinear(d)\n" + forward(), "no shape until the first call"),
        (forward("x = x * torch.ones(64)"), "it fails for tokens (2, 3, 32), and must take any"),
        ("    raise ValueError('no')\n" + forward(), "cannot be built with (64): ValueError: no"),
    ],
)
def test_a_norm_that_cannot_be_trained_is_refused_with_the_reason(body, reason, tmp_path):
    with pytest.raises(Explained) as error:
        examined(tmp_path, body)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import torhc", "n.py cannot be imported: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", "n.py cannot be imported: SystemExit: 3"),
        ("from torch import nn\nclass Norm(nn.Module): ...", "has no class 'N'; known: Norm"),
        ("def N(d): return lambda x: x", "n.py:N makes a function: name a subclass of"),
    ],
)
def test_code_without_such_a_class_is_refused(code, reason, tmp_path):
    (tmp_path / "n.py").write_text(code)
    with pytest.raises(Explained) as error:
        examine(Custom(name="n.py:N", folder=str(tmp_path), code="0"))
    assert reason in str(error.value)
