"""Measure what a tutorial says of LayerNorm and BatchNorm: tables, each of one statement."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.tables import write_tables
from normscope.measure.evaluation import validation_windows
from normscope.schema import PositiveInt, Strict
from normscope.studies.textbook import probe as textbook
from normscope.studies.textbook.recipe import TextbookTables
from normscope.train import runtime
from normscope.train.outputs import say
from normscope.train.trained import transformers


class Flags(Strict):
    """Measure what a tutorial says of LayerNorm and BatchNorm."""

    recipe: TextbookTables
    models: Path = Field(description="directory with a folder a training job")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for the tables")
    threads: PositiveInt = 1


def main() -> None:
    flags = parse(Flags)
    runtime.start("fp32", flags.threads)
    val = dataset.read(flags.data).val
    affine = []
    for name in flags.recipe.models:
        stack, models = transformers(flags.models / name)
        tokens, _ = validation_windows(val, stack.model.block_size, flags.recipe.windows)
        for seed, model in models.items():
            rows = textbook.affine(model.double(), tokens)
            if not rows:
                say(f"{name}: no norm has token statistics; affine.csv has no row of it")
            affine += [{"seed": seed, **row} for row in rows]
    vectors, summary = textbook.wild()
    tables = {
        "scratch": pd.DataFrame(textbook.scratch()),
        "epsilon": pd.DataFrame(textbook.small_tokens()),
        "affine": pd.DataFrame(affine, columns=["seed", *textbook.AFFINE]),
        "sharing": pd.DataFrame(textbook.sharing()),
        "batches": pd.DataFrame(textbook.batches(flags.recipe.level)),
        "wild": pd.DataFrame(vectors),
        "wild_summary": pd.DataFrame(summary),
        "undo": pd.DataFrame(textbook.undo()),
    }
    write_tables(flags.out, tables)


if __name__ == "__main__":
    report(main)
