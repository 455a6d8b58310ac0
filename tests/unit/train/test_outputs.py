"""What a training writes, and how it is read back."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
import safetensors.torch
import torch
from recipes import DATA, recipe
from stored_models import LOST_AT, write
from torch import nn
from trainings import train

from normscope.io import stored
from normscope.io.files import SUMS
from normscope.io.stored import Damaged
from normscope.measure.windows import SplitLoss
from normscope.train.files import METRICS, write_models
from normscope.train.outputs import Progress
from normscope.train.recipe import Stack
from normscope.train.runtime import CPU
from normscope.train.trained import transformers
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


SEEDS = [10, 2, 2**40]  # as text, 10 comes before 2


@pytest.fixture
def folder(tmp_path) -> Path:
    """The files of three models, of which the second diverged."""
    return write(tmp_path / "job", recipe(seeds=SEEDS), [2.5, None, 1 / 3])


KINDS = [
    recipe("layernorm", dropout=0.5, seeds=SEEDS),
    recipe("batchnorm", "post", seeds=SEEDS),
    recipe("none", "none", tied_head=False, feedback="fa", linear_bias=True, seeds=SEEDS),
    recipe("rmsnorm", tied_head=False, feedback="dfa", norm_backward="projected", seeds=SEEDS),
    recipe("dyt_attention", "lns", qk_norm="all", init="gpt2_flat", final_norm=False, seeds=SEEDS),
]


@pytest.mark.parametrize("stack", KINDS, ids=lambda stack: stack.placement + stack.model.feedback)
def test_trained_models_and_their_recipe_come_back(tmp_path, stack):
    """By seed, in the order of numbers, each as it was and in evaluation mode."""
    trainer = train(stack)
    config = stack.model_dump() | {"threads": 1}
    write_models(tmp_path, trainer.learners, config)
    restored, models = transformers(tmp_path)
    assert restored == stack
    assert list(models) == sorted(SEEDS)
    tokens = torch.arange(16).view(2, 8) % DATA.vocab_size
    for learner in trainer.learners:
        model = models[learner.seed]
        assert not model.training
        tensors = learner.model.state_dict()
        assert list(model.state_dict()) == list(tensors)
        assert all(torch.equal(t, tensors[name]) for name, t in model.state_dict().items())
        assert torch.equal(model(tokens), learner.model.eval()(tokens))


def test_metrics_come_back_by_seed(folder, tmp_path):
    """Every digit of a loss, and seeds beyond those of a double."""
    table = stored.metrics(folder)
    assert ["seed", *table.columns] == METRICS
    assert table.index.tolist() == SEEDS
    assert table["val_loss"].tolist() == [2.5, pytest.approx(float("nan"), nan_ok=True), 1 / 3]
    assert table["diverged_at"].isna().tolist() == [True, False, True]
    assert table["diverged_at"][2] == LOST_AT
    table = stored.metrics(write(tmp_path / "lost", recipe(seeds=[1, 2]), [None, None]))
    assert table["diverged_at"].tolist() == [LOST_AT] * 2
    assert table["val_loss"].isna().all()


def load(folder: Path, name: str) -> object:
    return stored.metrics(folder) if name == "metrics.csv" else transformers(folder)


def damage_message(folder: Path, name: str) -> str:
    """The reason why a file of a job is damaged."""
    path = folder / name
    with pytest.raises(Damaged) as e:
        load(folder, name)
    start, end = f"{path} is damaged (", f"): remove {path.resolve()} and start again"
    assert str(e.value).startswith(start)
    assert str(e.value).endswith(end)
    return str(e.value)[len(start) : -len(end)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("models.safetensors", content) for content in (b"", b"}{" * 200)),
        *(("config.json", content) for content in (b"{", b"[]")),
        *(("metrics.csv", content) for content in (b"", b"seed,val_loss\n1,2\n")),
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_damaged_file_is_named_with_what_to_remove(folder, tmp_path, name, content, is_linked):
    (folder / name).write_bytes(content)
    if is_linked:
        place = tmp_path / "link"
        place.mkdir()
        for file in folder.iterdir():
            (place / file.name).symlink_to(file)
        damage_message(place, name)
    else:
        damage_message(folder, name)


@pytest.mark.parametrize("seeds", [SEEDS[:2], [*SEEDS, 1], [1, 2, 3]])
def test_weights_of_other_seeds_are_named(folder, tmp_path, seeds):
    other = write(tmp_path / "other", recipe(seeds=seeds), [1.0] * len(seeds))
    (other / "models.safetensors").replace(folder / "models.safetensors")
    reason = f"it holds seeds {sorted(seeds)}, its config.json {SEEDS}"
    assert damage_message(folder, "models.safetensors") == reason


def test_a_config_with_a_missing_or_wrong_value_is_named_with_its_key(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key in Stack.model_fields:
        path.write_text(json.dumps({name: v for name, v in config.items() if name != key}))
        assert damage_message(folder, "config.json") == f"KeyError('{key}')"
    for key, value in (("placement", "sideways"), ("seeds", [-1])):
        path.write_text(json.dumps(config | {key: value}))
        assert key in damage_message(folder, "config.json")
