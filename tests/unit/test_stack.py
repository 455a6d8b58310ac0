"""Ensembles: every model ends where its trainer alone would; what is done stays where it is."""

import io
import math
from collections.abc import Callable, Sequence

import pytest
import safetensors.torch
import torch
from recipes import DATA, recipe
from torch import Tensor
from torch.nn import functional as F

from normscope.measure import windows
from normscope.nn.model import Transformer
from normscope.train import ensemble
from normscope.train import trainer as training
from normscope.train.checkpoint import Checkpoints
from normscope.train.ensemble import Ensemble
from normscope.train.recipe import Run
from normscope.train.resume import run_to_end
from normscope.train.runtime import Runtime
from normscope.train.trainer import Trainer, make_optimizer

FP32 = Runtime("fp32", 1, "highest", 0.0)
ARMS = ["layernorm", "batchnorm", "scalenorm"]
DIFFERENT = [
    {"seed": 1, "learning_rate": 0.01, "warmup_steps": 0},
    {"seed": 2, "learning_rate": 0.003, "warmup_steps": 4},
    {"seed": 1, "learning_rate": 0.02, "min_lr": 0.02, "warmup_steps": 2},
]


def runs(arm: str = "layernorm", n_layer: int = 2, **changes) -> list[Run]:
    return [recipe(arm, n_layer=n_layer, **changes | own) for own in DIFFERENT]


def trainers(of: Sequence[Run], dtype: torch.dtype = torch.float32) -> list[Trainer]:
    made = [Trainer(run, DATA, FP32) for run in of]
    for trainer in made:
        trainer.model.to(dtype)
        trainer.optimizer = make_optimizer(trainer.model, trainer.run.training)
    return made


def to_end(trained: Trainer | Ensemble) -> None:
    while not trained.done:
        trained.advance()


def together_and_alone(
    of: Sequence[Run], dtype: torch.dtype = torch.float32
) -> tuple[list[Trainer], list[Trainer]]:
    together, alone = trainers(of, dtype), trainers(of, dtype)
    to_end(Ensemble(together))
    for trainer in alone:
        to_end(trainer)
    return together, alone


@pytest.fixture
def in_float64(monkeypatch):
    """Losses are not rounded to fp32, which is all that is not in the model's precision."""

    def loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)

    for module in (ensemble, training, windows):
        monkeypatch.setattr(module, "cross_entropy", loss)


def numbers(trainer: Trainer) -> list[dict[str, float]]:
    """Rows of the curve without their empty cells."""
    return [{k: v for k, v in row.items() if v is not None} for row in trainer.curve]


def assert_same(ours: Trainer, theirs: Trainer, tolerance: float) -> None:
    state, other = ours.model.state_dict(), theirs.model.state_dict()
    assert state.keys() == other.keys()
    for name, tensor in other.items():
        torch.testing.assert_close(state[name], tensor, rtol=tolerance, atol=tolerance, msg=name)
    assert numbers(ours) == [pytest.approx(row, rel=10 * tolerance) for row in numbers(theirs)]
    assert ours.diverged_at == theirs.diverged_at
    assert ours.step == theirs.step


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("arm", ARMS)
def test_every_model_ends_where_its_trainer_alone_does(arm):
    together, alone = together_and_alone(runs(arm), torch.float64)
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.step == 11
        assert_same(ours, theirs, 1e-10)
        assert ours.val_loss is not None
        assert theirs.val_loss is not None
        assert ours.val_loss.mean == pytest.approx(theirs.val_loss.mean, rel=1e-10)
    flat = [torch.cat([p.flatten() for p in t.model.parameters()]) for t in together]
    assert not any(torch.allclose(flat[i], flat[j], atol=1e-3) for i, j in ((0, 1), (0, 2), (1, 2)))
    running = [name for name, _ in together[0].model.named_buffers() if "running" in name]
    assert bool(running) == (arm == "batchnorm")


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize(
    ("placement", "residual", "init"),
    [("post", True, "xavier"), ("peri", True, "gpt2"), ("pre", False, "xavier")],
)
def test_it_does_so_in_every_shape(placement, residual, init):
    of = runs(placement=placement, residual=residual, init=init)
    for ours, theirs in zip(*together_and_alone(of, torch.float64), strict=True):
        assert_same(ours, theirs, 1e-10)


BOUND = 2.2  # nats; a rate of 100 leaves it at once, the others never


def diverging(arm: str) -> list[Run]:
    wild = recipe(arm, n_layer=2, seed=5, learning_rate=100.0, warmup_steps=0, loss_bound=BOUND)
    tame = runs(arm, loss_bound=BOUND)
    return [tame[0], wild, *tame[1:]]


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_a_model_that_diverges_stays_where_its_trainer_alone_does(arm):
    """Running statistics too, which the forward passes of the others would move."""
    together, alone = together_and_alone(diverging(arm), torch.float64)
    assert [t.diverged_at is not None for t in together] == [False, True, False, False]
    assert together[1].step < 11
    for ours, theirs in zip(together, alone, strict=True):
        assert_same(ours, theirs, 1e-9)


def poisoned(model: Transformer) -> None:
    with torch.no_grad():
        model.token_embedding.weight.fill_(math.nan)


