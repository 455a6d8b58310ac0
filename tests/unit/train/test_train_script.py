"""The training script: killed, on a full disk, with wrong flags."""

import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest
from recipes import recipe

OUTPUTS = ("models.safetensors", "config.json", "curves.csv", "metrics.csv")
STEPS = 60  # of a stack of two models, with a checkpoint after each step


class Script(processes.Script):
    """scripts/train.py on a small dataset, into one directory."""

    def __init__(self, data: Path, place: Path) -> None:
        self.out, self.checkpoints = place / "out", place / "checkpoints"
        stack = recipe("batchnorm_plain", dropout=0.1, steps=STEPS, seeds=[2, 1])
        paths = {"data": data, "out": self.out, "checkpoints": self.checkpoints}
        arguments = processes.flags(recipe=stack, checkpoint_every=1, **paths)
        super().__init__("train main", arguments, place / "log")

    def outputs(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in OUTPUTS}

    def newest(self) -> int:
        steps = [int(p.stem.split("-")[1]) for p in self.checkpoints.glob("2x2/step-*")]
        return max(steps, default=0)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> dict[str, bytes]:
    """What the script writes without an interruption, started from the command line."""
    script = Script(data, tmp_path_factory.mktemp("whole"))
    command = [sys.executable, str(script.path), *script.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"step {2 * STEPS}/{2 * STEPS}" in done.stderr
    assert script.newest() == STEPS  # until the outputs are in the store
    return script.outputs()


def test_a_killed_script_started_again_writes_the_same_bytes(tmp_path, data, whole):
    killed = Script(data, tmp_path)
    for step in (1, 20):
        assert killed.kill_when(lambda step=step: killed.newest() >= step) == -signal.SIGKILL
        assert killed.newest() >= step
        assert not killed.out.exists()
    killed.kill_when((killed.out / "models.safetensors").exists)
    killed.succeed()
    assert killed.outputs() == whole


def test_on_a_full_disk_the_script_stops_and_later_continues(tmp_path, data, whole):
    script = Script(data, tmp_path)
    script.kill_when(lambda: script.newest() >= 2)
    kept = script.newest()
    newest = script.checkpoints / f"2x2/step-{kept:08d}.ckpt"
    message = script.fail(largest_file=newest.stat().st_size // 2)
    assert "File too large while writing" in message
    assert "fix that and start again" in message
    assert f"step-{kept + 1:08d}.ckpt" in message
    assert script.newest() == kept
    assert not script.out.exists()
    assert f"continuing from step {kept}\n" in script.succeed()
    assert script.outputs() == whole
