"""The sentences and tables of the main study, made from its tables alone."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from normscope.formats import INTEGER, decimals
from normscope.nn.arms import ARMS
from normscope.pages.section import Section
from normscope.pages.table import (
    Cell,
    Number,
    PageTable,
    Quantity,
    Row,
    count,
    estimate,
    field,
    fields_of,
    interval,
    number,
    setting,
    tabulate,
    text,
    to_rows,
)
from normscope.statistics.levels import FEWEST
from normscope.statistics.outcome import STUCK
from normscope.statistics.summary import select, summarize
from normscope.studies.arms import arm_label, mean, means
from normscope.studies.main.grid import Main
from normscope.studies.main.measures import PARTS
from normscope.studies.main.tables import TABLES
from normscope.studies.study import Settings

NOTES = {
    "batch": """BatchNorm's statistics run over all positions while it trains, later ones included;
its validation loss is with running averages, which look at no other token.""",
    "unit": """Unit L2 also ends the network, in pre and in post placement, with outputs of length
1: over a head tied to an embedding that starts with a standard deviation of 0.02, its logits are
small, and its loss is that of a temperature as much as of a norm. With scaled logits a learned
factor, sqrt(d) at the start, takes that away (Wang et al. 2017, arXiv:1704.06369).""",
    "pointwise": """DyT and Derf alone start at alpha = 0.5 in nanoGPT's initialization, whose
embeddings have a standard deviation of 0.02: their outputs start near zero. With a scaled embedding
they are as their authors have them for language models: a learned factor of the embedding, sqrt(d)
at the start, and alpha = 1 (Zhu et al. 2025, arXiv:2503.10622).""",
}


SHOWN = {  # measures by the heading of their column
    "stream_growth": "growth of the residual stream",
    "gradient_spread": "spread of gradients",
    "free_blocks": "removable blocks",
    "uniform_energy": "energy along the mean direction",
    "unselectable": "unselectable inputs",
    "unselectable_keys": "unselectable keys",
    "largest_score": "largest score",
    "sink": "attention on the first position",
    "one_refined_loss": "one norm frozen",
}
SIGNED = decimals(sign=True)
ARM = field("norm", lambda row: arm_label(row["arm"], row["placement"]))
CELL = [text("protocol"), ARM]


def with_titles(study: Main, table: pd.DataFrame) -> pd.DataFrame:
    """A table with the titles of the protocols in place of their keys."""
    return table.assign(protocol=table["protocol"].replace(study.titles))


def loss_table(arms: pd.DataFrame) -> PageTable:
    """Validation loss by arm: n, rate, loss, difference to the baseline and what it shows."""
    fields = [
        *CELL,
        *fields_of(TABLES["arms"], "n", "rates"),
        setting("learning rate"),
        *fields_of(TABLES["arms"], "failed", "mean", "[mean]", "difference"),
        interval("its interval", "difference_low", "difference_high", SIGNED),
        field("reads", verdict),
    ]
    return tabulate("Validation loss of the trained models", arms, fields)


def verdict(row: Row) -> str:
    """What the difference to the baseline shows.

    A claim needs an interval that excludes 0 and seeds enough.
    """
    pairs = row["pairs"]
    if math.isnan(row["difference"]):
        return "baseline" if pairs else "no seed shared with the baseline"
    if pairs < FEWEST:
        return f"{pairs} seed{'s' if pairs > 1 else ''}: no claim"
    if row["difference_low"] > 0:
        return "worse at the rates tried" if row["at_edge"] else "worse"
    return "better" if row["difference_high"] < 0 else "no difference found"


def gain_table(gains: pd.DataFrame) -> PageTable:
    """Residual gain of the first block, of a later block, and of the last."""
    blocks = [
        estimate(title, part, f"{part}_low", f"{part}_high") for part, (_, title) in PARTS.items()
    ]
    fields = [*CELL, count("n"), *blocks]
    return tabulate("Residual gain of the trained models", gains, fields)


def published_table(published: pd.DataFrame, window_sd: float) -> PageTable:
    """Published numbers next to ours, which are shown only if the settings are comparable.

    Args:
        window_sd: standard deviation of the mean losses of validation windows.
    """

    def corrected(row: Row) -> Cell:
        if not row["comparable"]:
            return "not comparable: other settings"
        return Quantity(row["mean"], row["low"], row["high"]) if row["n"] else "diverged"

    def why(row: Row) -> str:
        is_sample = row["windows"] > 0  # false for NaN
        if not (row["n"] and is_sample):
            return row["differs_because"]
        error = window_sd / math.sqrt(row["windows"])
        return f"{row['differs_because']}; the standard error of such a sample is {error:.3f}"

    fields = [
        *fields_of(TABLES["published"], "quantity", "value", "protocol", "source"),
        field("corrected", corrected, decimals()),
        field("n", lambda row: row["n"] or None, INTEGER),
        field("why they differ", why),
    ]
    return tabulate("Published and corrected", published, fields)


def notes(arms: Iterable[str]) -> list[str]:
    """What a reader must know of the arms that are there."""
    norms = [ARMS[arm].norm for arm in arms]
    applies = {
        "batch": any(norm.statistic == "batch" for norm in norms),
        "unit": any(norm.radius == "1" for norm in norms),
        "pointwise": any(norm.elementwise for norm in norms),
    }
    return [note for key, note in NOTES.items() if applies[key]]


def batch_table(batches: pd.DataFrame, level: float) -> PageTable:
    """Loss by arm and batch size, and how much higher it is than at the greatest size."""
    by = ["text", "arm", "placement", "batch_size"]
    groups = batches.groupby(by, sort=False)
    failed, loss = list(groups["failed"].sum()), list(groups["capped_loss"].mean())
    rows = summarize(batches, by, ["excess"], level).assign(failed=failed, loss=loss)
    fields = [
        *fields_of(TABLES["batches"], "text"),
        ARM,
        *fields_of(TABLES["batches"], "batch_size"),
        count("n"),
        count("failed"),
        number("loss", "loss"),
        number("above the greatest size", "mean", SIGNED),
        interval("interval", form=SIGNED),
    ]
    return tabulate("Validation loss by batch size", rows, fields)


def measure_table(chosen: pd.DataFrame) -> PageTable:
    """One row per norm and placement of a protocol: means over models of what was measured."""
    rows = means(chosen, ["protocol", "arm", "placement"], list(SHOWN))
    fields = [*CELL, count("n"), *(mean(title, name) for name, title in SHOWN.items())]
    return tabulate("What was measured in the models", rows, fields)


def norm_table(norms: pd.DataFrame) -> PageTable:
    """One row per norm layer of a protocol's models: means over models of the loss without it."""
    losses = ["frozen_loss", "refined_loss"]
    rows = means(norms, [*TABLES["arms"].keys, "norm"], losses)
    fields = [
        *CELL,
        text("layer", "norm"),
        count("n"),
        mean("at once", "frozen_loss", SIGNED),
        mean("after further steps", "refined_loss", SIGNED),
    ]
    return tabulate("Loss added if one norm is frozen", rows, fields)


