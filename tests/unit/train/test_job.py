"""The training job of a sweep: pilot models at every rate, then the seeds at the best."""

import json
from pathlib import Path

import pandas as pd
import pytest
from recipes import DATA, recipe
from trainings import FP32

from normscope.io import dataset
from normscope.io.files import is_altered
from normscope.studies.study import MODEL_FILES
from normscope.train import files
from normscope.train.job import Job
from normscope.train.outputs import TrainingFlags
from normscope.train.plan import next_character
from normscope.train.problem import NextCharacter
from normscope.train.schedule import PILOT, Sweep
from normscope.train.trained import transformers
from normscope.train.trainer import Trainer

RATES = [1e-6, 0.01, 0.02]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name, content in dataset.files(DATA).items():
        (folder / name).write_bytes(content)
    return folder


def of_sweep(**changes) -> Sweep:
    stack = recipe(learning_rate=RATES[0], min_lr=RATES[0] / 10)
    fields = {
        "norm": stack.norm,
        "placement": stack.placement,
        "model": stack.model,
        "training": stack.training,
        "learning_rates": RATES,
        "pilot_seeds": [1, 2],
        "seeds": [11, 12],
    }
    return Sweep.model_validate(fields | changes)


def run(folder: Path, data: Path, one: Sweep) -> Path:
    out = folder / "out"
    flags = TrainingFlags(out=out, checkpoints=folder / "checkpoints")
    Job(flags, data, FP32, next_character, [Path(__file__)]).run(one)
    return out


def test_seeds_are_trained_at_the_pilots_best_rate(tmp_path: Path, data: Path):
    out = run(tmp_path, data, of_sweep())
    pilots = pd.read_csv(out / "pilot.csv")
    assert pilots[["learning_rate", "seed"]].to_numpy().tolist() == [
        [rate, seed] for rate in RATES for seed in (1, 2)
    ]
    losses = pilots.groupby("learning_rate")["val_loss"].mean()
    best = float(losses.index[int(losses.argmin())])
    assert best > RATES[0]  # a rate at which nothing is learned is not chosen
    stack, models = transformers(out)
    assert (stack.training.learning_rate, list(models)) == (best, [11, 12])

    # as a job trains them that knows the rate
    trainer = Trainer(NextCharacter(stack, DATA), stack.seeds, FP32)
    while not trainer.is_done:
        trainer.advance()
    trainer.write_back()
    files.write_models(tmp_path / "known", trainer.learners, {})
    one, other = (
        pd.read_csv(folder / "metrics.csv")["val_loss"] for folder in (out, tmp_path / "known")
    )
    pd.testing.assert_series_equal(one, other)
    assert not any(is_altered(out / name) for name in (*MODEL_FILES, PILOT))


def test_every_model_learns_its_text(tmp_path: Path, data: Path):
    other = dataset.encode("another alphabet, and fewer characters. " * 20)
    (data / "other").mkdir()
    for name, content in dataset.files(other).items():
        (data / "other" / name).write_bytes(content)
    seeds = {"seeds": [11, 111], "pilot_seeds": [101], "learning_rates": [0.01]}
    both = run(tmp_path / "both", data, of_sweep(**seeds, texts=["dataset", "other"]))
    losses = pd.read_csv(both / "metrics.csv").set_index("seed")["val_loss"]
    trained = transformers(both)[1]
    for seed, folder, text in ((11, data, DATA), (111, data / "other", other)):
        alone = run(tmp_path / str(seed), folder, of_sweep(**seeds | {"seeds": [seed]}))
        (loss,) = pd.read_csv(alone / "metrics.csv")["val_loss"]
        assert loss == losses[seed]
        assert trained[seed].token_embedding.num_embeddings == text.vocab_size
    chosen = pd.read_csv(both / "pilot.csv")["val_loss"]
    assert chosen.equals(pd.read_csv(tmp_path / "111/out/pilot.csv")["val_loss"])


def test_a_rate_at_which_models_diverge_is_not_chosen(tmp_path: Path, data: Path):
    out = run(tmp_path, data, of_sweep(learning_rates=[0.01, 1e6], pilot_seeds=[1]))
    pilots = pd.read_csv(out / "pilot.csv")
    assert pilots["val_loss"].isna().tolist() == [False, True]
    assert json.loads((out / "config.json").read_text())["training"]["learning_rate"] == 0.01


def test_an_interrupted_sweep_continues(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = run(tmp_path / "whole", data, of_sweep())
    advance, taken = Trainer.advance, []

    def interrupted(trainer: Trainer) -> float:
        taken.append(trainer.step)
        if len(taken) == 38:  # stacks of 11 steps: three of pilot models, then that of the seeds
            raise KeyboardInterrupt
        return advance(trainer)

    def counted(trainer: Trainer) -> float:
        taken.append(trainer.step)
        return advance(trainer)

    monkeypatch.setattr(Trainer, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", data, of_sweep())
    taken.clear()
    monkeypatch.setattr(Trainer, "advance", counted)
    out = run(tmp_path / "cut", data, of_sweep())
    assert len(taken) == 11  # finished models are not trained again
    assert (out / "SHA256SUMS").read_bytes() == (whole / "SHA256SUMS").read_bytes()
