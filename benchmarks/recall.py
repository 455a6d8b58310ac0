"""Training speed relative to a peer's notebook: its training loop and ours, alternating.

    python benchmarks/recall.py --notebook FILE [--steps N] [--rounds R] [--threads T] [--arms A]

FILE is Rahman's notebook "Experiment 3: The Decisive Test", exported as text: a line ``In [None]:``
before the code of each cell. Its imports, classes and functions are taken as they are, not its
execution and plots; its train_model trains each arm at the notebook's sizes and rate, and so does
our Trainer, with other random numbers. Timing the peer's code means running it: FILE is
executed, without a sandbox, so give only a file that you trust.

Each measurement has a separate process, because ours sets the allocator and the precision of
products for a whole process. Both use T threads of the CPU. A step lasts from drawing its batch to
drawing the next; start-up and the first steps are left out.

Prints of each arm and side the median time of a step and the mean training loss of the last steps,
which should agree, then ``ratio R``: the notebook's time over ours, the median over rounds (least
to greatest).
"""

import argparse
import ast
import io
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from normscope.errors import Explained, run_script
from normscope.nn.arms import ARMS
from normscope.studies.recall.recipe import RecallStack, Task
from normscope.studies.recall.train import RecallProblem
from normscope.train import runtime
from normscope.train.trainer import Trainer

DRAW, TRAIN = "generate_associative_recall_batch", "train_model"
NAMES = ["layernorm", "manual_l2", "none", "batchnorm"]  # it takes any other name for none
NONE_RATE = 5e-4  # set in the cell that executes, which is not run; other arms have its Config's
WARM_UP = 10
LAST = 20  # steps in the mean loss


class Measured(NamedTuple):
    """Of one process: the median time of a step, and the mean loss at the end."""

    step_ms: float
    loss: float


def code(cell: str) -> list[ast.stmt]:
    """The statements of a cell that prose follows.

    They are the longest run of lines that parses; a heading parses, as a comment, and does no harm.
    """
    lines = cell.splitlines()
    for end in range(len(lines), 0, -1):
        try:
            return ast.parse("\n".join(lines[:end])).body
        except SyntaxError:
            continue
    return []


def definitions(path: Path) -> str:
    """The source of all that the notebook imports and defines, without what it executes."""
    if not path.is_file():
        raise Explained(f"{path} is not a file: export the notebook as text and give that")
    text = path.read_text(encoding="utf-8", errors="replace")
    _, *cells = re.split(r"^In \[.*\]:", text, flags=re.MULTILINE)
    if not cells:
        raise Explained(
            f"{path} has no code cells: export the notebook as text, with a line 'In [None]:' "
            "before the code of each"
        )
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    statements = [node for cell in cells for node in code(cell) if isinstance(node, kinds)]
    defined = {getattr(node, "name", None) for node in statements}
    if missing := [name for name in ("Config", DRAW, TRAIN) if name not in defined]:
        raise Explained(
            f"{path} does not define {', '.join(missing)}, or in a cell that does not parse: give "
            "the notebook of experiment 3, its cells plain Python without % and ! commands"
        )
    return "\n".join(map(ast.unparse, statements))


def execute(source: str) -> dict[str, Any]:
    """What the notebook defines, by name."""
    names: dict[str, Any] = {"__name__": "notebook"}
    try:
        exec(source, names)  # noqa: S102 - a notebook that its user names
    except ImportError as e:
        raise Explained(f"the notebook's imports fail: {e}: install what they name") from e
    return names


def plan(config: Any, arm: str, steps: int, seed: int) -> RecallStack:
    """Our model with the notebook's sizes and rate; an error where ours would be other work."""
    try:
        sizes = {"entities": config.N_ENTITIES, "attributes": config.M_ATTRIBUTES}
        sizes |= {"n_embd": config.EMBED_DIM, "batch_size": config.BATCH_SIZE}
        size = (config.NUM_HEADS, config.SEQ_LENGTH, config.VOCAB_SIZE)
        rate = NONE_RATE if arm == "none" else config.LEARNING_RATE
    except AttributeError as e:
        raise Explained(f"the notebook's Config: {e}: give the notebook of experiment 3") from e
    task = Task(kind="copy", steps=WARM_UP + steps, **sizes)
    wanted = (1, task.entities + task.attributes + 1, task.vocabulary)
    if size != wanted:
        raise Explained(
            f"NUM_HEADS, SEQ_LENGTH, VOCAB_SIZE are {size} in the notebook and {wanted} here, "
            "which is other work: set them so in the notebook"
        )
    return RecallStack(task=task, norm=ARMS[arm].norm, learning_rate=rate, seeds=[seed])


