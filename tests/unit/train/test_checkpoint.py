"""Checkpoints: damaged files, other settings, two processes, a full disk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from normscope.train.checkpoint import BrokenCheckpoint, Checkpoints, RunInUse, reserve

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
