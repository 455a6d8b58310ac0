"""Further training: nanoGPT's loop from a given model, which is not changed."""

import pytest
import torch
from recall_recipes import moved
from recipes import DATA, recipe
from torch import nn
from trainings import alone

from normscope.measure.frozen_norms import FrozenNorm, frozen
from normscope.measure.hooks import norm_layers
from normscope.measure.windows import as_tensor, split_loss
from normscope.nn.model import Transformer
from normscope.train.problem import NextCharacter
from normscope.train.recipe import Stack
from normscope.train.refine import FRESH, RATE, Continued, refined_losses
from normscope.train.trainer import learning_rate

STACK = recipe("rmsnorm", train_tokens=200, eval_tokens=30)
STEPS = 7
CPU = torch.device("cpu")


def model(stack: Stack = STACK) -> Transformer:
    torch.manual_seed(0)
    net = Transformer(stack.model, stack.norm, stack.placement, DATA.vocab_size)
    moved(net)
    return net.eval()


def without_norms(net: Transformer) -> nn.Module:
    batches = [NextCharacter(STACK, DATA).draw(torch.Generator().manual_seed(1))[0]]
    return frozen(net, list(norm_layers(net)), batches)


def losses(**models: nn.Module) -> dict[str, float]:
    return refined_losses(models, STACK, DATA, STEPS, CPU)


def test_the_loss_is_that_of_nanogpts_loop_at_a_tenth_of_the_peak_rate():
    """On the evaluated part of the text; the training is the model's, at a constant rate."""
    problem = Continued(model(), STACK, DATA, STEPS)
    t = problem.training
    rates = [learning_rate(step, t) for step in range(STEPS)]
    assert rates == pytest.approx([RATE * STACK.training.learning_rate] * STEPS)
    same = {"batch_size", "weight_decay", "grad_clip", "optimizer", "train_tokens", "eval_tokens"}
    assert t.model_dump(include=same) == STACK.training.model_dump(include=same)
    end = alone(problem, FRESH).model
    expected = split_loss(end, as_tensor(DATA.val[:30]), STACK.model.block_size)
    assert losses(it=model())["it"] == pytest.approx(expected.mean, rel=1e-6)


def test_a_model_and_one_with_frozen_norms_see_the_same_batches_and_are_not_changed():
    net = model()
    other = without_norms(net)
    assert sum(isinstance(module, FrozenNorm) for module in other.modules()) == 3
    before = [{k: v.clone() for k, v in m.state_dict().items()} for m in (net, other)]
    found = losses(whole=net, frozen=other)
    assert losses(again=other, whole=net) == {"again": found["frozen"], "whole": found["whole"]}
    assert found["frozen"] != found["whole"]
    for each, state in zip((net, other), before, strict=True):
        assert not each.training
        assert all(torch.equal(state[name], v) for name, v in each.state_dict().items())
