"""The decisive test's model against torch's own attention, computed at every position."""

from collections.abc import Callable, Mapping

import pytest
import torch
from recall_recipes import KINDS, moved, task
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.recipe import Task
from normscope.studies.recall.tasks import draw

ALL = pytest.mark.parametrize(
    "arm", ["layernorm", "manual_l2", "scalenorm_gain", "batchnorm", "dyt"]
)
TOKEN_WISE = pytest.mark.parametrize("arm", ["layernorm", "manual_l2", "scalenorm_gain", "none"])
BATCH = pytest.mark.parametrize("arm", ["batchnorm", "batchnorm_plain"])
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


def assert_close(ours: Tensors, theirs: Tensors, tolerance: float) -> None:
    """To a tolerance relative to the largest entry of all."""
    assert ours.keys() == theirs.keys()
    scale = max(float(t.detach().abs().max()) for t in theirs.values())
    for name, expected in theirs.items():
        torch.testing.assert_close(ours[name], expected, rtol=0, atol=tolerance * scale)


def assert_same_step(
    ours: tuple[nn.Module, Tensor], theirs: tuple[nn.Module, Tensor], answers: Tensor, tol: float
) -> None:
    """Two models and their logits: the loss, and its gradient for every parameter."""
    losses = [F.cross_entropy(logits, answers) for _, logits in (ours, theirs)]
    assert_close({"logits": ours[1]}, {"logits": theirs[1]}, tol)
    assert_close({"loss": losses[0]}, {"loss": losses[1]}, tol)
    assert_close(gradients(ours[0], losses[0]), gradients(theirs[0], losses[1]), tol)


@TOKEN_WISE
@TASKS
@DTYPES
def test_the_query_alone_has_the_loss_and_gradients_of_the_whole_block(arm, kind, dtype, tolerance):
    model = model_of(arm, kind, dtype)
    tokens, answers = batch(kind)
    whole = model.head(whole_block(model, tokens)[:, -1])
    assert_same_step((model, model(tokens)), (model, whole), answers, tolerance)


@ALL
@TASKS
@DTYPES
@pytest.mark.parametrize("training", [True, False])
def test_everywhere_is_the_whole_block(arm, kind, dtype, tolerance, training):
    model = model_of(arm, kind, dtype)
    model(batch(kind, seed=3)[0])  # running statistics that are neither 0 nor 1
    model.train(training)
    tokens, _ = batch(kind)
    ours, theirs = model.everywhere(tokens), whole_block(model, tokens)
    assert_close({"out": ours}, {"out": theirs}, tolerance)


@TOKEN_WISE
@TASKS
def test_a_query_without_context_attends_to_itself(arm, kind):
    model = model_of(arm, kind)
    query = batch(kind)[0][:, -1:]
    expected = whole_block(model, query)[:, 0]
    torch.testing.assert_close(model.at_query(query), expected, rtol=0, atol=1e-12)


class Notebook(nn.Module):
    """The published BatchNorm block, of torch's layers only; the names are those of RecallModel."""

    def __init__(self, t: Task, affine: bool) -> None:
        super().__init__()
        d = t.n_embd
        self.embedding = nn.Embedding(t.vocabulary, d)
        self.attention = nn.MultiheadAttention(d, num_heads=1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.norm1, self.norm2 = (nn.BatchNorm1d(d, affine=affine) for _ in range(2))
        self.head = nn.Linear(d, t.classes)

    def forward(self, tokens: Tensor) -> Tensor:
        e = self.embedding(tokens)
        x = channels_last(self.norm1, e + self.attention(e, e, e)[0])
        return self.head(channels_last(self.norm2, x + self.mlp(x))[:, -1])


def channels_last(norm: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return norm(x.permute(0, 2, 1)).permute(0, 2, 1)


@BATCH
@TASKS
@DTYPES
def test_batchnorm_trains_and_evaluates_as_torchs_modules_do(arm, kind, dtype, tolerance):
    ours = model_of(arm, kind, dtype)
    theirs = Notebook(task(kind), affine=arm == "batchnorm").to(dtype)
    theirs.load_state_dict(ours.state_dict())
    for seed in (2, 3, 4):
        tokens, answers = batch(kind, seed)
        assert_same_step((ours, ours(tokens)), (theirs, theirs(tokens)), answers, tolerance)
        running = [{n: b for n, b in m.named_buffers() if b.dim()} for m in (ours, theirs)]
        assert len(running[0]) == 4
        assert_close(running[0], running[1], tolerance)
    counts = [int(m.state_dict()["norm1.num_batches_tracked"]) for m in (ours, theirs)]
    assert counts == [3, 3]
    tokens, _ = batch(kind)
    expected = theirs.eval()(tokens)
    assert_close({"logits": ours.eval()(tokens)}, {"logits": expected}, tolerance)


@ALL
@TASKS
def test_a_seed_starts_every_arm_as_torch_starts_its_modules(arm, kind):
    t = task(kind)
    torch.manual_seed(5)
    model = RecallModel(t, ARMS[arm].norm)
    torch.manual_seed(5)
    fresh = nn.ModuleDict(
        {
            "embedding": nn.Embedding(t.vocabulary, t.n_embd),
            "attention": nn.MultiheadAttention(t.n_embd, num_heads=1, batch_first=True),
            "mlp": nn.Sequential(
                nn.Linear(t.n_embd, 4 * t.n_embd),
                nn.GELU(),
                nn.Linear(4 * t.n_embd, t.n_embd),
            ),
            "head": nn.Linear(t.n_embd, t.classes),
        }
    ).state_dict()
    ours = {name: w for name, w in model.state_dict().items() if not name.startswith("norm")}
    assert ours.keys() == fresh.keys()
    assert all(torch.equal(ours[name], w) for name, w in fresh.items())
