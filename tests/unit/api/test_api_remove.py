"""``removable`` and ``remove``: against the definition, written with hooks in float64."""

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from pretrained_models import config_of, random_model
from torch import Tensor, nn
from torch.nn import functional as F

import normscope
from normscope.measure.frozen_norms import FrozenNorm
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

TOKENS = torch.randint(3, 300, (5, 9), generator=torch.Generator().manual_seed(0))


def frozen_output(
    sigmas: dict[str, Tensor], name: str, apart: bool, module: Any, args: Any, _: Any
) -> Tensor:
    """What a LayerNorm gives with the means of sigma (windows, positions)."""
    (x,), sigma = args, sigmas[name]
    mean = sigma.mean().expand(sigma.shape[1]).clone()
    if apart:
        mean[:] = sigma[:, 1:].mean()
        mean[0] = sigma[:, 0].mean()
    u = x - x.mean(-1, keepdim=True)
    return u / mean[:, None] * module.weight + module.bias


@torch.no_grad()
def by_definition(model: Any, names: list[str], apart: bool) -> tuple[float, Tensor]:
    """The loss and the logits of a model of LayerNorms with the sigma of some of them frozen."""
    sigmas: dict[str, Tensor] = {}

    def keep(name: str, module: Any, args: Any, _: Any) -> None:
        sigmas[name] = (args[0].var(-1, correction=0) + module.eps).sqrt()

    def run(hook: Any) -> Tensor:
        handles = [
            model.get_submodule(name).register_forward_hook(partial(hook, name)) for name in names
        ]
        logits = model(TOKENS).logits
        for handle in handles:
            handle.remove()
        return logits

    run(keep)
    logits = run(lambda name, *call: frozen_output(sigmas, name, apart, *call))
    return float(F.cross_entropy(logits[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten())), logits


@pytest.mark.parametrize("apart", [False, True])
def test_the_table_and_the_copy_are_those_of_the_definition(apart, monkeypatch):
    monkeypatch.setattr("normscope.api.running.BATCH", 18)  # several batches
    model = random_model("gpt2").double().train()
    modules, state = list(model.modules()), copy.deepcopy(model.state_dict())
    table = normscope.removable(model, TOKENS, first_apart=apart)
    assert list(model.modules()) == modules
    assert model.training
    assert all(torch.equal(t, state[name]) for name, t in model.state_dict().items())
    names = [name for name, m in model.named_modules() if isinstance(m, nn.LayerNorm)]
    assert table["norm"].tolist() == [*names, "all"]
    model.eval()
    loss, before = by_definition(model, [], apart)
    for row in table.to_dict("records"):
        chosen = names if row["norm"] == "all" else [row["norm"]]
        frozen_loss, after = by_definition(model, chosen, apart)
        assert row["loss"] == pytest.approx(loss, rel=1e-6)
        assert row["frozen_loss"] == pytest.approx(frozen_loss, rel=1e-6)
        assert row["added_loss"] == pytest.approx(frozen_loss - loss, abs=1e-5)
        change = float((after - before).abs().max() / before.abs().max())
        assert row["change"] == pytest.approx(change, rel=1e-6)
        assert row["removable"] == ("near" if row["added_loss"] <= 0.01 else "no")
        with torch.no_grad():
            removed: Any = normscope.remove(model, TOKENS, chosen, first_apart=apart)
            torch.testing.assert_close(removed(TOKENS).logits, after)


def test_models_of_the_project_lose_norms():
    torch.manual_seed(0)
    sizes = Model(n_layer=1, n_head=2, n_embd=8, block_size=9)
    model = Transformer(sizes, ARMS["rmsnorm"].norm, "pre", 300)
    table = normscope.removable(model, TOKENS, ["final_norm"])
    assert table["norm"].tolist() == ["final_norm", "all"]
    removed = normscope.remove(model, TOKENS)
    frozen = [name for name, m in removed.named_modules() if isinstance(m, FrozenNorm)]
    assert frozen == ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]
    assert all(module.training for module in removed.modules())
    assert not any(isinstance(m, FrozenNorm) for m in model.modules())


