"""Runs of karpathy/nanoGPT's train.py, and the CPU time that the host stole meanwhile."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

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


T = TypeVar("T")

MOST_STEAL = 0.03  # largest share that a round may lose before it is repeated
TRIES = 3


def _ticks() -> tuple[int, int]:
    """Ticks of all cores since boot: stolen by the host, and in total."""
    # user nice system idle iowait irq softirq steal, in proc_stat(5)
    counts = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return counts[7], sum(counts)


def with_steal(measure: Callable[[], T]) -> tuple[T, float, float]:
    """Result and wall seconds of a measurement, and the share of CPU time stolen meanwhile."""
    (stolen, total), began = _ticks(), time.monotonic()
    result = measure()
    seconds, (stolen_now, total_now) = time.monotonic() - began, _ticks()
    return result, seconds, (stolen_now - stolen) / max(1, total_now - total)


def quiet(measure: Callable[[], T]) -> T:
    """Result of a round, printed with its steal and repeated if there was too much."""
    left = TRIES
    while True:
        result, seconds, steal = with_steal(measure)
        left -= 1
        is_quiet = steal <= MOST_STEAL
        verdict = "" if is_quiet else ", too much: again" if left else ", too much, and taken"
        print(f"  steal {steal:.1%} of {seconds:.0f} s{verdict}", flush=True)
        if is_quiet or not left:
            return result
