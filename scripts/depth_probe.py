"""Probe the models of one placement, block by block, at the start and after training."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset, stored
from normscope.io.csvfile import write_csv
from normscope.measure.evaluation import validation_windows
from normscope.nn.model import Transformer
from normscope.schema import PositiveInt, Strict
from normscope.studies.depth.measures import MEASURES
from normscope.studies.depth.probe import flatten, probed
from normscope.studies.depth.recipe import Place, Probe, Shape
from normscope.train import runtime
from normscope.train.outputs import say
from normscope.train.trained import transformers

COLUMNS = (*Shape._fields, "state", "seed", "block", *MEASURES)


class Flags(Strict):
    """Probe models block by block."""

    recipe: Place
    models: Path = Field(description="directory with a folder a training job")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for blocks.csv, a row a block of every model")
    threads: PositiveInt = 1


def models(
    place: Place, probe: Probe, trained: Path, vocab_size: int
) -> Iterator[tuple[Shape, str, int, Transformer]]:
    """Shape, state, seed and model: at the start, then trained, but for those that diverged."""
    shape = Shape(probe.arm, place.placement, probe.residual, probe.init, probe.depth)
    model = place.sizes.model(probe.depth, probe.residual, probe.init)

    for seed in probe.seeds:
        torch.manual_seed(seed)
        start = Transformer(model, probe.norm, place.placement, vocab_size)
        if probe.init == "gpt2_flat":
            flatten(start)
        yield shape, "start", seed, start
    for name in probe.trained:
        sound = stored.metrics(trained / name)["diverged_at"].isna()
        for seed, end in transformers(trained / name)[1].items():
            if sound[seed]:
                yield shape, "trained", seed, end


def main() -> None:
    flags = parse(Flags)
    place, data = flags.recipe, dataset.read(flags.data)
    device = runtime.start("fp32", flags.threads, place.device).device
    windows = validation_windows(data.val, place.sizes.block_size, place.windows)
    tokens, targets = (part.to(device) for part in windows)
    rows = []
    for probe in place.probes:
        for shape, state, seed, model in models(place, probe, flags.models, data.vocab_size):
            key = shape._asdict() | {"state": state, "seed": seed}
            rows += [key | row for row in probed(model.to(device), tokens, targets, place.spectra)]
        say(f"{probe.arm}, {probe.init}, {probe.depth} blocks: probed")
    write_csv(flags.out / "blocks.csv", pd.DataFrame(rows, columns=list(COLUMNS)))


if __name__ == "__main__":
    report(main)
