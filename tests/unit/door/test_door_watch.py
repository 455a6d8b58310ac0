"""The share of a gradient that norms remove, compared with autograd's explicit Jacobian."""

from collections.abc import Callable

import pytest
import torch
import transformers
from recall_recipes import moved
from torch import Tensor, nn

import normscope

D, TOKENS = 12, (4, 5)
LlamaRMSNorm = transformers.models.llama.modeling_llama.LlamaRMSNorm
GemmaRMSNorm = transformers.models.gemma.modeling_gemma.GemmaRMSNorm


class OwnRMSNorm(nn.Module):
    """A norm of a user, whose gain is called scale."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.eps = nn.Parameter(torch.ones(D)), 1e-9

    def forward(self, hidden: Tensor) -> Tensor:
        return self.scale * hidden * (hidden.square().mean(-1, keepdim=True) + self.eps).rsqrt()


class Model(nn.Module):
    """A norm between two linear maps."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.into, self.norm, self.out = nn.Linear(3, D), norm, nn.Linear(D, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(self.norm(self.into(inputs).tanh()))


NORMS: dict[str, Callable[[], nn.Module]] = {
    "LayerNorm": lambda: nn.LayerNorm(D, eps=1e-9),
    "LayerNorm without a bias": lambda: nn.LayerNorm(D, eps=1e-9, bias=False),
    "LayerNorm without weights": lambda: nn.LayerNorm(D, eps=1e-9, elementwise_affine=False),
    "RMSNorm": lambda: nn.RMSNorm(D, eps=1e-9),
    "LlamaRMSNorm": lambda: LlamaRMSNorm(D, eps=1e-9),
    "GemmaRMSNorm": lambda: GemmaRMSNorm(D, eps=1e-9),
    "OwnRMSNorm": OwnRMSNorm,
}


def model_and_inputs(name: str) -> tuple[Model, Tensor]:
    """A model in float64, and its inputs."""
    torch.manual_seed(1)
    inputs = torch.randn(*TOKENS, 3, dtype=torch.float64)
    model = Model(NORMS[name]())
    moved(model)
    return model.double(), inputs


def gain_of(norm: nn.Module) -> Tensor:
    """As its class has it."""
    weight = next((p.detach() for n, p in norm.named_parameters() if n != "bias"), torch.ones(D))
    return 1 + weight if isinstance(norm, GemmaRMSNorm) else weight


@pytest.mark.parametrize("name", NORMS)
def test_shares_are_those_of_the_null_space_of_the_jacobian(name):
    """With gain out of the way, what J takes to zero is removed, and all else passes."""
    model, inputs = model_and_inputs(name)
    with normscope.watch(model) as norms:
        model(inputs).square().sum().backward()
    (row,) = norms.table().to_dict("records")

    x = model.into(inputs).tanh().detach().flatten(0, 1)  # (tokens, d)
    y = model.norm(x).detach().requires_grad_()
    (dy,) = torch.autograd.grad(model.out(y).square().sum(), y)
    gain = gain_of(model.norm)
    mean, radial, tangent, cosine = [], [], [], []
    for token, g in zip(x, gain * dy, strict=True):
        J = torch.autograd.functional.jacobian(model.norm, token) / gain[:, None]  # (d, d) of z
        U, S, _ = torch.linalg.svd(J)
        passes = U[:, 1e-4 * S[0] < S]
        assert passes.shape[1] == (D - 2 if row["center"] else D - 1)
        tangent.append((passes.T @ g).square().sum() / g.square().sum())
        ones = torch.ones(D).double() / D**0.5
        mean.append((ones @ g).square() / g.square().sum() * row["center"])
        radial.append(1 - tangent[-1] - mean[-1])
        cosine.append(torch.cosine_similarity(J.T @ g, g, dim=0))
    expected = {"r_mean": mean, "r_radial": radial, "r_tangent": tangent}
    expected |= {"cos_straight_through": cosine}
    for column, values in expected.items():
        # transformers' classes compute in float32
        assert row[column] == pytest.approx(float(torch.stack(values).mean()), abs=1e-5), column
    assert (row["norm"], row["kind"]) == ("norm", type(model.norm).__name__)
    assert (row["d"], row["tokens"]) == (D, TOKENS[0] * TOKENS[1])
    assert row["center"] == isinstance(model.norm, nn.LayerNorm)


def test_passes_of_one_body_count_together():
    model, inputs = model_and_inputs("RMSNorm")
    with normscope.watch(model) as whole:
        model(inputs).square().sum().backward()
    with normscope.watch(model) as parts:
        for part in inputs:
            model(part).square().sum().backward()
    expected, row = (w.table().drop(columns=["norm", "kind"]).loc[0] for w in (whole, parts))
    assert row.to_dict() == pytest.approx(expected.to_dict(), rel=1e-9)


def test_a_norm_that_no_gradient_passes_has_no_row():
    model, inputs = model_and_inputs("LayerNorm")
    both = nn.ModuleDict({"used": model, "idle": nn.LayerNorm(D)})
    with normscope.watch(both) as norms:
        model(inputs).sum().backward()
    assert list(norms.table()["norm"]) == ["used.norm"]


def test_every_norm_of_a_transformers_model_has_a_row():
    config = transformers.LlamaConfig(
        hidden_size=D, intermediate_size=D, num_hidden_layers=2, num_attention_heads=2, vocab_size=9
    )
    model = transformers.LlamaForCausalLM(config)
    ids = torch.arange(8)[None]
    with normscope.watch(model) as norms:
        model(ids, labels=ids).loss.backward()
    table = norms.table()
    names = [n for n, m in model.named_modules() if isinstance(m, LlamaRMSNorm)]
    assert list(table["norm"]) == names
    assert len(names) == 5
    assert not table["center"].any()
    assert (table["r_mean"] == 0).all()
    # the last token's loss has no target: its gradient has no direction, and counts in no mean
    shares = table[["r_mean", "r_radial", "r_tangent"]].sum(axis=1)
    assert shares.tolist() == pytest.approx([1.0] * 5)


def test_what_cannot_be_watched_is_an_error():
    bare = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with (
        pytest.raises(normscope.Explained, match=r"Sequential.*BatchNorm1d"),
        normscope.watch(bare),
    ):
        pass
    model, inputs = model_and_inputs("LayerNorm")
    loss = model(inputs).sum()
    with normscope.watch(model) as norms:
        loss.backward()
    with pytest.raises(normscope.Explained, match="forward"):
        norms.table()