def measured(stack: RecallStack, clock: list[float], losses: list[float]) -> Measured:
    """From the clock in s, before the first step and after each, and the losses of all steps."""
    if (len(clock) - 1, len(losses)) != (stack.task.steps, stack.task.steps):
        raise Explained(
            f"{len(clock) - 1} batches and {len(losses)} losses in {stack.task.steps} steps: the "
            f"notebook's {TRAIN} must draw one and note one a step"
        )
    return Measured(1e3 * float(np.median(np.diff(clock)[WARM_UP:])), mean(losses[-LAST:]))


def train_notebook(stack: RecallStack, threads: int, source: str, arm: str) -> Measured:
    """The notebook's loop, unchanged: it draws a batch at the start of every step."""
    torch.set_num_threads(threads)
    torch.manual_seed(stack.seeds[0])
    np.random.seed(stack.seeds[0])
    names, clock = execute(source), []
    draw, config = names[DRAW], names["Config"]()
    config.TRAINING_STEPS, config.LEARNING_RATE = stack.task.steps, stack.learning_rate

    def timed(config: Any) -> Any:
        clock.append(perf_counter())
        return draw(config)

    names[DRAW] = timed  # its functions look each other up here
    with redirect_stdout(io.StringIO()):
        _, losses = names[TRAIN](config, arm, torch.device("cpu"))
    return measured(stack, [*clock, perf_counter()], losses)


def ours(stack: RecallStack, threads: int) -> Measured:
    """Our loop, in a process with the settings of the workflow."""
    trainer = Trainer(RecallProblem(stack), stack.seeds, runtime.start("fp32", threads))
    clock, losses = [perf_counter()], []
    while not trainer.is_done:
        losses.append(trainer.advance())
        clock.append(perf_counter())
    if diverged_at := trainer.learners[0].diverged_at:
        raise Explained(f"ours diverged at step {diverged_at}: try fewer --steps")
    return measured(stack, clock, losses)


def alone(side: Callable[..., Measured], *args: Any) -> Measured:
    """One side in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(side, *args).result()


def compare(arm: str, source: str, steps: int, rounds: int, threads: int) -> None:
    """Measure one arm in alternating rounds and print it."""
    config, peer, normscope = execute(source)["Config"](), [], []
    for seed in range(rounds):
        stack = plan(config, arm, steps, seed)
        peer.append(alone(train_notebook, stack, threads, source, arm))
        normscope.append(alone(ours, stack, threads))
    for name, side in (("notebook", peer), ("normscope", normscope)):
        ms, loss = median(m.step_ms for m in side), mean(m.loss for m in side)
        print(f"{arm}: {name} {ms:.2f} ms/step, loss {loss:.3f} at the end")
    ratios = [a.step_ms / b.step_ms for a, b in zip(peer, normscope, strict=True)]
    span = f"{min(ratios):.1f} to {max(ratios):.1f}"
    print(f"{arm}: ratio {median(ratios):.1f} ({span})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--notebook", type=Path, required=True, help="the notebook as text")
    parser.add_argument("--steps", type=int, default=100, help="timed steps of each run")
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of either side")
    parser.add_argument("--arms", nargs="+", choices=NAMES, default=NAMES)
    args = parser.parse_args()
    if min(args.steps, args.rounds, args.threads) < 1:
        parser.error("--steps, --rounds and --threads start at 1")
    source = definitions(args.notebook)
    for arm in args.arms:
        compare(arm, source, args.steps, args.rounds, args.threads)


if __name__ == "__main__":
    run_script(main)
