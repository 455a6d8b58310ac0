"""A training job: its lock, checkpoints, stacks and log."""

import gc
import itertools
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
import safetensors.torch
import torch
from recipes import recipe
from trainings import EVERY, KINDS, SEEDS, Job, alone, problem_of

from normscope.train import session
from normscope.train.checkpoint import BrokenCheckpoint, Checkpoints, RunInUse, reserve
from normscope.train.outputs import TrainingFlags
from normscope.train.problem import Problem
from normscope.train.runtime import Runtime
from normscope.train.trainer import Trainer


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_job_writes_the_same_bytes(tmp_path, kind):
    """Interrupted in the first stack and in the second."""
    whole = Job(tmp_path / "whole", KINDS[kind], models_per_stack=2)
    total = whole.train()
    diverged = pd.read_csv(whole.out / "metrics.csv")["diverged_at"].notna().sum()
    assert diverged == (kind == "batchnorm, one diverges")
    parts = Job(tmp_path / "parts", KINDS[kind], models_per_stack=2)
    for left in (total // 4, total // 2):
        assert parts.train(left) == left
        assert not parts.out.exists()
        torch.rand(5)
    parts.train()
    assert parts.sums() == whole.sums()


def test_it_continues_from_its_last_checkpoint(tmp_path, capsys):
    """Two models of 5 steps, then one, with a checkpoint after the fourth and the last."""
    stack = recipe("batchnorm", dropout=0.3, steps=5, seeds=SEEDS)
    whole = Job(tmp_path / "whole", stack, models_per_stack=2)
    assert whole.train() == 2 * 5 + 5
    for left in (3, 8, 10, 14):
        job = Job(tmp_path / str(left), stack, models_per_stack=2)
        job.train(left)
        capsys.readouterr()
        first, second = min(left // 2, 5), max(left - 2 * 5, 0)  # steps that were taken
        saved = [step if step == 5 else step - step % EVERY for step in (first, second)]
        assert job.train() == 2 * (5 - saved[0]) + 5 - saved[1]
        log = capsys.readouterr().err.splitlines()
        expected = [f"continuing from step {step}" for step in saved if step]
        assert [line for line in log if "continuing" in line] == expected
        assert job.sums() == whole.sums()


@pytest.mark.parametrize(("bound", "end"), [(20.0, 11), (0.01, 0)])
def test_a_finished_job_started_again_trains_nothing(tmp_path, bound, end):
    """The workflow may have lost the outputs before it has stored them; or all models diverged."""
    job = Job(tmp_path, recipe(seeds=SEEDS, loss_bound=bound), models_per_stack=2)
    job.train()
    sums = job.sums()
    assert job.kept() == [f"{stack}/step-{end:08d}.ckpt" for stack in ("1x2", "3x1")]
    for path in job.out.iterdir():
        path.unlink()
    assert job.train() == 0
    assert job.sums() == sums


def test_models_are_written_in_the_order_of_the_seeds_for_stacks_of_any_size(tmp_path):
    seeds = [10, 2, 7]
    weights = []
    for models_per_stack in (1, 2):
        job = Job(
            tmp_path / str(models_per_stack), recipe(seeds=seeds), models_per_stack=models_per_stack
        )
        job.train()
        assert pd.read_csv(job.out / "metrics.csv")["seed"].tolist() == seeds
        assert pd.read_csv(job.out / "curves.csv")["seed"].unique().tolist() == seeds
        weights.append(safetensors.torch.load_file(job.out / "models.safetensors"))
    for other in weights[1:]:
        torch.testing.assert_close(other, weights[0], rtol=1e-5, atol=1e-5)


class Small(Trainer):
    """A trainer with memory for a limited number of models; earlier trainers must be freed."""

    limit = 2
    earlier: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    def __init__(self, problem: Problem, seeds: list[int], runtime: Runtime) -> None:
        gc.collect()
        assert not self.earlier
        super().__init__(problem, seeds, runtime)
        self.earlier.add(self)

    def advance(self) -> float:
        if self.step == 5 and len(self.learners) > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")
        return super().advance()


def test_stacks_that_exceed_the_memory_are_halved(tmp_path, monkeypatch, capsys):
    """5 models with memory for 2: 2 and 3, which become 1 and 2."""
    monkeypatch.setattr(session, "Trainer", Small)
    stack = recipe(seeds=[1, 2, 3, 4, 5])
    job = Job(tmp_path, stack, models_per_stack=5)
    job.train()
    log = capsys.readouterr().err
    for n, parts in ((5, "2, then 3"), (3, "1, then 2")):
        assert f"{n} models together exceed the memory of cpu: {parts}\n" in log
    weights = safetensors.torch.load_file(job.out / "models.safetensors")
    for seed in stack.seeds:
        for name, tensor in alone(problem_of(stack), seed).model.state_dict().items():
            torch.testing.assert_close(weights[f"{seed}.{name}"], tensor, rtol=1e-5, atol=1e-5)
    before = job.sums()
    assert job.train() == 5 + 3  # the whole stacks are tried again, their halves are finished
    assert job.sums() == before


def test_a_fingerprint_is_of_recipe_seeds_runtime_code_and_data(tmp_path, monkeypatch):
    stack, places = recipe(seeds=SEEDS), itertools.count()
    fingerprints: list[str] = []

    def record(folder: Path, fingerprint: str, every: int) -> None:
        fingerprints.append(fingerprint)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "Checkpoints", record)

    def one(changed: Any = stack, models_per_stack: int = 3, **changes: Any) -> str:
        """The fingerprint of the first stack of a job."""
        job = Job(tmp_path / str(next(places)), changed, models_per_stack=models_per_stack)
        for name, value in changes.items():
            if name in ("script", "data"):
                getattr(job, name).write_text(value)
            else:
                setattr(job, name, value)
        job.train(left=0)
        return fingerprints[-1]

    base = one()
    different = {
        "seeds": one(recipe(seeds=[1, 2, 4])),
        "order": one(recipe(seeds=[1, 3, 2])),
        "in step": one(models_per_stack=2),
        "steps": one(recipe(seeds=SEEDS, steps=12)),
        "norm": one(recipe("rmsnorm", seeds=SEEDS)),
        "device of the recipe": one(stack.model_copy(update={"device": "cuda"})),
        "device": one(runtime=Runtime("fp32", 1, "highest", 0.0, torch.device("cuda"))),
        "threads": one(runtime=Runtime("fp32", 2, "highest", 0.0)),
        "products": one(runtime=Runtime("fp32", 1, "medium", 0.0)),
        "code": one(script="import normscope.io.pins\n"),
        "more code": one(script="import normscope.io.pins; X = 1\n"),
        "data": one(data="other"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(torch, "__version__", "0.0")
        different["torch"] = one()
    assert len({base, *different.values()}) == 1 + len(different)
    # places of files, the interval of checkpoints, and seeds of another stack do not matter
    flags = TrainingFlags(out=tmp_path, checkpoints=tmp_path / "c", checkpoint_every=1, threads=4)
    assert one(flags=flags) == base
    assert one(recipe(seeds=[*SEEDS, 4])) == base


def test_a_job_in_use_is_refused_and_its_checkpoints_stay(tmp_path):
    job = Job(tmp_path, recipe(seeds=SEEDS))
    Checkpoints(job.checkpoints / "1x3", "other", 1).save(2, {"a": 1})
    with reserve(job.checkpoints), pytest.raises(RunInUse, match="is training this run"):
        job.train()
    assert job.kept() == ["1x3/step-00000002.ckpt"]
    assert not job.timing.exists()


def test_timing_is_of_the_steps_of_this_process(tmp_path):
    """11 steps of a stack of two and 11 of one model, 8 of the first from a checkpoint."""
    job = Job(tmp_path, recipe(seeds=SEEDS), models_per_stack=2)
    job.train(left=2 * 9)
    assert not job.timing.exists()
    job.train()
    row = pd.read_csv(job.timing, sep="\t").iloc[0]
    assert row["steps"] == 3 + 11
    assert 0 < row["cpu_time"] <= time.process_time() + 0.01  # of all that this process has done
    assert 0 <= row["ms_per_step"] / 1e3 <= row["s"] + 0.1
    job.timing.unlink()
    job.flags = job.flags.model_copy(update={"timing": None})
    job.train()
    assert not job.timing.exists()


HOLD_THE_LOCK = """
import sys
from pathlib import Path
from normscope.train.checkpoint import reserve

with reserve(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def state(step: int) -> dict:
    return {"w": torch.full((50,), float(step)), "curve": [{"step": step, "val_loss": None}]}


@pytest.fixture
def two(tmp_path) -> Checkpoints:
    """Generations 1 and 2."""
    checkpoints = Checkpoints(tmp_path / "checkpoints", "f", 1)
    for step in (1, 2):
        checkpoints.save(step, state(step))
    return checkpoints


def damage(path: Path, how: str) -> None:
    raw = bytearray(path.read_bytes())
    if how == "flipped":
        raw[400] ^= 1
    path.write_bytes(raw[: {"empty": 0, "cut": 900, "flipped": len(raw)}[how]])


def test_the_newest_of_two_generations_is_loaded(two):
    for step in (3, 10, 100):
        two.save(step, state(step))
    assert [p.name for p in two.files()] == ["step-00000100.ckpt", "step-00000010.ckpt"]
    step, loaded, notes = two.load()
    assert (step, notes) == (100, [])
    assert torch.equal(loaded["w"], state(100)["w"])
    assert loaded["curve"] == state(100)["curve"]


@pytest.mark.parametrize("how", ["empty", "cut", "flipped"])
def test_a_damaged_file_is_passed_over_and_two_are_an_error(two, how):
    newest, older = two.files()
    damage(newest, how)
    step, loaded, (note,) = two.load()
    assert step == 1
    assert torch.equal(loaded["w"], state(1)["w"])
    assert f"{newest} is truncated or altered" in note
    damage(older, how)
    with pytest.raises(BrokenCheckpoint, match=rf"remove {re.escape(str(two.directory))} to train"):
        two.load()


@pytest.mark.parametrize("last", [1, 2, 3])
def test_checkpoints_of_other_settings_are_removed(tmp_path, last):
    """Their steps are higher than those of the new ones."""
    old = Checkpoints(tmp_path, "f", 1)
    for step in (5, 6):
        old.save(step, state(step))
    new = Checkpoints(tmp_path, "g", 1)
    step, loaded, (note,) = new.load()
    assert (step, loaded) == (0, {})
    assert "other settings, data or code; starting at step 0" in note
    for step in range(1, last + 1):
        new.save(step, state(step))
    assert new.load()[0] == last


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "locked\n"
        for _ in range(2):
            message = f"process {first.pid} is training this run"
            with pytest.raises(RunInUse, match=message), reserve(tmp_path):
                pass
        first.send_signal(signal.SIGKILL)
        first.wait()
        with reserve(tmp_path):
            assert (tmp_path / "lock").read_text() == str(os.getpid())
