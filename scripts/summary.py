"""Rule summary: what a reader should know, in one page of Markdown."""

import json
from pathlib import Path

import pandas as pd
from pydantic_settings import CliApp

from normscope.arms import ARMS
from normscope.errors import report
from normscope.figure import count, divergences
from normscope.files import write_text
from normscope.recipe import Strict
from normscope.summary import gain_table, loss_table, published_table
from normscope.tables import markdown

FIGURES = {"loss": "Validation loss", "curves": "Loss curves", "gain": "Residual stream by depth"}

TEXT = """# normscope: summary

What normalization does inside a transformer, measured on text of {characters} distinct characters
({train:,} tokens to train on, {val:,} to validate). Each model has {n_layer} blocks of {n_head}
heads, width {n_embd} and a context of {block_size} tokens, and was trained for {steps} steps of
{batch_size} windows with products in {precision}; losses are fp32, over the whole validation split.
Trained models: {count}. {divergences}

## Published beside corrected

{published}

Corrected: {baseline}, mean and {level:.0%} t interval over n trained models.

## Validation loss

{losses}

n counts trained models (seeds). Intervals are Student's t at {level:.0%}; those of the differences
to {baseline}, taken seed by seed, hold together (Bonferroni). A difference is read as better or
worse only if its interval excludes 0 and there are seeds enough for an exact test to agree: the
sign flips of n paired differences cannot give a p below 2^(1-n), so that fewer than 6 seeds support
no claim at 95%.
{notes}

## Residual gain

{gains}

The factor by which a block multiplies the norm of the residual stream: a geometric mean over tokens
and models, and over blocks for a later block; where n > 1, with its {level:.0%} interval. The first
block lifts the embedding, which starts small. Position 0 is left out: it sees only itself. Post-LN
streams are renormalized at the end of every block, so that there the factor says how the norm's own
gain and bias differ between blocks.

## Figures

{figures}

Settings, versions, seeds and the hashes of all inputs: `manifest.json`. Tables for LaTeX:
`tables/`, numbers as macros: `numbers.tex`.
"""

NOTES = {
    "batch": """BatchNorm's statistics run over all positions while it trains, later ones included;
its validation loss is with running averages, which look at no other token.""",
    "pointwise": """DyT and Derf start at alpha = 0.5 in nanoGPT's initialization, whose embeddings
have a standard deviation of 0.02: their outputs start near zero. For language models the authors of
DyT tune alpha and scale the embedding by a learned factor that starts at sqrt(d) (Zhu et al. 2025,
arXiv:2503.10622); neither is done here.""",
}


class Flags(Strict):
    """Write summary.md."""

    runs: Path
    arms: Path
    gains: Path
    published: Path
    dataset: Path
    config: Path
    figures: Path
    baseline: str
    level: float
    out: Path


def notes(arms: set[str]) -> list[str]:
    """What a reader must know of the arms that are there."""
    norms = [ARMS[arm].norm for arm in arms]
    batch = any(norm.statistic == "batch" for norm in norms)
    pointwise = any(norm.elementwise for norm in norms)
    return [NOTES["batch"]] * batch + [NOTES["pointwise"]] * pointwise


def main() -> None:
    flags = CliApp.run(Flags)
    runs, arms = pd.read_csv(flags.runs), pd.read_csv(flags.arms)
    config, meta = json.loads(flags.config.read_text()), json.loads(flags.dataset.read_text())
    settings = {**config["model"], **config["training"], "baseline": flags.baseline}
    is_baseline = arms["arm"] + "-" + arms["placement"] == flags.baseline
    of_baseline = runs["arm"] + "-" + runs["placement"] == flags.baseline
    published = published_table(
        pd.read_csv(flags.published),
        settings,
        arms[is_baseline].iloc[0],
        runs.loc[of_baseline, "val_loss_window_sd"].mean(),
    )
    figures = []
    for name, title in FIGURES.items():
        caption = (flags.figures / f"{name}.txt").read_text()
        figures.append(f"![{title}](figures/{name}.svg)\n\n*{title}.* {caption}")
    text = TEXT.format(
        **settings,
        characters=meta["vocab_size"],
        train=meta["train_tokens"],
        val=meta["val_tokens"],
        count=count(runs),
        divergences=divergences(runs),
        published=markdown(published),
        level=flags.level,
        losses=markdown(loss_table(arms, flags.level)),
        notes="\n".join(notes(set(runs["arm"]))),
        gains=markdown(gain_table(pd.read_csv(flags.gains))),
        figures="\n".join(figures),
    )
    write_text(flags.out, text)


if __name__ == "__main__":
    report(main)
