"""The frame of a training script: what its checkpoints hold for, its lock, its timing."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from recipes import recipe

from normscope.train.checkpoint import Checkpoints, RunInUse
from normscope.train.outputs import TrainingFlags
from normscope.train.runtime import Runtime
from normscope.train.session import session

FP32 = Runtime("fp32", 1, "highest", 0.0)
RECIPE = recipe()


class Place:
    """A script, its data and its flags in a directory."""

    def __init__(self, at: Path) -> None:
        self.script, self.data = at / "script.py", at / "train.bin"
        self.script.write_text("import normscope.io.provenance\n")
        self.data.write_bytes(b"data")
        self.timing = at / "timing.tsv"
        self.flags = TrainingFlags(
            out=at / "out", checkpoints=at / "checkpoints", timing=self.timing, checkpoint_every=7
        )

    def __call__(self, **changes: Any):
        given = {"flags": self.flags, "recipe": RECIPE, "steps": 3, "runtime": FP32}
        given |= {"script": self.script, "data": [self.data]} | changes
        first = [given.pop(k) for k in ("flags", "recipe", "steps", "runtime")]
        return session(*first, **given)

    def fingerprint(self, **changes: Any) -> str:
        with self(**changes) as (checkpoints, _):
            return checkpoints.fingerprint


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def test_a_fingerprint_is_of_recipe_runtime_code_and_data(place, tmp_path, monkeypatch):
    base = place.fingerprint()
    assert place.fingerprint() == base
    seen = {
        base,
        place.fingerprint(recipe=recipe(seed=2)),
        place.fingerprint(runtime=Runtime("fp32", 2, "highest", 0.0)),
        place.fingerprint(runtime=Runtime("fp32", 1, "medium", 0.0)),
        place.fingerprint(data=[]),
    }
    monkeypatch.setattr(torch, "__version__", "0.0")
    seen.add(place.fingerprint())
    monkeypatch.undo()
    place.data.write_bytes(b"other")
    seen.add(place.fingerprint())
    place.data.write_bytes(b"data")
    assert place.fingerprint() == base
    for i, code in enumerate(("import normscope.io.pins", "import normscope.io.pins; X = 1")):
        other = tmp_path / f"other-{i}.py"  # what a file does is read once a process
        other.write_text(f"{code}\n")
        seen.add(place.fingerprint(script=other))
    assert len(seen) == 9


def test_where_files_lie_and_how_often_they_are_saved_decides_nothing(place, tmp_path):
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.flags = other.flags.model_copy(update={"checkpoint_every": 1, "threads": 4})
    assert other.fingerprint() == place.fingerprint()


def test_a_run_in_use_is_refused_and_its_checkpoints_stay(place):
    held = Checkpoints(place.flags.checkpoints, "x", 1)
    held.save(2, {"a": 1})
    with held.lock():
        with pytest.raises(RunInUse, match="is training this run"), place():
            pytest.fail("two processes train one run")
        assert [p.name for p in held.files()] == ["step-00000002.ckpt"]
    assert not place.timing.exists()


def test_of_the_checkpoints_the_last_is_kept(place):
    with place() as (checkpoints, progress):
        assert checkpoints.every == 7
        for step in (1, 2):
            checkpoints.save(step, {"a": step})
            progress(step, 0.5)
        assert len(checkpoints.files()) == 2
    assert len(checkpoints.files()) == 1
    assert checkpoints.load() == (2, {"a": 2}, [])


def test_a_body_that_breaks_off_keeps_them_and_the_next_session_finds_them(place):
    def breaks(error: BaseException) -> None:
        with place() as (checkpoints, _):
            checkpoints.save(2, {"a": 5})
            raise error

    with pytest.raises(OSError, match="full"):
        breaks(OSError("full"))
    assert not place.timing.exists()
    with place() as (checkpoints, _):
        assert checkpoints.load() == (2, {"a": 5}, [])
    with pytest.raises(KeyboardInterrupt):
        breaks(KeyboardInterrupt())
    with place(recipe=recipe(seed=3)) as (checkpoints, _):
        step, state, (note,) = checkpoints.load()
    assert (step, state) == (0, {})
    assert "belongs to other settings" in note


def test_timing_is_written_of_the_steps_of_this_process(place):
    with place() as (_, progress):
        progress(2, 0.5)
        progress(3, 0.5)
        assert not place.timing.exists()
    head, row = place.timing.read_text().split("\n")[:2]
    assert head == "s\tcpu_time\tsteps\tms_per_step"
    seconds, cpu, steps, ms = row.split("\t")
    assert 0 < float(cpu) <= time.process_time() + 0.01  # of all that this process has done
    assert steps == "2"
    assert 0 <= float(ms) / 1e3 <= float(seconds) + 0.1


def test_timing_is_written_where_it_is_asked_for_alone(place):
    place.flags = place.flags.model_copy(update={"timing": None})
    with place():
        pass
    assert not place.timing.exists()


def test_the_log_begins_with_the_arithmetic(place, capsys):
    with place():
        pass
    assert FP32.described in capsys.readouterr().err
