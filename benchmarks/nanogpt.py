"""Runs of karpathy/nanoGPT's train.py, as its users start it."""

import os
import subprocess
import sys
from pathlib import Path

# its README's configuration for a machine without a GPU
ON_CPU = (
    *("--device=cpu", "--compile=False", "--eval_iters=20", "--log_interval=1"),
    *("--n_layer=4", "--n_head=4", "--n_embd=128", "--block_size=64"),
    *("--batch_size=12", "--dropout=0.0"),
)


def check(checkout: Path) -> Path:
    """The checkout, with the data that its prepare.py makes."""
    data = checkout / "data" / "shakespeare_char"
    if not (checkout / "train.py").is_file() or not (data / "train.bin").is_file():
        raise SystemExit(
            f"error: {checkout} needs train.py and data/shakespeare_char/train.bin: clone "
            "karpathy/nanoGPT and run data/shakespeare_char/prepare.py there"
        )
    return checkout


def run(command: list[str], cwd: Path) -> str:
    """The output of a command; torch chooses its threads, as it does for its users."""
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def train(checkout: Path, out: Path, iters: int, *flags: str) -> str:
    """The log of one training of ``iters`` steps, evaluated at its end."""
    length = [f"--max_iters={iters}", f"--lr_decay_iters={iters}"]
    length += [f"--warmup_iters={min(100, iters // 4)}", f"--eval_interval={iters}"]
    command = [sys.executable, "train.py", "config/train_shakespeare_char.py", *length, *flags]
    return run([*command, f"--out_dir={out}"], checkout)
