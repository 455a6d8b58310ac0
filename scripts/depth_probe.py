"""Probe the models of one placement, block by block, at the start and after training."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import safetensors.torch
import torch
from pydantic import Field
from torch import Tensor

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.csvfile import write_csv
from normscope.io.stored import damaged, read
from normscope.measure.evaluation import validation_windows
from normscope.nn.model import Transformer
from normscope.schema import PositiveInt, Strict
from normscope.studies.depth.measures import MEASURES
from normscope.studies.depth.probe import flatten, probed
from normscope.studies.depth.recipe import Kept, Place, Probe, Shape
from normscope.train import runtime
from normscope.train.outputs import say

COLUMNS = (*Shape._fields, "state", "seed", "block", *MEASURES)


class Flags(Strict):
    """Probe models block by block."""

    recipe: Place
    models: Path = Field(description="directory with a folder for every trained shape")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for blocks.csv, a row a block of every model")
    threads: PositiveInt = 1


def kept_models(path: Path, empty: Callable[[], Transformer]) -> dict[int, Transformer]:
    """The models of a file by seed, in order.

    Args:
        empty: makes a model of the shape that the file holds.

    Raises:
        Damaged: see ``normscope.io.stored``.
    """
    by_seed: dict[str, dict[str, Tensor]] = {}
    try:
        for name, tensor in safetensors.torch.load(path.read_bytes()).items():
            seed, _, parameter = name.partition(".")
            by_seed.setdefault(seed, {})[parameter] = tensor
        models = {int(seed): empty() for seed in by_seed}
        for seed, model in models.items():
            model.load_state_dict(by_seed[f"{seed}"])
    except (safetensors.SafetensorError, RuntimeError, ValueError) as e:
        raise damaged(path, f"it does not hold the models of its config.json: {e}") from e
    return dict(sorted(models.items()))


def diverged(path: Path) -> set[int]:
    """Seeds of which a model diverged at the schedule that is kept.

    Raises:
        Damaged: see ``normscope.io.stored``.
    """
    try:
        losses = pd.read_csv(path)
        kept = Kept.model_validate(read(path.with_name("config.json"), "kept")["kept"])
        at = losses[(losses[list(Kept.model_fields)] == list(dict(kept).values())).all(axis=1)]
        return set(at.loc[at["diverged_at"].notna(), "seed"])
    except (pd.errors.ParserError, pd.errors.EmptyDataError, KeyError) as e:
        raise damaged(path, f"{e}") from e


def models(place: Place, probe: Probe, trained: Path, vocab_size: int) -> Iterator[tuple]:
    """State, seed and model: at the start, then trained."""
    shape = Shape(probe.arm, place.placement, probe.residual, probe.init, probe.depth)
    model = place.sizes.model(probe.depth, probe.residual, probe.init)

    def empty() -> Transformer:
        return Transformer(model, probe.norm, place.placement, vocab_size)

    for seed in probe.seeds:
        torch.manual_seed(seed)
        start = empty()
        if probe.init == "gpt2_flat":
            flatten(start)
        yield shape, "start", seed, start
    if probe.trained:
        lost = diverged(trained / str(shape) / "losses.csv")
        kept = kept_models(trained / str(shape) / "models.safetensors", empty)
        for seed in probe.trained:
            if seed not in lost:
                yield shape, "trained", seed, kept[seed]


def main() -> None:
    flags = parse(Flags)
    runtime.start("fp32", flags.threads)
    place, data = flags.recipe, dataset.read(flags.data)
    tokens, targets = validation_windows(data.val, place.sizes.block_size, place.windows)
    rows = []
    for probe in place.probes:
        for shape, state, seed, model in models(place, probe, flags.models, data.vocab_size):
            key = shape._asdict() | {"state": state, "seed": seed}
            rows += [key | row for row in probed(model, tokens, targets, place.spectra)]
        say(f"{probe.arm}, {probe.init}, {probe.depth} blocks: probed")
    write_csv(flags.out / "blocks.csv", pd.DataFrame(rows, columns=list(COLUMNS)))


if __name__ == "__main__":
    report(main)
