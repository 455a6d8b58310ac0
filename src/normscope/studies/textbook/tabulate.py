"""What a tutorial says of LayerNorm and BatchNorm, measured: one table per statement."""

import pandas as pd

from normscope.io import dataset
from normscope.measure.windows import validation_windows
from normscope.studies.stage import TableInputs
from normscope.studies.textbook import tutorial
from normscope.studies.textbook.grid import TextbookTables
from normscope.studies.textbook.tables import TABLES
from normscope.train import runtime
from normscope.train.outputs import log
from normscope.train.trained import transformers


def tabulate(recipe: TextbookTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name; ``models`` are those of the main study."""
    runtime.start("fp32", inputs.threads)
    val = dataset.read(inputs.corpus).val
    affine = []
    for name in recipe.models:
        stack, models = transformers(inputs.models / name)
        tokens, _ = validation_windows(val, stack.model.block_size, recipe.windows)
        for seed, model in models.items():
            rows = tutorial.affine(model.double(), tokens)
            if not rows:
                log(f"{name}: no norm has token statistics; affine.csv has no row of it")
            affine += [{"seed": seed, **row} for row in rows]
    wild, wild_summary = tutorial.wild()
    return {
        "scratch": pd.DataFrame(tutorial.scratch()),
        "epsilon": pd.DataFrame(tutorial.small_tokens()),
        "affine": pd.DataFrame(affine, columns=TABLES["affine"].names),
        "sharing": pd.DataFrame(tutorial.sharing()),
        "batches": pd.DataFrame(tutorial.batches(recipe.level)),
        "wild": wild,
        "wild_summary": wild_summary,
        "undo": pd.DataFrame(tutorial.undo()),
    }
