"""Training speed relative to nanoGPT: a grid of four runs each, alternating on the same cores.

    python benchmarks/training.py --nanogpt DIR [--iters N] [--rounds R] [--precision fp32|bf16]

DIR is a checkout of karpathy/nanoGPT. Its train.py runs the README's CPU configuration four times,
one after the other with all cores, as its users run it. Ours runs the same configuration, with the
same norm (LayerNorm with a gain and no bias), as the workflow schedules it: one-thread jobs side by
side, as many as there are cores. nanoGPT's seed is fixed, so that its four runs are one run; ours
have four seeds. All final models are scored on the whole validation split in fp32.

Steps per second are the simultaneous runs divided by the median time of a step, without evaluations
and start. Prints a line per round, also with the wall-clock time of the four whole processes, then
the losses, and last ``ratio R``: ours over nanoGPT's, the median over rounds.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

import reference
import safetensors.torch
import torch

from normscope.io import dataset
from normscope.measure.windows import as_tensor, split_loss
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.train import runtime
from normscope.train.recipe import Stack, Training

RUNS = 4
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
ROOT = Path(__file__).resolve().parents[1]
SIZES: dict[str, Any] = {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64}
NORM = ARMS["layernorm_gain"].norm  # nanoGPT's: a gain and no bias


@dataclass(frozen=True)
class Speed:
    """Of a grid of four runs: steps per second while training, and seconds for everything."""

    steps_per_s: float
    wall_s: float


def train_nanogpt(checkout: Path, out: Path, iters: int) -> Speed:
    """nanoGPT's runs, one after the other with all cores."""
    began, step_ms = time.perf_counter(), []
    for i in range(RUNS):
        log = reference.train(checkout, out / str(i), iters, *reference.ON_CPU)
        step_ms += [float(ms) for ms in re.findall(r"^iter .* time ([\d.]+)ms", log, re.MULTILINE)]
    return Speed(1e3 / median(step_ms), time.perf_counter() - began)


def ours(data: Path, out: Path, iters: int, precision: Literal["fp32", "bf16"]) -> Speed:
    """Our runs, one thread each, as many simultaneous ones as there are cores."""

    training = Training(
        steps=iters,
        batch_size=12,
        learning_rate=1e-3,
        min_lr=1e-4,
        warmup_steps=min(100, iters // 4),
        weight_decay=0.1,
        eval_every=iters,
        loss_bound=20,
        precision=precision,
    )

    def one(seed: int) -> float:
        """Train with a seed: milliseconds a step."""
        shape = {"norm": NORM, "placement": "pre", "model": Model(**SIZES)}
        recipe = Stack(**shape, seeds=[seed], training=training).model_dump_json()
        timing, checkpoints = out / f"{seed}.tsv", out / str(seed) / "checkpoints"
        flags = ["--recipe", recipe, "--data", str(data), "--out", str(out / str(seed))]
        flags += ["--checkpoints", str(checkpoints), "--timing", str(timing)]
        reference.run([sys.executable, "scripts/train.py", "main", *flags], ROOT)
        return float(timing.read_text().split()[-1])

    began, at_once = time.perf_counter(), min(RUNS, CORES)
    with ThreadPoolExecutor(at_once) as pool:
        step_ms = list(pool.map(one, range(RUNS)))
    return Speed(at_once * 1e3 / median(step_ms), time.perf_counter() - began)


def load_theirs(path: Path) -> dict[str, torch.Tensor]:
    """nanoGPT's weights under our names."""
    names = {"transformer.wte": "token_embedding", "transformer.wpe": "position_embedding"}
    names |= {"transformer.ln_f.weight": "final_norm.gain", "transformer.h": "blocks"}
    names |= {"ln_1.weight": "attention.before.gain", "attn.c_attn": "attention.f.qkv"}
    names |= {"attn.c_proj": "attention.f.proj", "ln_2.weight": "mlp.before.gain"}
    names |= {"mlp.c_fc": "mlp.f.fc", "mlp.c_proj": "mlp.f.proj"}
    weights = {}
    tensors = torch.load(path, weights_only=True)["model"]  # noqa: TID251 - tensors
    for key, value in tensors.items():
        new = key
        for old, ours in names.items():
            new = new.replace(old, ours)
        if key != "lm_head.weight" and not key.endswith("attn.bias"):
            weights[new] = value
    return weights


def score(weights: dict[str, torch.Tensor], data: dataset.Dataset) -> float:
    """Loss on the whole validation split, in fp32."""
    model = Transformer(Model(**SIZES), NORM, "pre", data.vocab_size)
    model.load_state_dict(weights)
    return split_loss(model, as_tensor(data.val), SIZES["block_size"]).mean


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--nanogpt", type=Path, required=True, help="a checkout of karpathy/nanoGPT"
    )
    parser.add_argument("--iters", type=int, default=500, help="steps of each run")
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args = parser.parse_args()
    checkout = reference.check(args.nanogpt.resolve())
    data_dir = checkout / "data" / "shakespeare_char"
    data = dataset.read(data_dir)
    ratios, losses = [], {"nanoGPT": [], "normscope": []}
    for i in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            a = train_nanogpt(checkout, out / "theirs", args.iters)
            b = ours(data_dir, out / "ours", args.iters, args.precision)
            ratios.append(b.steps_per_s / a.steps_per_s)
            for name, speed in (("nanoGPT", a), ("normscope", b)):
                print(
                    f"round {i + 1}: {name} {speed.steps_per_s:.1f} steps/s ({speed.wall_s:.0f} s)"
                )
            runtime.start("fp32", CORES)
            for j in range(RUNS):
                weights = load_theirs(out / "theirs" / str(j) / "ckpt.pt")
                losses["nanoGPT"].append(score(weights, data))
                stored = safetensors.torch.load_file(out / f"ours/{j}/models.safetensors")
                weights = {name.partition(".")[2]: t for name, t in stored.items()}
                losses["normscope"].append(score(weights, data))
    for name, values in losses.items():
        print(f"{name}: validation loss {mean(values):.4f}, {min(values):.4f} to {max(values):.4f}")
    print(f"ratio {median(ratios):.2f}")


if __name__ == "__main__":
    main()
