"""Tables of signals by depth: curves by block, rates per block, losses, with intervals."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.tables import collect, write_tables
from normscope.measure.unigram import unigram_loss
from normscope.schema import Strict
from normscope.statistics.outcome import with_outcome
from normscope.studies.depth.recipe import DepthTables
from normscope.studies.depth.tables import (
    SCHEDULE,
    SHAPE,
    by_block,
    by_layer,
    by_shape,
    rates,
    sensitivity,
    trainability,
    warm_ups,
)

MODELS = [*SHAPE, *SCHEDULE, "seed", "val_loss", "diverged_at"]


class Flags(Strict):
    """Tables of signals and gradients by depth."""

    recipe: DepthTables
    models: Path = Field(description="directory with a folder a training job")
    probes: Path = Field(description="directory with a folder a probed placement")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for the tables")


def main() -> None:
    flags = parse(Flags)
    recipe, data = flags.recipe, dataset.read(flags.data)
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    unigram = unigram_loss(data.train, data.val[1 : recipe.eval_tokens], data.vocab_size)
    models = collect(flags.models, "metrics.csv", keys).reindex(columns=MODELS)
    losses = with_outcome(models, data.vocab_size, unigram).assign(unigram=unigram)
    tables = {"blocks": collect(flags.probes, "blocks.csv", {place: {} for place in recipe.places})}
    tables["losses"] = losses.astype({"diverged_at": "Int64"})
    tables["by_block"] = by_block(tables["blocks"], recipe.level)
    tables["rates"] = rates(tables["blocks"])
    tables["layers"] = by_layer(tables["rates"])
    tables["by_shape"] = by_shape(tables["rates"], recipe.level)
    tables["sensitivity"] = sensitivity(tables["losses"])
    tables["warm_ups"] = warm_ups(tables["losses"])
    tables["trainability"] = trainability(tables["losses"], recipe.level)
    write_tables(flags.out, tables)


if __name__ == "__main__":
    report(main)
