"""Tables of the norms' backward pass: layers by cell, and what surrogates and doses cost."""

import sys
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.tables import collect, write_tables
from normscope.measure.unigram import unigram_loss
from normscope.schema import Strict
from normscope.statistics.outcome import with_outcome
from normscope.studies.jacobian.recipe import SETTING, Cell, JacobianTables
from normscope.studies.jacobian.tables import (
    at_chosen_rate,
    by_layer,
    by_place,
    chosen,
    costs,
    parts,
    sigma,
    slopes,
    surrogates,
)

COMPARED = [*SETTING, "learning_rate"]
LOSSES = [*Cell._fields, "seed", "val_loss", "diverged_at"]
CURVES = [*Cell._fields, "seed", "step", "sigma"]


class Flags(Strict):
    """Tables of the norms' backward pass."""

    recipe: JacobianTables
    models: Path = Field(description="directory with a folder a training job")
    probes: Path = Field(description="directory with a folder a probe")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for the tables")


def main() -> None:
    flags = parse(Flags)
    recipe = flags.recipe
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    exact = {name: keys[name] for name in recipe.probed}
    layers = collect(flags.probes, "layers.csv", exact)
    # norm_backward and surrogates_in of a gradient are its surrogate's: the models are all exact
    settings = {name: {k: key[k] for k in COMPARED} for name, key in exact.items()}
    gradients = collect(flags.probes, "gradients.csv", settings)
    tables = {"layers": layers, "gradients": gradients}
    data = dataset.read(flags.data)
    unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
    losses = collect(flags.models, "metrics.csv", keys)[LOSSES]
    losses = losses.astype({"val_loss": float, "diverged_at": "Int64"})
    tables["losses"] = with_outcome(losses, data.vocab_size, unigram)
    picked = tables["chosen"] = chosen(tables["losses"])
    tables["layers_by_cell"] = by_layer(at_chosen_rate(layers, picked), recipe.level)
    tables["by_place"] = by_place(layers, picked)
    paid = tables["surrogates"] = surrogates(picked, layers, gradients)
    tables["costs"] = costs(paid, recipe.level)
    tables["slopes"] = slopes(paid)
    tables["parts"] = parts(paid, recipe.level)
    curves = collect(flags.models, "curves.csv", keys).reindex(columns=CURVES)
    tables["sigma"] = sigma(curves.dropna(subset="sigma"), picked, recipe.level)
    write_tables(flags.out, tables)
    if layers.empty:
        print("no model has a norm layer: the tables of layers are empty", file=sys.stderr)


if __name__ == "__main__":
    report(main)
