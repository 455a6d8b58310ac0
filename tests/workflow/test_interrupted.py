"""Nothing finished is lost: Snakemake and its jobs are killed in the middle, then started again."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from project import ENGINES, Project, fresh

pytestmark = pytest.mark.long


@pytest.fixture
def long_runs(tmp_path: Path) -> Project:
    """A project with two jobs of some seconds, of two models each."""
    project = fresh(tmp_path / "project")
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    long = {"protocol": "nanogpt", "arms": ["layernorm"], "placements": ["pre"]}
    config["runs"] = [long | {"learning_rates": [0.001], "seeds": [1, 2, 3, 4]}]
    config["stack"] = 2
    config["training"] |= {"steps": 500, "eval_every": 250}
    (project.root / "config.yaml").write_text(yaml.safe_dump(config))
    return project


def test_killed_and_started_again_ends_with_the_same_bytes(long_runs: Project):
    env = os.environ | {"PATH": f"{ENGINES}{os.pathsep}{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    command = ["snakemake", "--cores", "2", "main"]
    with open(os.devnull, "w") as quiet:
        engine = subprocess.Popen(
            command, cwd=long_runs.root, env=env, stdout=quiet, stderr=quiet, start_new_session=True
        )
        checkpoints = long_runs.root / "results/main/checkpoints"
        while len(list(checkpoints.glob("*/*/step-00000250.ckpt"))) < 1:
            assert engine.poll() is None
            time.sleep(0.01)
        os.killpg(engine.pid, signal.SIGKILL)
        engine.wait()
    assert "cannot be locked" in long_runs.run(*command, ok=False)
    long_runs.run("snakemake", "--unlock")
    long_runs.run(*command)
    logs = "".join(
        p.read_text() for p in (long_runs.root / "results/logs/main_train").glob("*.log")
    )
    assert "continuing from step" in logs
    interrupted = long_runs.digests("results/main/models")
    long_runs.run("rm", "-r", "results", "store", ".snakemake")
    long_runs.run(*command)
    assert long_runs.digests("results/main/models") == interrupted
