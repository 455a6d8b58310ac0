"""Compare training on a GPU with nanoGPT on the same GPU.

    python benchmarks/gpu.py --nanogpt DIR [--models 96] [--seeds 3] [--rounds 3]

DIR is a checkout of karpathy/nanoGPT. In turn, R times:

1. nanoGPT's CPU configuration (2000 steps), which leaves a GPU idle: one run of its train.py, and
   E models of ours in one job. Prints models per hour of both, and ``grid ratio``.
2. nanoGPT's GPU configuration of this corpus (5000 steps, ``config/gpu.yaml``): one run of its
   train.py with ``compile``, and a job of ours with S seeds, in bf16. Prints seconds per model of
   both, the best validation losses, and ``gpu ratio``: nanoGPT's time divided by ours.

Both with LayerNorm's gain alone, as nanoGPT has it. nanoGPT estimates losses on 200 random batches,
we on the whole split.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd
import reference
import torch
from reference import quiet, with_steal

from normscope.config import load
from normscope.machine import chip
from normscope.nn.arms import ARMS
from normscope.pilot import read_project
from normscope.train.recipe import Stack

ROOT = Path(__file__).resolve().parents[1]
CPU_ITERS, GPU_ITERS = 2000, 5000
NORM = ARMS["layernorm_gain"].norm


def recipe(seeds: int, config: str | None, **training: object) -> Stack:
    """Models of the main study's sizes and training, one per seed, on the GPU."""
    main = load(read_project(ROOT, *([ROOT / config] if config else []))).main
    nanogpt = main.protocols["nanogpt"]
    return Stack(
        norm=NORM,
        placement="pre",
        seeds=list(range(seeds)),
        model=nanogpt.model,
        training=nanogpt.training.model_copy(update=training),
        device="cuda",
    )


def ours(stack: Stack, data: Path, out: Path) -> list[float]:
    """The best validation losses of a job's models."""
    flags = ["--recipe", stack.model_dump_json(), "--data", str(data), "--out", str(out)]
    command = [sys.executable, "scripts/train.py", "main", *flags, "--checkpoints", f"{out}-steps"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return pd.read_csv(out / "metrics.csv")["best_val_loss"].tolist()


def train_nanogpt(checkout: Path, out: Path, iters: int, *flags: str) -> list[float]:
    """The best validation loss of one run."""
    log = reference.train(checkout, out, iters, *flags)
    return [min(float(loss) for loss in re.findall(r"val loss ([\d.]+)", log))]


def grid(checkout: Path, data: Path, out: Path, models: int) -> float:
    """Ratio of models per hour, one stack over successive nanoGPT runs."""
    flags = [flag for flag in reference.ON_CPU if "device" not in flag]
    _, alone, _ = with_steal(
        lambda: train_nanogpt(checkout, out / "a", CPU_ITERS, "--device=cuda", *flags)
    )
    stack = recipe(models, None, eval_every=CPU_ITERS)
    _, together, _ = with_steal(lambda: ours(stack, data, out / "b"))
    print(f"models per hour: nanoGPT {3600 / alone:.0f}, ours {3600 * models / together:.0f}")
    return models * alone / together


def large(checkout: Path, data: Path, out: Path, seeds: int) -> float:
    """nanoGPT's seconds for a model of its GPU configuration, over ours."""
    flags = ("--device=cuda", "--compile=True", "--eval_interval=250", "--eval_iters=200")
    (best,), alone, _ = with_steal(lambda: train_nanogpt(checkout, out / "c", GPU_ITERS, *flags))
    stack = recipe(seeds, "config/gpu.yaml")
    losses, together, _ = with_steal(lambda: ours(stack, data, out / "d"))
    print(f"best validation loss: nanoGPT {best:.4f}, ours {[f'{x:.4f}' for x in losses]}")
    print(f"seconds per model: nanoGPT {alone:.0f}, ours {together / seeds:.0f}")
    return alone * seeds / together


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nanogpt", type=Path, required=True)
    parser.add_argument("--models", type=int, default=96, help="of the grid, in one job")
    parser.add_argument("--seeds", type=int, default=3, help="of the GPU configuration")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("error: torch finds no GPU that it can use")
    checkout = reference.check(args.nanogpt.resolve())
    data = checkout / "data" / "shakespeare_char"
    print(f"{torch.cuda.get_device_name()}; {chip()}")
    for name, measure, count in (("grid", grid, args.models), ("gpu", large, args.seeds)):
        ratios = []
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as out:
                ratios.append(quiet(partial(measure, checkout, data, Path(out), count)))
        print(f"{name} ratio {median(ratios):.1f}")


if __name__ == "__main__":
    main()
