"""Time surrogate backward passes, relative to torch's LayerNorm.

    python benchmarks/surrogates.py [--steps N] [--rounds R] [--threads T]

In one process, N times in turn: torch's LayerNorm, then each surrogate, of LayerNorm and RMSNorm.
First the layer alone, forward and backward, on as many tokens as a training step has; then a whole
training step of the published protocol's Transformer.

Prints of each the median time, then ``ratio R``: its time over that of torch's LayerNorm, the
median over R rounds of such ratios (least to greatest).
"""

import argparse
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

import torch
from torch import nn

from normscope.measure.names import SURROGATES
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer, cross_entropy
from normscope.nn.norms import build
from normscope.nn.recipe import Model, NormBackward
from normscope.train import runtime
from normscope.train.optimizer import AdamW

RULES: tuple[NormBackward, ...] = ("exact", *SURROGATES)
WINDOWS, T, D, VOCABULARY = 32, 64, 128, 65  # of the published protocol
ARMS_MEASURED = ("layernorm", "rmsnorm")
PEER = "layernorm exact"  # torch's LayerNorm
WARM_UP = 5


def layer(arm: str, rule: NormBackward) -> Callable[[], None]:
    """Forward and backward of one norm."""
    norm = build(ARMS[arm].norm, D, rule)
    x, dy = torch.randn(WINDOWS, T, D, requires_grad=True), torch.randn(WINDOWS, T, D)
    wanted = [x, *norm.parameters()]

    def once() -> None:
        torch.autograd.grad(norm(x), wanted, dy)

    return once


def training_step(arm: str, rule: NormBackward) -> Callable[[], None]:
    """A step of the Transformer: loss, gradients, AdamW."""
    settings = Model(n_layer=4, n_head=4, n_embd=D, block_size=T, norm_backward=rule)
    model: nn.Module = Transformer(settings, ARMS[arm].norm, "pre", VOCABULARY)
    parameters = list(model.parameters())
    optimizer = AdamW(parameters, [0.01] * len(parameters), 0.9, 0.999)
    x, y = torch.randint(VOCABULARY, (2, WINDOWS, T))

    def step() -> None:
        gradients = torch.autograd.grad(cross_entropy(model(x), y), optimizer.parameters)
        optimizer.step(gradients, 1e-3)

    return step


def in_turn(work: Mapping[str, Callable[[], None]], steps: int) -> dict[str, float]:
    """Median milliseconds of each, one after the other, ``steps`` times."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for i in range(WARM_UP + steps):
        for name, do in work.items():
            began = perf_counter()
            do()
            if i >= WARM_UP:
                times[name].append(1e3 * (perf_counter() - began))
    return {name: median(values) for name, values in times.items()}


def compare(timed: Callable[..., Callable[[], None]], steps: int, rounds: int) -> None:
    """Measure in rounds and print."""
    work = {f"{arm} {rule}": timed(arm, rule) for arm in ARMS_MEASURED for rule in RULES}
    measured = [in_turn(work, steps) for _ in range(rounds)]
    for name in work:
        ratios = [r[name] / r[PEER] for r in measured]
        span = f"{min(ratios):.2f} to {max(ratios):.2f}"
        ms = median(r[name] for r in measured)
        line = f"{timed.__name__}, {name}: {ms:.3f} ms, ratio {median(ratios):.2f} ({span})"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40, help="timed steps of each in a round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    args = parser.parse_args()
    if min(args.steps, args.rounds, args.threads) < 1:
        parser.error("--steps, --rounds and --threads start at 1")
    print(runtime.start("fp32", args.threads).description)
    for timed in (layer, training_step):
        compare(timed, args.steps, args.rounds)


if __name__ == "__main__":
    main()