def slope_table(slopes: pd.DataFrame) -> PageTable:
    """One row per placement: means of the slopes over depth."""
    rows = means(slopes, ["arm", "placement"], ["change_slope", "gradient_slope"])
    fields = [
        ARM,
        count("n"),
        mean("output change", "change_slope", decimals()),
        mean("last gradient", "gradient_slope", decimals()),
    ]
    return tabulate("Slopes over the logarithm of the depth", rows, fields)


def tower_table(towers: pd.DataFrame) -> PageTable:
    """One row per norm and mask: the mean collapse rate."""
    rows = means(towers, ["arm", "causal"], ["collapse_rate"])
    fields = [
        text("norm", "arm", lambda arm: ARMS[arm].label),
        text("causal", "causal", lambda causal: "yes" if causal else "no"),
        count("n"),
        mean("log of the factor per layer", "collapse_rate", decimals()),
    ]
    return tabulate("Attention-only stacks", rows, fields)


def loss_numbers(arms: pd.DataFrame) -> dict[str, Number]:
    """Mean losses with the ends of their intervals by name: ``nanogpt layernorm pre loss low``."""
    parts = {"loss": "mean", "loss low": "low", "loss high": "high"}
    form = TABLES["arms"]["mean"].format
    return {
        f"{row['protocol']} {row['arm']} {row['placement']} {name}": Number(row[column], form)
        for row in to_rows(arms)
        for name, column in parts.items()
        if pd.notna(row[column])
    }


def scale(study: Main) -> str:
    """How large the trained models are, in words."""
    stacks = [(one.model, one.training.steps) for one in study.trainings().values()]
    sizes = zip(*((model.n_layer, model.n_embd, steps) for model, steps in stacks), strict=True)
    blocks, width, steps = (" to ".join(f"{n:,}" for n in sorted({min(s), max(s)})) for s in sizes)
    return f"GPTs of {blocks} blocks and width {width} learn to predict characters in {steps} steps"


def section(study: Main, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the models of one arm each."""
    runs, chosen, arms, gains = (tables[n] for n in ("runs", "chosen", "arms", "gain_by_arm"))
    only_batches = set(tables["batches"]["protocol"]) - set(study.gain.protocols)
    arms = arms[~arms["protocol"].isin(only_batches)]
    measured = chosen[chosen["protocol"].isin(study.measures.protocols)]
    protocols = study.protocols
    reference = select(runs, **study.reference._asdict())
    return Section(
        words={
            "baseline": f"{study.baseline.arm}-{study.baseline.placement}",
            "reference": str(study.reference),
            "protocols": [
                {
                    "name": p,
                    "title": study.titles[p],
                    "texts": ", ".join(protocols[p].texts),
                    **protocols[p].model.model_dump(),
                    **protocols[p].training.model_dump(),
                }
                for p in dict.fromkeys(arms["protocol"])
            ],
            "windows": study.measures.windows,
            "refined": study.refined.steps,
            "stuck": STUCK,
            "tower": study.untrained.tower,
            "needed": FEWEST,
            "models": len(runs),
            "diverged": int(runs["diverged_at"].notna().sum()),
            "failed": int(runs["failed"].sum()),
            "notes": notes(dict.fromkeys(runs["arm"])),
        },
        tables={
            "published": published_table(
                with_titles(study, tables["published"]), reference["val_loss_window_sd"].mean()
            ),
            "losses": loss_table(with_titles(study, arms)),
            "batches": batch_table(tables["batches"], settings.level),
            "gains": gain_table(with_titles(study, gains)),
            "measures": measure_table(with_titles(study, measured)),
            "norms": norm_table(with_titles(study, tables["norms"])),
            "slopes": slope_table(tables["slopes"]),
            "towers": tower_table(tables["towers"]),
        },
        numbers=loss_numbers(tables["arms"]),
    )
