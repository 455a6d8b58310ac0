"""Rule descend: the models of one placement, block by block, at the start and after training."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import safetensors.torch
import torch
from pydantic import Field
from pydantic_settings import CliApp
from torch import Tensor

from normscope import dataset, runtime
from normscope.arms import ARMS
from normscope.csvfile import write_csv
from normscope.depth.grid import Place, Probe, Shape
from normscope.depth.measures import MEASURES
from normscope.depth.probe import probed
from normscope.errors import report
from normscope.evaluation import validation_windows
from normscope.model import Transformer
from normscope.outputs import say
from normscope.recipe import Model, PositiveInt, Strict
from normscope.stored import damaged

COLUMNS = (*Shape._fields, "state", "seed", "block", *MEASURES)


class Flags(Strict):
    """Probe models block by block."""

    place: str = Field(description="which models, as JSON")
    trained: Path = Field(description="directory with a directory for every trained shape")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="CSV, a row a block of every model")
    threads: PositiveInt = 1


def kept_models(path: Path) -> dict[int, dict[str, Tensor]]:
    """The weights of a file by seed, without the models that diverged.

    Raises:
        Damaged: see ``normscope.stored``.
    """
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        losses = pd.read_csv(path.with_name("losses.csv"))
    except (safetensors.SafetensorError, pd.errors.ParserError) as e:
        raise damaged(path, str(e)) from e
    lost = set(losses.loc[losses["diverged_at"].notna(), "seed"])
    models: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        seed, _, parameter = name.partition(".")
        models.setdefault(int(seed), {})[parameter] = tensor
    return {seed: of_seed for seed, of_seed in models.items() if seed not in lost}


def models(place: Place, probe: Probe, trained: Path, vocab_size: int) -> Iterator[tuple]:
    """State, seed and model: at the start, then trained."""
    shape = Shape(probe.arm, place.placement, place.residual, probe.init, probe.depth)
    model = Model(
        n_layer=probe.depth, residual=place.residual, init=probe.init, **place.sizes.model_dump()
    )
    norm = ARMS[probe.arm].norm
    for seed in probe.seeds:
        torch.manual_seed(seed)
        yield shape, "start", seed, Transformer(model, norm, place.placement, vocab_size)
    weights = kept_models(trained / str(shape) / "models.safetensors") if probe.trained else {}
    for seed, of_seed in weights.items():
        empty = Transformer(model, norm, place.placement, vocab_size)
        empty.load_state_dict(of_seed)
        yield shape, "trained", seed, empty


def main() -> None:
    flags = CliApp.run(Flags)
    runtime.start("fp32", flags.threads)
    place, data = Place.model_validate_json(flags.place), dataset.read(flags.data)
    tokens, targets = validation_windows(data.val, place.sizes.block_size, place.windows)
    rows = []
    for probe in place.probes:
        for shape, state, seed, model in models(place, probe, flags.trained, data.vocab_size):
            key = shape._asdict() | {"state": state, "seed": seed}
            found = probed(model, tokens, targets, place.spectra)
            rows += [key | row for row in found]
        say(f"{probe.arm}, {probe.init}, {probe.depth} blocks: probed")
    write_csv(flags.out, pd.DataFrame(rows, columns=list(COLUMNS)))


if __name__ == "__main__":
    report(main)
