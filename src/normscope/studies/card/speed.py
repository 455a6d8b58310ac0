"""The cost of norms, as ratios to torch's LayerNorm and RMSNorm that are measured in turn."""

import math
import shutil
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, cast

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.nn.custom import CustomNorm
from normscope.nn.model import Transformer, cross_entropy
from normscope.nn.norms import build
from normscope.nn.recipe import Norm
from normscope.studies.card.recipe import Costs
from normscope.studies.card.tables import SPEED

NUMBERS = 2**18  # in a batch, so that all widths take about as long
LEAST_S = 0.002  # of a measured repetition
VOCABULARY = 65
PEERS = ("LayerNorm", "RMSNorm")  # of torch


def speed(recipe: Costs, device: torch.device) -> pd.DataFrame:
    """The table ``SPEED``: one row per norm, width and mode.

    The norms and torch's take turns, and a ratio is the median over rounds of the ratio in a round.
    Memory is counted by the tensors that a forward pass saves for the backward pass. The share of a
    training step is one minus the time of a step without norms over that with them.
    """
    modes = ["eager"]
    if recipe.compiles and shutil.which("c++"):
        modes.append("compiled")
    steps = {name: step_share(norm, recipe, device) for name, norm in recipe.norms.items()}
    rows: list[dict[str, Any]] = []
    for d in recipe.widths:
        x = torch.randn(NUMBERS // d, d, device=device)[None]
        built = {name: bare(build(norm, d)).to(device) for name, norm in recipe.norms.items()}
        peers: dict[str, nn.Module] = {
            "LayerNorm": nn.LayerNorm(d, device=device),
            "RMSNorm": nn.RMSNorm(d, device=device),
        }
        for mode in modes:
            norms = peers | built
            if mode == "compiled":
                torch._dynamo.reset()
                norms = {n: cast("nn.Module", torch.compile(norm)) for n, norm in norms.items()}
            times = in_turn(norms, x, recipe.rounds)
            kept = {name: memory(norm, x) for name, norm in norms.items()}
            of_peers = {f"saved_{name.lower()}": kept[name] for name in PEERS}
            for name in built:
                key = {"arm": name, "width": d, "mode": mode}
                others = {"saved": kept[name], "step": steps[name]}
                rows.append(key | times[name] | others | of_peers)
    return pd.DataFrame(rows, columns=SPEED.names).sort_values(
        SPEED.keys, kind="stable", ignore_index=True
    )


def bare(norm: nn.Module) -> nn.Module:
    """A norm without what normscope adds to a user's class."""
    if isinstance(norm, CustomNorm) and not (norm.is_flat or norm.is_random):
        return norm.inner
    return norm


def in_turn(norms: Mapping[str, nn.Module], x: Tensor, rounds: int) -> dict[str, dict[str, float]]:
    """Ratios of the times of each norm to those of torch's, medians over rounds.

    Args:
        norms: By name, with those of ``PEERS``.
        x: Tokens, (1, tokens, d).
        rounds: How often each has its turn.
    """
    leaf = x.detach().requires_grad_()
    repeats = {name: repetitions(norm, leaf) for name, norm in norms.items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in norms}
    for _ in range(rounds):
        for name, norm in norms.items():
            taken[name].append(passes(norm, leaf, repeats[name]))
    ratios = {}
    for name, times in taken.items():
        ours = list(zip(times, taken["LayerNorm"], taken["RMSNorm"], strict=True))
        ratios[name] = {
            "forward": median(a[0] / b[0] for a, b, _ in ours),
            "backward": median(a[1] / b[1] for a, b, _ in ours),
            "to_layernorm": median(sum(a) / sum(b) for a, b, _ in ours),
            "to_rmsnorm": median(sum(a) / sum(c) for a, _, c in ours),
        }
    return ratios


def repetitions(norm: nn.Module, x: Tensor) -> int:
    """How many passes take ``LEAST_S``; this also compiles and warms up."""
    passes(norm, x, 2)
    return max(1, math.ceil(LEAST_S / sum(passes(norm, x, 3))))


def passes(norm: nn.Module, x: Tensor, repeats: int) -> tuple[float, float]:
    """Seconds of a forward and of a backward pass, by ``clock``."""
    forward = backward = 0.0
    weights = [x, *norm.parameters()]
    for _ in range(repeats):
        began = clock(x)
        y = norm(x)
        middle = clock(x)
        torch.autograd.grad(y.sum(), weights)
        forward, backward = forward + middle - began, backward + clock(x) - middle
    return forward / repeats, backward / repeats


def clock(x: Tensor) -> float:
    """CPU seconds, which do not count the waiting for other programs; seconds if x is on a GPU."""
    if x.is_cuda:
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def memory(norm: nn.Module, x: Tensor) -> float:
    """Numbers that are kept for the backward pass, per channel of a token, without parameters."""
    own = {p.untyped_storage().data_ptr() for p in norm.parameters()}
    sizes: dict[int, float] = {}

    def keep(t: Tensor) -> Tensor:
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes() / x.element_size()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        y = norm(x.detach().requires_grad_())
        total = sum(sizes.values())
        del y
    return total / x.numel()


def step_share(norm: Norm, recipe: Costs, device: torch.device) -> float:
    """The share of a training step that the norms take."""
    steps = [
        stepper(model.to(device), recipe)
        for model in (
            Transformer(recipe.model, norm, "pre", VOCABULARY),
            Transformer(recipe.model, Norm(statistic="none"), "none", VOCABULARY),
        )
    ]
    at = torch.empty(0, device=device)
    for step in steps:
        step()
    ratios = []
    for _ in range(3 * recipe.rounds):
        with_norms, without = (seconds(step, at) for step in steps)
        ratios.append(without / with_norms)
    return max(0.0, 1 - median(ratios))


def stepper(model: Transformer, recipe: Costs) -> Callable[[], None]:
    """A function that takes a training step on random tokens, with torch's AdamW."""
    device = model.token_embedding.weight.device
    shape = (recipe.batch_size, recipe.model.block_size)
    tokens, targets = torch.randint(VOCABULARY, (2, *shape), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(model(tokens), targets).backward()
        optimizer.step()

    return step


def seconds(function: Callable[[], None], x: Tensor) -> float:
    """Seconds that a function takes, by ``clock``."""
    began = clock(x)
    function()
    return clock(x) - began
