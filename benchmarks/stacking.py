"""Compare the speed of training models in step with training them one after the other.

    python benchmarks/stacking.py [--device cpu|cuda] [--models 1 3 6 12] [--steps N] [--rounds R]

In one process, on the CPU with one thread, R times in turn: N steps of stacks of E models, for each
E, at the sizes of config.yaml: nanoGPT's CPU configuration (in bf16, as there), the Jacobian
study's small one, the decisive test's, and 12 blocks of the depth study. Tokens are random.

Prints a table of Markdown: milliseconds per step and model, the median over rounds, in brackets how
many times faster than alone (E = 1), the median over rounds, and last what the workflow does.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch

from normscope.config import load
from normscope.io.dataset import Dataset
from normscope.machine import chip
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.pilot import read_project
from normscope.studies.depth.recipe import Shape
from normscope.studies.recall.recipe import RecallStack
from normscope.studies.recall.train import RecallProblem
from normscope.train import runtime
from normscope.train.problem import NextCharacter, Problem
from normscope.train.recipe import Stack, Training
from normscope.train.stacking import models_per_stack
from normscope.train.trainer import Trainer

CONFIG = load(read_project(Path(__file__).parents[1]))
NORM = ARMS["layernorm"].norm
CHARACTERS = 65
FOREVER = 10**6  # steps: no evaluation comes between
WARM_UP = 3


def next_character(model: Model, training: Training) -> tuple[Problem, int, int]:
    """The problem, tokens of a batch, and width."""
    draws = np.random.default_rng(0).integers(CHARACTERS, size=(2, 10_000), dtype=np.uint16)
    data = Dataset(draws[0], draws[1], tuple(map(chr, range(CHARACTERS))))
    length = {"steps": FOREVER, "eval_every": FOREVER, "warmup_steps": 0}
    shape = {"norm": NORM, "placement": "pre", "model": model, "seeds": [0]}
    stack = Stack(**shape, training=training.model_copy(update=length))
    return NextCharacter(stack, data), training.batch_size * model.block_size, model.n_embd


def decisive() -> tuple[Problem, int, int]:
    task = CONFIG.recall.tasks["recall"].model_copy(update={"steps": FOREVER})
    stack = RecallStack(task=task, norm=NORM, learning_rate=1e-3, seeds=[0])
    return RecallProblem(stack), task.batch_size, task.n_embd


def problems() -> dict[str, tuple[Problem, int, int]]:
    nanogpt, small = CONFIG.main.protocols["nanogpt"], CONFIG.jacobian.protocols["small"]
    deep = CONFIG.depth.sizes.model(Shape("layernorm", "pre", True, "gpt2", 12))
    return {
        "nanoGPT's for CPUs": next_character(nanogpt.model, nanogpt.training),
        "Jacobian, small": next_character(small.model, small.training),
        "decisive test": decisive(),
        "depth, 12 blocks": next_character(deep, CONFIG.depth.training),
    }


def seconds(step: Callable[[], object], steps: int) -> float:
    """Of that many; a step ends with its losses in main memory."""
    began = perf_counter()
    for _ in range(steps):
        step()
    return perf_counter() - began


def measured(trainers: Sequence[Trainer], steps: int) -> list[float]:
    """Milliseconds per step and model of each, one after the other."""
    return [1e3 * seconds(t.advance, steps) / steps / len(t.learners) for t in trainers]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--models", type=int, nargs="+", default=[1, 3, 6, 12], help="E of stacks")
    parser.add_argument("--steps", type=int, default=10, help="timed steps of each in a round")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds")
    args = parser.parse_args()
    counts = sorted({1, *args.models})
    if min(args.steps, args.rounds, *counts) < 1:
        parser.error("--models, --steps and --rounds start at 1")
    on = torch.cuda.get_device_name() if args.device == "cuda" else f"one thread of {chip()}"
    print(f"torch {torch.__version__}, {on}\n")
    heads = ["alone", *(f"{n} in step" for n in counts[1:])]
    print(f"| ms a step and model | numbers in an activation | {' | '.join(heads)} | default |")
    print(f"|---|{'---|' * (len(heads) + 2)}")
    for name, (problem, tokens, width) in problems().items():
        at = runtime.start(problem.training.precision, 1, args.device)
        trainers = [Trainer(problem, range(n), at) for n in counts]
        measured(trainers, WARM_UP)
        rounds = [measured(trainers, args.steps) for _ in range(args.rounds)]
        cells = []
        for times in zip(*rounds, strict=True):
            ratio = median(first[0] / each for first, each in zip(rounds, times, strict=True))
            cells.append(f"{median(times):.2f} ({ratio:.2f})" if cells else f"{median(times):.2f}")
        default = "in step" if models_per_stack(2, args.device, tokens, width) > 1 else "alone"
        print(f"| {name} | {tokens * width:,} | {' | '.join(cells)} | {default} |", flush=True)


if __name__ == "__main__":
    main()
