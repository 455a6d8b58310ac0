"""Tables of the norms' backward pass: layers and surrogates by cell, costs, what predicts them."""

import sys
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.tables import collect, write_tables
from normscope.measure.unigram import unigram_loss
from normscope.schema import Strict
from normscope.studies.jacobian.recipe import Cell, JacobianTables
from normscope.studies.jacobian.tables import (
    SETTING,
    at_chosen_rate,
    by_layer,
    by_place,
    chosen,
    costs,
    predictions,
    predictors,
    with_margins,
)

COMPARED = [*SETTING, "learning_rate"]
LOSSES = [*Cell._fields, "seed", "val_loss", "diverged_at"]


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
    exact = {name: key for name, key in keys.items() if key["norm_backward"] == "exact"}
    layers = collect(flags.probes, "layers.csv", exact)
    # norm_backward and surrogates_in of a gradient are its surrogate's: the models are all exact
    settings = {name: {k: key[k] for k in COMPARED} for name, key in exact.items()}
    gradients = collect(flags.probes, "gradients.csv", settings)
    tables = {"layers": layers, "gradients": gradients}
    losses = collect(flags.models, "metrics.csv", keys)[LOSSES]
    tables["losses"] = losses.astype({"val_loss": float, "diverged_at": "Int64"})
    tables["chosen"] = chosen(tables["losses"])
    tables["layers_by_cell"] = by_layer(at_chosen_rate(layers, tables["chosen"]), recipe.level)
    data = dataset.read(flags.data)
    unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
    tables["costs"] = costs(tables["chosen"], recipe.level, unigram, recipe.margin_sds)
    tables["by_place"] = by_place(layers, tables["chosen"])
    tables["expected"] = predictors(tables["chosen"], layers, gradients)
    tables["expected"] = with_margins(tables["expected"], tables["costs"])
    tables["predictions"] = predictions(tables["expected"])
    write_tables(flags.out, tables)
    if layers.empty:
        print("no model has a norm layer: the tables of layers are empty", file=sys.stderr)


if __name__ == "__main__":
    report(main)
