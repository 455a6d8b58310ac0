"""Speed of measuring residual gain, relative to the published method: one pass per prompt.

    python benchmarks/gain.py [--layers N] [--rounds R] [--threads T] [--folder DIR]

Builds a random model with the size of GPT-2 XL (or N blocks of it) in DIR and measures the 25
published prompts, alternating between the published method and ours. There is no tokenizer: one
token stands for each word or punctuation mark. The published method is a loop over prompts in fp32,
with the default matrix products of torch, the default attention of transformers, and hooks on the
blocks. Both run with all weights in memory, and with a quarter of them in memory and the others
offloaded to disk by accelerate. Start-up and loading are not timed, only what a pass reads.

Prints, as medians over R rounds (minimum to maximum):

- ``ratio``: time of the published method over ours, in memory
- ``matmul fraction``: 2 x parameters x real tokens / our time, over the rate of a large fp32
  product on this machine
- ``offloaded ratio``: time of the published method over ours, with offloaded weights; ``cached``
  with the files in the page cache, ``evicted`` without
"""

import argparse
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
import transformers
from scipy.stats import entropy
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from normscope.hub.architecture import find_body
from normscope.hub.batching import PromptTokens, batches
from normscope.hub.loading import ATTENTION, GB
from normscope.hub.measurement import rows, run_batches
from normscope.hub.prompts import read_prompts
from normscope.train import runtime

VOCABULARY = 50257
PRODUCT = 4096  # rows and columns of the large product
BUDGET = 0.25  # of the weights


class NoTokenizer:
    """Decodes nothing."""

    def decode(self, tokens: list[int]) -> str:
        return str(tokens)


def prompts() -> list[PromptTokens]:
    """The published prompts with random tokens, as many as they have words and marks."""
    texts = [p for p in read_prompts(Path("data/prompts.yaml")) if p.set == "benchmark"]
    g = torch.Generator().manual_seed(0)
    lengths = [len(re.findall(r"\w+|[^\w\s]", p.text)) for p in texts]
    tokens = [tuple(torch.randint(VOCABULARY, (n,), generator=g).tolist()) for n in lengths]
    return [PromptTokens(p, "off", t) for p, t in zip(texts, tokens, strict=True)]


def one_by_one(
    model: PreTrainedModel,
    sequences: list[PromptTokens],
    prepare: Callable[[], None] = lambda: None,
) -> list[list[float]]:
    """The published way: norms after every block at the last token, entropy of the prediction."""
    answers = []
    for sequence in sequences:
        prepare()
        norms: list[float] = []

        def keep(module: nn.Module, args: object, output: Tensor, norms=norms) -> None:
            stream = output if isinstance(output, Tensor) else output[0]
            norms.append(float(torch.norm(stream[0, -1]).cpu()))

        handles = [block.register_forward_hook(keep) for block in find_body(model).blocks]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([sequence.tokens])).logits
        for handle in handles:
            handle.remove()
        p = torch.softmax(logits[0, -1].float(), 0).numpy().astype(np.float64).clip(1e-10, 1)
        answers.append([norms[-1] / norms[-2], float(entropy(p / p.sum()))])
    return answers


def seconds(do: Callable[[], object]) -> float:
    began = perf_counter()
    do()
    return perf_counter() - began


def product_rate() -> float:
    """Floating-point operations a second of a large fp32 product, the best of five."""
    a, b = torch.randn(2, PRODUCT, PRODUCT)
    return 2 * PRODUCT**3 / min(seconds(lambda: a @ b) for _ in range(5))