class Sphere(nn.Module):
    """A language model of a LayerNorm whose tokens have lengths of a given spread."""

    def __init__(self, spread: float, growth: float = 1.0) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(0)
        rows = torch.randn(7, 6, generator=g)
        rows = F.normalize(rows - rows.mean(-1, keepdim=True), dim=-1) * math.sqrt(6)
        rows *= 1 + spread * torch.rand(7, 1, generator=g)
        self.embedding = nn.Embedding.from_pretrained(rows)
        self.norm, self.growth = nn.LayerNorm(6), growth
        self.unused = nn.LayerNorm(6)

    def forward(self, tokens: Tensor) -> Tensor:
        return (self.growth * self.norm(self.embedding(tokens))).exp()


def test_a_norm_of_tokens_on_a_sphere_is_exact_and_others_are_not():
    tokens = torch.arange(6).repeat(2, 1)
    table = normscope.removable(Sphere(0.0), tokens).set_index("norm")
    assert table.loc["norm", "removable"] == table.loc["all", "removable"] == "exact"
    assert table.loc["norm", "sigma_std"] < 1e-6
    assert normscope.removable(Sphere(0.5), tokens)["removable"][0] != "exact"
    assert table.loc["unused", "problem"] == "the model does not run it on these tokens"
    assert table.loc["unused", "added_loss":"removable"].isna().all()  # pyright: ignore
    assert table.loc["all", "problem"] == "stay, as they cannot be frozen: unused"


@pytest.mark.parametrize(
    ("names", "tokens", "words"),
    [
        (
            [],
            TOKENS,
            r"names is empty: give norms of the model, which are transformer\.h\.0\.ln_1, ",
        ),
        (["transformer.ln_g"], TOKENS, "has no norm 'transformer.ln_g'; did you mean transfo"),
        (None, TOKENS[:, :1], r"shape \(5, 1\): give token numbers"),
        (None, TOKENS.repeat(1, 20), r"GPT2LMHeadModel fails in torch.float32 on tokens of shape"),
    ],
)
def test_what_cannot_be_removed_is_an_error_of_one_line(names, tokens, words):
    for function in (normscope.removable, normscope.remove):
        with pytest.raises(normscope.Explained, match=words) as e:
            function(random_model("gpt2"), tokens, names)
        assert "\n" not in str(e.value)


class Later(nn.Module):
    """Each position sees the mean of all."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(300, 6), nn.LayerNorm(6)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return self.norm(x + x.mean(1, keepdim=True)) @ self.embedding.weight.T


NOT_CAUSAL: dict[str, Callable[[], nn.Module]] = {
    "masked": lambda: transformers.BertForMaskedLM(config_of("bert", is_decoder=False)),
    "permuted": lambda: random_model("xlnet"),
    "encoder and decoder": lambda: transformers.BartForConditionalGeneration(config_of("bart")),
    "a user's": Later,
}


@pytest.mark.parametrize("kind", NOT_CAUSAL)
def test_a_model_that_sees_later_tokens_has_no_loss_of_the_next_token(kind):
    model = NOT_CAUSAL[kind]()
    for tokens in (TOKENS, TOKENS[:, :2], 0 * TOKENS[:, :3]):
        with pytest.raises(normscope.Explained, match=r"not a causal .*: .* later tokens"):
            normscope.removable(model, tokens)
    assert normscope.fold(normscope.remove(model, TOKENS), TOKENS).table is not None


@pytest.mark.parametrize(
    ("value", "words"), [(math.nan, "are not finite"), (0.0, "are all 0: train its head first")]
)
def test_logits_that_say_nothing_are_an_error(value, words):
    broken = random_model("gpt2_untied")
    nn.init.constant_(broken.lm_head.weight, value)
    for function in (normscope.removable, normscope.fold):
        with pytest.raises(normscope.Explained, match=words):
            function(broken, TOKENS)
