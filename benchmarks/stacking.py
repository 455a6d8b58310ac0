"""Speed of models trained at once, beside the same models trained one after the other.

    python benchmarks/ensemble.py [--depths 4 12 24] [--models E] [--steps N] [--rounds R]

In one process, one thread, R times in turn: N steps of E models by their own trainers, then N steps
of an ensemble of such models, at the sizes of config.yaml's part depth.

Prints for each depth the medians in milliseconds a step and model, then ``ratio R``: the trainers'
time over the ensemble's, the median over rounds (least to greatest).
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import yaml

from normscope.config import load
from normscope.io import dataset
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.train import runtime
from normscope.train.ensemble import Ensemble
from normscope.train.recipe import Run
from normscope.train.trainer import Trainer

WARM_UP = 3


def seconds(step: Callable[[], object], steps: int) -> float:
    began = perf_counter()
    for _ in range(steps):
        step()
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("results/dataset"))
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 12, 24])
    parser.add_argument("--models", type=int, default=12)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    depth = load(yaml.safe_load(Path("config.yaml").read_text())).depth
    data, at = dataset.read(args.data), runtime.start("fp32", 1)
    steps = 2 * (WARM_UP + args.steps * args.rounds)  # more than are taken: no evaluation
    training = depth.training.model_copy(update={"steps": steps, "eval_every": steps})
    for n_layer in args.depths:
        model = Model(n_layer=n_layer, **depth.sizes.model_dump())
        shape = {"norm": ARMS["layernorm"].norm, "placement": "pre", "model": model}
        runs = [Run(**shape, seed=seed, training=training) for seed in range(args.models)]
        alone = [Trainer(run, data, at) for run in runs]
        ensemble = Ensemble([Trainer(run, data, at) for run in runs])

        def one_by_one(trainers: list[Trainer] = alone) -> None:
            for trainer in trainers:
                trainer.advance()

        for step in (one_by_one, ensemble.advance):
            seconds(step, WARM_UP)
        rounds = [
            (seconds(one_by_one, args.steps), seconds(ensemble.advance, args.steps))
            for _ in range(args.rounds)
        ]
        ratios = sorted(one / many for one, many in rounds)
        one, many = (median(r[k] for r in rounds) / args.steps / args.models for k in (0, 1))
        print(
            f"{n_layer} blocks, {args.models} models: alone {1e3 * one:.1f} ms, at once "
            f"{1e3 * many:.1f} ms a step and model; ratio {median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