def evict(folder: Path) -> None:
    """Remove the weights from the page cache, as on a machine without enough memory for them."""
    for path in folder.glob("*.safetensors"):
        with open(path, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def in_memory(
    folder: Path, sequences: list[PromptTokens], rounds: int, operations: float, fast: str
) -> None:
    """Alternate between the two methods; each uses its matrix products and its attention."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    body = find_body(model)
    settings = {"published": ("highest", "sdpa"), "ours": (fast, ATTENTION)}
    ways: dict[str, Callable[[], object]] = {
        "published": lambda: one_by_one(model, sequences),
        "ours": lambda: rows(
            run_batches(model, body, batches(sequences, "cpu")), body, NoTokenizer()
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):  # the first warms up
        for name, do in ways.items():
            products, attention = settings[name]
            torch.set_float32_matmul_precision(products)
            model.set_attn_implementation(attention)
            times[name].append(seconds(do))
    rate = product_rate()
    print(f"fp32 product: {rate / 1e9:.0f} GFLOP/s")
    for name in ways:
        print(f"in memory, {name}: {spread(times[name][1:])} s")
    pairs = zip(times["published"][1:], times["ours"][1:], strict=True)
    print(f"ratio {spread([a / b for a, b in pairs])}")
    print(
        f"matmul fraction {spread([operations / t / rate for t in times['ours'][1:]])}", flush=True
    )


def within_budget(
    folder: Path, sequences: list[PromptTokens], rounds: int, *, fast: str, budget_gb: float
) -> None:
    """Both methods with a quarter of the weights in memory, and accelerate reading the others."""
    with tempfile.TemporaryDirectory(dir=folder) as offloaded:
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            device_map="auto",
            max_memory={"cpu": int(budget_gb * GB)},
            offload_folder=offloaded,
        ).eval()
        body, made = find_body(model), batches(sequences, "cpu")
        for state, prepare in (("cached", lambda _: None), ("evicted", evict)):
            ours, published = [], []
            for _ in range(rounds):
                torch.set_float32_matmul_precision(fast)
                model.set_attn_implementation(ATTENTION)
                prepare(folder)
                outcomes = run_batches(model, body, made)
                ours.append(seconds(lambda: rows(outcomes, body, NoTokenizer())))  # noqa: B023
                torch.set_float32_matmul_precision("highest")
                model.set_attn_implementation("sdpa")
                published.append(
                    seconds(lambda: one_by_one(model, sequences, lambda: prepare(folder)))  # noqa: B023
                )
            print(f"{state}, published: {spread(published)} s")
            print(f"{state}, ours: {spread(ours)} s")
            ratios = [a / b for a, b in zip(published, ours, strict=True)]
            print(f"{state}, offloaded ratio {spread(ratios)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=48, help="blocks; GPT-2 XL has 48")
    parser.add_argument("--rounds", type=int, default=3, help="rounds")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--folder", type=Path, help="where the model is built; temporary")
    args = parser.parse_args()
    if min(args.layers, args.rounds, args.threads) < 1:
        parser.error("--layers, --rounds and --threads start at 1")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    arithmetic = runtime.start("fp32", args.threads)
    print(arithmetic.description)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        torch.manual_seed(0)
        size = GPT2Config(n_layer=args.layers, n_head=25, n_embd=1600, vocab_size=VOCABULARY)
        model = GPT2LMHeadModel(size)
        parameters = sum(p.numel() for p in model.parameters())
        model.save_pretrained(folder, max_shard_size="1GB")
        del model
        sequences = prompts()
        tokens = sum(len(s.tokens) for s in sequences)
        made = batches(sequences, "cpu")
        padded = sum(b.tokens.numel() for b in made)
        print(
            f"{args.layers} blocks, {parameters / 1e6:.0f} million parameters; {tokens} real "
            f"tokens in {len(made)} batches, {1 - tokens / padded:.0%} padding"
        )
        operations = 2.0 * parameters * tokens
        in_memory(folder, sequences, args.rounds, operations, arithmetic.matmul)
        within_budget(
            folder,
            sequences,
            args.rounds,
            fast=arithmetic.matmul,
            budget_gb=BUDGET * parameters * 4 / GB,
        )


if __name__ == "__main__":
    main()
