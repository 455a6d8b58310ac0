"""Norms with code of their own in a Transformer, compared with the built-in ones."""

from typing import Any, get_args

import pytest
import torch
from recipes import recipe

from normscope.nn.arms import ARMS
from normscope.nn.custom import load
from normscope.nn.model import Transformer, cross_entropy
from normscope.nn.norms import build
from normscope.nn.recipe import Custom, Norm, Placement

V = 11


def custom(name: str, **options: object) -> Norm:
    return Norm(statistic="custom", custom=Custom(name=name, code="0", options=options))


def passes(norm: Norm, placement: Placement, **changes: Any) -> list[torch.Tensor]:
    """Logits and gradients of a Transformer on one batch, from one seed."""
    torch.manual_seed(3)
    model = Transformer(recipe(placement=placement, **changes).model, norm, placement, V)
    tokens = torch.randint(V, (2, 4), generator=torch.Generator().manual_seed(0))
    logits = model(tokens)
    loss = cross_entropy(logits, tokens)
    return [logits, *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("placement", [p for p in get_args(Placement) if p != "none"])
@pytest.mark.parametrize(
    ("arm", "norm"),
    [
        ("layernorm", custom("torch.nn:LayerNorm")),
        ("rmsnorm", custom("torch.nn:RMSNorm", eps=1e-5)),
    ],
)
def test_torchs_norms_as_custom_ones_are_the_built_in_ones_to_the_bit(arm, norm, placement):
    built_in, own = passes(ARMS[arm].norm, placement), passes(norm, placement)
    assert_equal(built_in, own)


def assert_equal(built_in: list[torch.Tensor], own: list[torch.Tensor]) -> None:
    assert len(built_in) == len(own)
    assert all(torch.equal(one, other) for one, other in zip(built_in, own, strict=True))


@pytest.mark.parametrize("over", ["head", "all"])
def test_a_custom_norm_of_queries_and_keys_has_the_width_of_its_heads(over):
    """And one that takes tokens as (N, d) only is given them so."""
    own = custom("torch.nn:BatchNorm1d")
    assert own.custom is not None
    flat = own.custom.model_copy(update={"is_flat": True, "is_token_wise": False})
    own = Norm(statistic="custom", custom=flat)
    choices = {"qk_norm": over, "embedding_norm": True}
    built_in = passes(ARMS["batchnorm"].norm, "pre", **choices)
    assert_equal(built_in, passes(own, "pre", **choices))


def test_the_other_weights_start_as_with_any_norm_and_its_own_as_it_made_them(tmp_path):
    """A matrix of the norm is not initialized as one of the Transformer's."""
    (tmp_path / "n.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class N(nn.Module):\n"
        "    def __init__(self, d):\n"
        "        super().__init__()\n"
        "        self.mix = nn.Linear(d, d, bias=False)\n"
        "        nn.init.eye_(self.mix.weight)\n"
        "        self.noise = nn.Parameter(torch.randn(d))\n"
        "    def forward(self, x):\n"
        "        return self.mix(x) * self.noise\n"
    )
    norm = Norm(statistic="custom", custom=Custom(name="n.py:N", folder=str(tmp_path), code="0"))
    models = []
    for one in (norm, ARMS["layernorm"].norm):
        torch.manual_seed(3)
        models.append(Transformer(recipe(init="xavier").model, one, "pre", V))
    own, other = (dict(model.named_parameters()) for model in models)
    shared = own.keys() & other.keys()
    assert any("qkv" in name for name in shared)
    assert all(torch.equal(own[name], other[name]) for name in shared)
    mixes = [p for name, p in own.items() if name.endswith("mix.weight")]
    assert all(torch.equal(p, torch.eye(len(p))) for p in mixes)
    drawn = [p for name, p in own.items() if name.endswith("noise")]
    drawn.append(own["token_embedding.weight"].flatten()[: len(drawn[0])] / 0.02)
    assert len(drawn) == 4
    for i, one in enumerate(drawn):  # no two norms draw the same, nor what the embedding draws
        assert not any(torch.allclose(one, other) for other in drawn[:i])


def test_two_files_of_one_name_may_import_modules_of_one_name(tmp_path):
    made = []
    for value in (1, 2):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "helper.py").write_text(f"VALUE = {value}\n")
        (folder / "n.py").write_text(
            "import helper\nfrom torch import nn\nclass N(nn.Module):\n    value = helper.VALUE\n"
        )
        made.append(load(Custom(name="n.py:N", folder=str(folder), code="0")))
    assert [kind.value for kind in made] == [1, 2]  # type: ignore[attr-defined]
    assert load(Custom(name="n.py:N", folder=str(tmp_path / "1"), code="0")) is made[0]


def test_a_random_norm_draws_from_the_generator_of_its_model():
    """A resumed training draws the same numbers, and the other generators stay as they are."""
    from normscope.nn.dropout import drawing  # noqa: PLC0415

    norm = Norm(
        statistic="custom",
        custom=Custom(name="torch.nn:Dropout", code="0", options={"p": 0.5}, is_random=True),
    )
    layer, x = build(norm, 8), torch.ones(4, 8)
    state = torch.get_rng_state()
    outputs = []
    for _ in range(2):
        with drawing([torch.Generator().manual_seed(1)]):
            outputs.append([layer(x), layer(x)])
    assert torch.equal(outputs[0][0], outputs[1][0])
    assert torch.equal(outputs[0][1], outputs[1][1])
    assert not torch.equal(outputs[0][0], outputs[0][1])
    assert torch.equal(torch.get_rng_state(), state)
