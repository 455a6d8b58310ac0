"""Rule summary: what a reader should know, in one page of Markdown."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.depth import summary as depth
from normscope.depth.grid import Depth
from normscope.errors import report
from normscope.figure import count, divergences
from normscope.files import write_text
from normscope.jacobian import summary as jacobian
from normscope.jacobian.grid import Jacobian
from normscope.pretrained import summary as pretrained
from normscope.recall.grid import Recall
from normscope.recall.summary import section
from normscope.recipe import Strict
from normscope.stats import seeds_needed
from normscope.summary import (
    FIGURES,
    gain_table,
    is_covered,
    loss_table,
    notes,
    published_table,
)
from normscope.tables import markdown

BACKWARD = ("layers", "layers_by_cell", "chosen", "costs", "expected", "predictions")
DEPTH = ("rates", "by_shape", "losses", "trainability")
TEXTBOOK = ("scratch", "affine", "sharing", "batches", "wild_summary", "undo")
PRETRAINED = ("models", "by_model", "by_norm", "twins", "h25", "sensitivity")


class Flags(Strict):
    """Write summary.md."""

    runs: Path
    arms: Path
    gains: Path
    published: Path
    references: Path
    template: Path
    dataset: Path
    config: Path
    figures: Path
    cells: Path
    best: Path
    factors: Path
    recall: str = Field(description="the configuration of the decisive test as JSON")
    jacobian: Path = Field(description="directory of the tables of the norms' backward pass")
    grid: str = Field(description="the configuration of that part as JSON")
    depth: Path = Field(description="directory of the tables of signals by depth")
    depth_grid: str = Field(description="the configuration of that part as JSON")
    textbook: Path = Field(description="directory of the tables of LayerNorm from scratch")
    pretrained: Path = Field(description="directory of the tables of pretrained models")
    references_of_gain: Path = Field(description="published residual gains")
    stream: Path = Field(description="gain.csv of the models trained here")
    baseline: str
    level: float
    out: Path


def tables_in(directory: Path, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of a directory by their names."""
    return {name: pd.read_csv(directory / f"{name}.csv") for name in names}


def main() -> None:
    flags = CliApp.run(Flags)
    runs, arms = pd.read_csv(flags.runs), pd.read_csv(flags.arms)
    config, meta = json.loads(flags.config.read_text()), json.loads(flags.dataset.read_text())
    ours = {"baseline": flags.baseline, "train_bin_sha256": meta["sha256"]["train.bin"], **config}
    reference = json.loads(flags.references.read_text())
    is_baseline = arms["arm"] + "-" + arms["placement"] == flags.baseline
    of_baseline = runs["arm"] + "-" + runs["placement"] == flags.baseline
    published = published_table(
        pd.read_csv(flags.published),
        {flags.references.name: is_covered(reference, ours)},
        arms[is_baseline].iloc[0],
        runs.loc[of_baseline, "val_loss_window_sd"].mean(),
    )
    figures = []
    for name, title in FIGURES.items():
        caption = (flags.figures / f"{name}.txt").read_text()
        figures.append(f"![{title}](figures/{name}.svg)\n\n*{title}.* {caption}")
    recall = Recall.model_validate_json(flags.recall)
    tables = (flags.cells, flags.best, flags.factors)
    grid = Jacobian.model_validate_json(flags.grid)
    depth_grid = Depth.model_validate_json(flags.depth_grid)
    backward = tables_in(flags.jacobian, BACKWARD)
    of_models = tables_in(flags.pretrained, PRETRAINED)
    by_depth, textbook = tables_in(flags.depth, DEPTH), tables_in(flags.textbook, TEXTBOOK)
    text = flags.template.read_text().format(
        **section(recall, *(pd.read_csv(path) for path in tables)),
        **jacobian.section(grid, backward, flags.level),
        **depth.section(depth_grid, by_depth, textbook, flags.level),
        **pretrained.section(
            of_models, pd.read_csv(flags.references_of_gain), pd.read_csv(flags.stream), runs
        ),
        **config["model"],
        **config["training"],
        baseline=flags.baseline,
        needed=seeds_needed(arms["alpha"].iloc[0]),
        characters=meta["vocab_size"],
        train=meta["train_tokens"],
        val=meta["val_tokens"],
        count=count(runs),
        divergences=divergences(runs),
        published=markdown(published),
        level=flags.level,
        losses=markdown(loss_table(arms)),
        notes="\n".join(notes(set(runs["arm"]))),
        gains=markdown(gain_table(pd.read_csv(flags.gains))),
        figures="\n".join(figures),
    )
    write_text(flags.out, text)


if __name__ == "__main__":
    report(main)
