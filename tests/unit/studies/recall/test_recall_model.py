"""The decisive test's model against torch's attention, computed at every position."""

from collections.abc import Mapping

import pytest
import torch
from recall_recipes import KINDS, moved, task
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.tasks import draw

ALL = pytest.mark.parametrize(
    "arm",
    ["layernorm", "manual_l2", "scalenorm_gain", "batchnorm", "batchnorm_plain", "dyt", "none"],
)
TASKS = pytest.mark.parametrize("kind", KINDS)
DTYPES = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["fp64", "fp32"]
)

Tensors = Mapping[str, Tensor]


def model_of(arm: str, kind: str, dtype: torch.dtype = torch.float64) -> RecallModel:
    torch.manual_seed(1)
    model = RecallModel(task(kind), ARMS[arm].norm).to(dtype)
    moved(model)
    return model


def batch(kind: str, seed: int = 2) -> tuple[Tensor, Tensor]:
    """Sequences; those of copy have token 0 twice where key 0 is in the context."""
    tokens, answers = draw(task(kind), 16, torch.Generator().manual_seed(seed))
    assert kind == "recall" or ((tokens == 0).sum(1) > 1).any()
    return tokens, answers


def whole_block(model: RecallModel, tokens: Tensor) -> Tensor:
    """The block's output at every position, by torch's attention module."""
    e = model.embedding(tokens)
    x = model.norm1(e + model.attention(e, e, e)[0])
    return model.norm2(x + model.mlp(x))


def gradients(model: nn.Module, value: Tensor) -> Tensors:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(value, parameters), strict=True))


def assert_close(ours: Tensors, reference: Tensors, tolerance: float) -> None:
    """To a tolerance relative to the largest entry of all."""
    assert ours.keys() == reference.keys()
    scale = max(float(t.detach().abs().max()) for t in reference.values())
    for name, expected in reference.items():
        torch.testing.assert_close(ours[name], expected, rtol=0, atol=tolerance * scale)


@ALL
@TASKS
@DTYPES
def test_logits_loss_and_gradients_are_those_of_the_whole_block(arm, kind, dtype, tolerance):
    """BatchNorm takes its statistics over all positions, as torch's does (tests of norms)."""
    model = model_of(arm, kind, dtype)
    tokens, answers = batch(kind)
    ours, whole = model(tokens), model.head(whole_block(model, tokens)[:, -1])
    losses = [F.cross_entropy(logits, answers) for logits in (ours, whole)]
    assert_close(
        {"logits": ours, "loss": losses[0]}, {"logits": whole, "loss": losses[1]}, tolerance
    )
    assert_close(gradients(model, losses[0]), gradients(model, losses[1]), tolerance)


@ALL
@TASKS
@DTYPES
@pytest.mark.parametrize("training", [True, False])
def test_everywhere_is_the_whole_block(arm, kind, dtype, tolerance, training):
    model = model_of(arm, kind, dtype)
    model(batch(kind, seed=3)[0])  # running statistics that are neither 0 nor 1
    model.train(training)
    tokens, _ = batch(kind)
    ours, whole = model.everywhere(tokens), whole_block(model, tokens)
    assert_close({"out": ours}, {"out": whole}, tolerance)


@pytest.mark.parametrize("arm", ["layernorm", "none"])
@TASKS
def test_a_query_without_context_attends_to_itself(arm, kind):
    model = model_of(arm, kind)
    query = batch(kind)[0][:, -1:]
    expected = whole_block(model, query)[:, 0]
    torch.testing.assert_close(model.at_query(query), expected, rtol=0, atol=1e-12)


@ALL
@TASKS
def test_a_seed_starts_every_arm_as_torch_starts_its_modules(arm, kind):
    t = task(kind)
    torch.manual_seed(5)
    model = RecallModel(t, ARMS[arm].norm)
    torch.manual_seed(5)
    d, fresh = t.n_embd, nn.Module()
    fresh.embedding = nn.Embedding(t.vocabulary, d)
    fresh.attention = nn.MultiheadAttention(d, num_heads=1, batch_first=True)
    fresh.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    fresh.head = nn.Linear(d, t.classes)
    ours = {name: w for name, w in model.state_dict().items() if not name.startswith("norm")}
    assert ours.keys() == fresh.state_dict().keys()
    assert all(torch.equal(ours[name], w) for name, w in fresh.state_dict().items())
