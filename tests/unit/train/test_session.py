"""A training job: its stacks one after the other, whatever interrupts them, and what it tells."""

import gc
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import safetensors.torch
import torch
from jobs import EVERY, KINDS, SEEDS, Job
from recipes import recipe
from trainings import FP32, alone, problem_of

from normscope.errors import Explained
from normscope.io.stored import metrics
from normscope.train import session
from normscope.train.checkpoint import Checkpoints, RunInUse, locked
from normscope.train.outputs import TrainingFlags
from normscope.train.problem import Problem
from normscope.train.recipe import Stack
from normscope.train.runtime import Runtime
from normscope.train.trainer import Learner, Trainer


@pytest.mark.parametrize("in_step", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_job_writes_the_same_bytes(tmp_path, kind, in_step):
    """In the first stack and, where there are two, in the second; other numbers are drawn then."""
    whole = Job(tmp_path / "whole", KINDS[kind], in_step=in_step)
    total = whole.train()
    diverged = pd.read_csv(whole.out / "metrics.csv")["diverged_at"].notna().sum()
    assert diverged == (kind == "batchnorm, one diverges")
    parts = Job(tmp_path / "parts", KINDS[kind], in_step=in_step)
    for left in (total // 4, total // 2):
        assert parts.train(left) == left
        assert not parts.out.exists()
        torch.rand(5)
    parts.train()
    assert parts.sums() == whole.sums()


def test_it_may_be_interrupted_at_any_step(tmp_path, capsys):
    """Two models of 5 steps, then one, with a checkpoint after the fourth and the last."""
    stack = recipe("batchnorm", dropout=0.3, steps=5, seeds=SEEDS)
    whole = Job(tmp_path / "whole", stack, in_step=2)
    assert whole.train() == 2 * 5 + 5
    for left in range(2 * 5 + 5):
        job = Job(tmp_path / str(left), stack, in_step=2)
        job.train(left)
        capsys.readouterr()
        first, second = min(left // 2, 5), max(left - 2 * 5, 0)  # steps that were taken
        saved = [step if step == 5 else step - step % EVERY for step in (first, second)]
        assert job.train() == 2 * (5 - saved[0]) + 5 - saved[1]
        log = capsys.readouterr().err.splitlines()
        expected = [f"continuing from step {step}" for step in saved if step]
        assert [line for line in log if "continuing" in line] == expected
        assert job.sums() == whole.sums()


def test_a_finished_job_started_again_trains_nothing_and_writes_the_same_bytes(tmp_path):
    """The workflow may have lost the outputs before it has stored them."""
    job = Job(tmp_path, recipe(seeds=SEEDS), in_step=2)
    job.train()
    sums = job.sums()
    assert job.kept() == ["1x2/step-00000011.ckpt", "3x1/step-00000011.ckpt"]
    for path in job.out.iterdir():
        path.unlink()
    assert job.train() == 0
    assert job.sums() == sums


def test_models_are_written_in_the_order_of_the_seeds_however_they_were_in_step(tmp_path):
    seeds = [10, 2, 7]
    weights = []
    for in_step in (1, 2, 3):
        job = Job(tmp_path / str(in_step), recipe(seeds=seeds), in_step=in_step)
        job.train()
        assert pd.read_csv(job.out / "metrics.csv")["seed"].tolist() == seeds
        assert pd.read_csv(job.out / "curves.csv")["seed"].unique().tolist() == seeds
        weights.append(safetensors.torch.load_file(job.out / "models.safetensors"))
    for other in weights[1:]:
        assert other.keys() == weights[0].keys()
        for name, tensor in other.items():
            torch.testing.assert_close(tensor, weights[0][name], rtol=1e-5, atol=1e-5)


def fails_beyond(limit: int, where: str, built: list[Callable[[], object]]) -> type[Trainer]:
    """A trainer for whose stacks of more than ``limit`` models there is no memory."""

    class Small(Trainer):
        def __init__(self, problem: Problem, seeds: list[int], runtime: Runtime) -> None:
            gc.collect()
            assert [own for own in built if own() is not None] == []  # the others' memory is free
            super().__init__(problem, seeds, runtime)
            built.append(weakref.ref(self))
            if where == "built":
                self.fail()

        def fail(self) -> None:
            if len(self.learners) > limit:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")

        def advance(self) -> float:
            if where == "stepped" and self.step == 5:
                self.fail()
            return super().advance()

    return Small


@pytest.mark.parametrize("where", ["built", "stepped"])
def test_stacks_that_the_memory_cannot_hold_are_halved(tmp_path, where, monkeypatch, capsys):
    """5 models where 2 go in: 2 and 3, of which 1 and 2."""
    built: list[Callable[[], object]] = []
    monkeypatch.setattr(session, "Trainer", fails_beyond(2, where, built))
    stack = recipe(seeds=[1, 2, 3, 4, 5])
    job = Job(tmp_path, stack, in_step=5)
    job.train()
    assert len(built) == 5
    log = capsys.readouterr().err
    for n, parts in ((5, "2, then 3"), (3, "1, then 2")):
        assert f"{n} models at once exceed the memory of cpu: {parts}\n" in log
    weights = safetensors.torch.load_file(job.out / "models.safetensors")
    for seed in stack.seeds:
        for name, tensor in alone(problem_of(stack), seed).model.state_dict().items():
            torch.testing.assert_close(weights[f"{seed}.{name}"], tensor, rtol=1e-5, atol=1e-5)
    before = job.sums()
    again = job.train()  # the halves are finished, the wholes are tried again
    assert again == (0 if where == "built" else 5 + 3)
    assert job.sums() == before


def test_where_one_model_is_too_large_the_error_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(session, "Trainer", fails_beyond(0, "stepped", []))
    job = Job(tmp_path, recipe(seeds=SEEDS))
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        job.train()
    assert "3 models at once exceed the memory of cpu: 1, then 2\n" in capsys.readouterr().err
    assert not job.out.exists()


class Seen(Exception):
    """What checkpoints would be held for, and where they would lie."""


@pytest.fixture
def fingerprint(monkeypatch) -> Callable[[Job], str]:
    """Of the first stack of a job."""

    def seen(folder: Path, fingerprint: str, every: int) -> None:
        raise Seen(fingerprint)

    def of_job(job: Job) -> str:
        monkeypatch.setattr(session, "Checkpoints", seen)
        with pytest.raises(Seen) as e:
            job.train()
        return str(e.value)

    return of_job


def test_a_fingerprint_is_of_recipe_seeds_runtime_code_and_data(tmp_path, fingerprint, monkeypatch):
    stack, places = recipe(seeds=SEEDS), iter(range(100))

    def one(changed: Stack = stack, in_step: int = 3, **changes: Any) -> str:
        job = Job(tmp_path / str(next(places)), changed, in_step=in_step)
        code, data = changes.pop("code", None), changes.pop("data", None)
        if code:
            job.script.write_text(code)
        if data:
            job.data.write_bytes(data)
        for name, value in changes.items():
            setattr(job, name, value)
        return fingerprint(job)

    base = one()
    cuda = torch.device("cuda")
    different = {
        "seeds": one(recipe(seeds=[1, 2, 4])),
        "order": one(recipe(seeds=[1, 3, 2])),
        "in step": one(in_step=2),
        "steps": one(recipe(seeds=SEEDS, steps=12)),
        "norm": one(recipe("rmsnorm", seeds=SEEDS)),
        "device of the recipe": one(stack.model_copy(update={"device": "cuda"})),
        "device": one(runtime=Runtime("fp32", 1, "highest", 0.0, cuda)),
        "threads": one(runtime=Runtime("fp32", 2, "highest", 0.0)),
        "products": one(runtime=Runtime("fp32", 1, "medium", 0.0)),
        "code": one(code="import normscope.io.pins\n"),
        "more code": one(code="import normscope.io.pins; X = 1\n"),
        "data": one(data=b"other"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(torch, "__version__", "0.0")
        different["torch"] = one()
    assert len({base, *different.values()}) == 1 + len(different)
    # where files lie, how often they are saved, and seeds that are in another stack
    flags = TrainingFlags(out=tmp_path, checkpoints=tmp_path / "c", checkpoint_every=1, threads=4)
    assert one(flags=flags) == base
    assert one(recipe(seeds=[*SEEDS, 4])) == base


def test_a_job_in_use_is_refused_and_its_checkpoints_stay(tmp_path):
    job = Job(tmp_path, recipe(seeds=SEEDS))
    Checkpoints(job.checkpoints / "1x3", "other", 1).save(2, {"a": 1})
    with locked(job.checkpoints), pytest.raises(RunInUse, match="is training this run"):
        job.train()
    assert job.kept() == ["1x3/step-00000002.ckpt"]
    assert not job.timing.exists()


def test_a_store_that_cannot_be_written_is_an_error_before_the_work(tmp_path):
    job = Job(tmp_path, recipe())
    job.flags = job.flags.model_copy(update={"store": tmp_path / "nowhere"})
    with pytest.raises(Explained, match=r"nowhere cannot be written(.*)SNAKEMAKE_OUTPUT_CACHE"):
        job.train()
    assert not job.checkpoints.exists()


def test_timing_is_of_the_steps_of_this_process(tmp_path):
    """11 steps of two models in step and 11 of one, 8 of the first from a checkpoint."""
    job = Job(tmp_path, recipe(seeds=SEEDS), in_step=2)
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


def test_the_log_has_the_arithmetic_and_how_each_model_ended(tmp_path, capsys):
    job = Job(tmp_path, KINDS["batchnorm, one diverges"], in_step=2)
    job.train()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == FP32.described
    ends = [line for line in lines if line.startswith("seed ")]
    table = metrics(job.out)
    one, two, three = (f"seed {seed}: " for seed in SEEDS)
    at = table["diverged_at"][2]
    assert ends == [
        f"{one}validation loss {table['val_loss'][1]:.4f}",
        f"{two}diverged at step {at}: the loss is not finite or above the bound",
        f"{three}validation loss {table['val_loss'][3]:.4f}",
    ]


def test_learners_are_handed_on_trained(tmp_path, monkeypatch):
    """In the order of seeds, and none before all are."""
    written: list[list[Learner]] = []
    monkeypatch.setattr(session, "say", lambda line: None)
    job = Job(tmp_path, recipe(seeds=SEEDS), in_step=1)
    problem = problem_of(job.stack)
    keywords = {"in_step": 1, "code": [job.script], "write": written.append}
    session.train(job.flags, job.stack, problem, FP32, **keywords)
    assert [[learner.seed for learner in learners] for learners in written] == [SEEDS]
    assert all(learner.val_loss is not None for learner in written[0])
