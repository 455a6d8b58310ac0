"""The penalty on sigma before the final norm, against autograd of its formula; recorded scales."""

import pytest
import torch
from pydantic import ValidationError
from recipes import recipe
from torch import Tensor
from trainings import problem_of, trained

from normscope.nn.model import Transformer, cross_entropy
from normscope.nn.penalty import add_penalty

WEIGHT = 0.3


def drawn(*shape: int) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return 2 * torch.randn(*shape, generator=g, dtype=torch.float64) + 1


def penalty(x: Tensor) -> Tensor:
    """Written out: a mean over tokens."""
    return WEIGHT * x.var(-1, correction=0).mean()


def test_the_penalty_adds_its_gradient_and_returns_its_input():
    x, dy = drawn(2, 3, 5).requires_grad_(), drawn(2, 3, 5)
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
    for learner in trained(stack).learners:
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
