"""The files of a job's models, its log and its timing."""

import hashlib
import json

import pandas as pd
import pytest
import safetensors.torch
import torch
from torch import nn

from normscope.io.files import SUMS
from normscope.measure.windows import SplitLoss
from normscope.train.files import METRICS, write_models
from normscope.train.outputs import Progress
from normscope.train.runtime import CPU
from normscope.train.trainer import Learner, Row, stacked_parameters
from normscope.train.weights import tensors_by_seed

FILES = ("models.safetensors", "config.json", "curves.csv", "metrics.csv")
ROW: Row = {"step": 1, "train_loss": 0.1 + 0.2, "grad_norm": 1e-30, "learning_rate": 1 / 3}
CURVES: dict[int, list[Row]] = {
    10: [
        {**ROW, "val_loss": 2.5},
        {**ROW, "step": 2, "val_loss": 1.25},
        {**ROW, "step": 3, "val_loss": 1.5},
    ],
    2: [{**ROW, "val_loss": 1 / 3}, {"step": 2, "train_loss": None}],
}


def learners() -> list[Learner]:
    """Two models of a stack; the second diverged in its second step."""
    models: list[nn.Module] = []
    for seed in CURVES:
        torch.manual_seed(seed)
        models.append(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
        models[-1](torch.randn(4, 3))
    stacked_parameters(models)
    made = [Learner(model, seed, CPU) for model, seed in zip(models, CURVES, strict=True)]
    for learner in made:
        learner.curve = CURVES[learner.seed]
        learner.val_loss = SplitLoss(1.5, 0.25)
        learner.second_moments = {"0.weight": torch.full((2, 3), 0.5 * learner.seed)}
    made[1].diverged_at = 2
    return made


def test_weights_and_moments_are_stored_by_seed(tmp_path):
    made = learners()
    write_models(tmp_path, made, {}, moments=True)
    stored = safetensors.torch.load_file(tmp_path / "models.safetensors")
    expected = {
        f"{learner.seed}.{name}": tensor
        for learner in made
        for name, tensor in learner.model.state_dict().items()
    }
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], t) for name, t in expected.items())
    assert not torch.equal(stored["10.0.weight"], stored["2.0.weight"])
    moments = tensors_by_seed(tmp_path / "moments.safetensors")
    assert {seed: float(t["0.weight"].mean()) for seed, t in moments.items()} == {2: 1.0, 10: 5.0}
    assert "moments.safetensors" in (tmp_path / SUMS).read_text()


def test_metrics_have_one_row_per_seed_without_losses_of_a_diverged_model(tmp_path):
    write_models(tmp_path, learners(), {})
    # 2 x 3 weights and 2 biases, then gain and bias of 2; running statistics do not count
    counts = {"parameters": 6 + 2 + 2 + 2}
    sound = {"val_loss": 1.5, "best_val_loss": 1.25, "val_loss_window_sd": 0.25}
    rows = [{"seed": 10, "train_loss": 0.1 + 0.2} | sound, {"seed": 2, "diverged_at": 2}]
    expected = pd.DataFrame([row | counts for row in rows], columns=METRICS).astype(float)
    read = pd.read_csv(tmp_path / "metrics.csv", dtype=float)
    pd.testing.assert_frame_equal(read, expected, check_exact=True)


def test_sums_come_last_and_hold_for_all(tmp_path):
    config = {"seed": 1, "model": {"n_embd": 3}}
    write_models(tmp_path, learners(), config)
    assert json.loads((tmp_path / "config.json").read_text()) == config
    sums = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in FILES]
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, FILES, strict=True)]
    assert (tmp_path / SUMS).read_text() == "".join(lines)  # as sha256sum reads it


@pytest.mark.parametrize("name", FILES)
def test_without_one_of_the_files_there_are_no_sums(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(OSError, match=name):
        write_models(tmp_path, learners(), {})
    assert not (tmp_path / SUMS).exists()


def test_the_log_says_every_few_seconds_how_far_the_job_is(monkeypatch, capsys):
    """6 models with 10 steps: a stack of 4, resumed at step 5, and one of 2."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    progress = Progress(60)
    for step in range(6, 11):
        now += 3
        progress.show(4, step, 0.5)
    progress.finished += 40
    for step in range(1, 11):
        now += 6
        progress.show(2, step, 0.25)
    assert progress.seconds == [3.0] * 5 + [6.0] * 10
    lines = capsys.readouterr().err.splitlines()
    # this process has taken 8 steps in 6 s, and 60 - 28 remain; then 16 in 12 s, and so on
    assert lines[:2] == [
        "step 28/60  loss 0.5000  24 s left",
        "step 36/60  loss 0.5000  18 s left",
    ]
    assert lines[2] == f"step 42/60  loss 0.2500  {21 / 22 * 18:.0f} s left"
    assert lines[-1] == "step 60/60  loss 0.2500  0 s left"
    assert len(lines) == 2 + 10