def test_a_nan_in_one_model_reaches_no_other_and_moves_nothing():
    made, alone = trainers(runs()), trainers(runs())
    poisoned(made[1].model)
    to_end(Ensemble(made))
    assert (made[1].diverged_at, made[1].step) == (1, 0)
    assert made[1].curve == [{"step": 1, "train_loss": None}]
    for i in (0, 2):
        to_end(alone[i])
        assert_same(made[i], alone[i], 1e-5)


@pytest.mark.usefixtures("in_float64")
def test_a_model_that_is_done_earlier_keeps_its_running_statistics():
    """One of 5 steps beside one of 11."""
    of = [recipe("batchnorm", seed=1, steps=5), recipe("batchnorm", seed=2)]
    for ours, theirs in zip(*together_and_alone(of, torch.float64), strict=True):
        assert_same(ours, theirs, 1e-10)


def test_a_step_returns_the_mean_loss_of_the_models_that_are_not_done():
    made, alone = trainers(runs()), trainers(runs())
    poisoned(made[0].model)
    whole = Ensemble(made)
    whole.advance()
    losses = [[t.advance() for _ in range(2)][1] for t in alone[1:]]
    assert whole.advance() == pytest.approx(sum(losses) / 2, rel=1e-5)


def saved(made: Sequence[Trainer]) -> list[bytes]:
    return [safetensors.torch.save(dict(t.model.state_dict())) for t in made]


def resumed(tmp_path, of: list[Run], at: int, build: Callable[[list[Trainer]], Ensemble]):
    """Trainers of an ensemble that was checkpointed at a step and goes on in another process."""
    checkpoints = Checkpoints(tmp_path, "same", 100)
    first = build(trainers(of))
    for _ in range(at):
        first.advance()
    checkpoints.save(first.step, first.state())
    made, said = trainers(of), []
    run_to_end(build(made), checkpoints, say=said.append, progress=lambda *_: None)
    assert said == [f"continuing from step {at}"]
    return made


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
@pytest.mark.parametrize("at", [1, 6])
def test_a_resumed_ensemble_ends_with_the_same_bytes(tmp_path, arm, at):
    of, seen = diverging(arm), []
    whole = trainers(of)
    run_to_end(
        Ensemble(whole),
        Checkpoints(tmp_path / "whole", "same", 100),
        say=lambda _: None,
        progress=lambda step, _: seen.append(step),
    )
    assert seen == list(range(1, 12))
    made = resumed(tmp_path / "part", of, at, Ensemble)
    assert saved(made) == saved(whole)
    assert [t.curve for t in made] == [t.curve for t in whole]
    assert [t.val_loss for t in made] == [t.val_loss for t in whole]
    assert [t.diverged_at for t in made] == [t.diverged_at for t in whole]
    assert [t.step for t in made] == [t.step for t in whole]


def test_the_state_is_as_large_as_its_models():
    """Views of one memory are stored once."""
    made = trainers(runs())
    whole, buffer = Ensemble(made), io.BytesIO()
    whole.advance()
    torch.save(whole.state(), buffer)
    entries = sum(p.numel() for t in made for p in t.model.parameters())
    single = sum(len(part) for part in saved(made))
    assert len(buffer.getvalue()) < 3 * 4 * entries + single + 200_000


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_layer": 1}, "one shape, norm and placement"),
        ({"n_embd": 16}, "one shape, norm and placement"),
        ({"residual": False}, "one shape, norm and placement"),
        ({"init": "xavier"}, "one shape, norm and placement"),
        ({"arm": "rmsnorm"}, "one shape, norm and placement"),
        ({"placement": "post"}, "one shape, norm and placement"),
        ({"batch_size": 4}, "batches of one size"),
    ],
)
def test_models_that_differ_are_refused(changes, reason):
    of = runs()
    of[2] = recipe(**{"n_layer": 2} | changes)
    with pytest.raises(ValueError, match=reason):
        Ensemble(trainers(of))


@pytest.mark.parametrize("changes", [{"dropout": 0.1}, {"precision": "bf16"}])
@pytest.mark.parametrize("among", [1, 3])
def test_dropout_and_bf16_are_refused(changes, among):
    """In all models, or in the last alone."""
    of = runs()
    of[-among:] = runs(**changes)[-among:]
    with pytest.raises(ValueError, match=r"fp32, without dropout|one shape"):
        Ensemble(trainers(of))


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_afterwards_each_model_works_alone(arm):
    made = trainers(runs(arm))
    to_end(Ensemble(made))
    x = torch.randint(DATA.vocab_size, (3, 8), generator=torch.Generator().manual_seed(0))
    for trainer in made:
        weights = safetensors.torch.load(safetensors.torch.save(dict(trainer.model.state_dict())))
        run = trainer.run
        fresh = Transformer(run.model, run.norm, run.placement, DATA.vocab_size)
        fresh.load_state_dict(weights)
        with torch.no_grad():
            assert torch.equal(trainer.model.eval()(x), fresh.eval()(x))
    before = saved(made)
    made[1].model.train()
    made[1].model.zero_grad()
    made[1].model(x).square().sum().backward()
    torch.nn.utils.clip_grad_norm_(made[1].model.parameters(), 1.0)
    gradients = [p.grad for p in made[1].optimizer.parameters if p.grad is not None]
    made[1].optimizer.step(gradients, 0.01)
    after = saved(made)
    assert [b == a for b, a in zip(before, after, strict=True)] == [True, False, True]
