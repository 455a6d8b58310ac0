"""The norms' backward pass in words and tables, made from the study's tables alone."""

import math
from collections.abc import Mapping

import pandas as pd

from normscope.formats import GENERAL, decimals
from normscope.nn.arms import ARMS
from normscope.pages.section import Section
from normscope.pages.table import (
    CELLS,
    Column,
    PageTable,
    Row,
    at,
    count,
    crossed,
    declared,
    estimate,
    interval,
    number,
    setting,
    tabulate,
    text,
)
from normscope.statistics.levels import FEWEST
from normscope.statistics.summary import select, split, summarize
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.jacobian.recipe import SETTING, VARIED
from normscope.studies.jacobian.tables import TABLES
from normscope.studies.jacobian.tabulate import PARTS
from normscope.studies.protocols import Protocol
from normscope.studies.study import Settings

AVERAGE = "average: published of all norms, corrected of block norms"
SIGNED = decimals(sign=True)
ARM = text("arm", label=lambda arm: ARMS[arm].label)
WHERE = (
    ARM,
    text("attention"),
    text("feedback"),
    number("penalty", "sigma_penalty", GENERAL),
)
PUBLISHED = {  # titles as the published script prints them
    "r_mean": "r_mean",
    "r_radial": "r_radial",
    "sigma_mean": "sigma",
    "cos_center_scale": "cos center",
    "cos_straight_through": "cos STE",
}
TIMES_D = {"r_mean": "r_mean x d", "r_radial": "r_radial x d"}
CORRECTED = {
    "cos_center_scale": "cos center",
    "cos_straight_through": "cos STE",
    "error_center_scale": "error center",
    "error_projected": "error projected",
    "error_straight_through": "error STE",
    "alignment": "cos to backprop",
}
FORMULAS = PageTable(  # with g the gradient at the normalized activations z
    "The backward passes of a norm",
    (Column("backward pass"), Column("dL/dx")),
    (
        ("exact", "(g - mean(g) - z mean(g z))/sigma"),
        ("center_scale", "(g - mean(g))/sigma"),
        ("projected", "g - mean(g) - z mean(g z)"),
        ("straight_through", "g"),
    ),
)


def layer_table(layers: pd.DataFrame, protocol: str) -> PageTable:
    """One row per norm layer and cell of a protocol: published and corrected means over models.

    The last row of each cell is its average over layers: over all norms as published, as the
    published script computes it, and over the norms of blocks as corrected.
    """
    shown = select(layers, protocol=protocol, signal="own")
    rows: list[Row] = []
    for head, cell in split(shown, [*VARIED, "d"]):
        for layer, group in cell.groupby("layer", sort=False):
            rows.append({**head, "layer": layer, CELLS: _means(group)})
        averaged = cell[(cell["variant"] == "published") | (cell["place"] == "block")]
        rows.append({**head, "layer": AVERAGE, CELLS: _means(averaged)})
    fields = [
        *([ARM] if shown["arm"].nunique() > 1 else []),
        *map(text, ("attention", "feedback", "layer")),
        *(
            at(("published", key), number(f"{title}, published", "mean", decimals(4)))
            for key, title in PUBLISHED.items()
        ),
        *(
            at(("corrected", key), number(title, "times_d", decimals(2)))
            for key, title in TIMES_D.items()
        ),
        *(at(("corrected", key), number(title, "mean")) for key, title in CORRECTED.items()),
    ]
    return tabulate("The backward pass of norms, layer by layer", rows, fields)


def _means(rows: pd.DataFrame) -> dict[object, Row]:
    """Means over layers by variant and measure; and times d, which is compared with 1/d."""
    means = rows.groupby(["variant", "measure"])["mean"].mean()
    d = rows["d"].iloc[0] if len(rows) else math.nan
    return {key: {"mean": mean, "times_d": mean * d} for key, mean in means.items()}


def cost_table(costs: pd.DataFrame, protocol: str) -> PageTable:
    """One row per surrogate and setting of a protocol: the cost of the whole surrogate."""
    fields = [
        *WHERE,
        *declared(TABLES["costs"], "norm_backward", "surrogates_in", "n", "failed"),
        setting("rate"),
        setting("exact rate", "rate_exact", "at_edge_exact"),
        *declared(TABLES["costs"], "mean", "[mean]", "loss", "cosine"),
    ]
    shown = select(costs, protocol=protocol, radial_share=1.0)
    return tabulate("What a surrogate backward pass costs", shown, fields)


def dose_table(costs: pd.DataFrame, slopes: pd.DataFrame, protocol: str, level: float) -> PageTable:
    """One row per setting and place: the cost at each share left in, and the slope over seeds."""
    keys = [*SETTING, "surrogates_in"]
    lines = summarize(select(slopes, protocol=protocol), keys, ["slope"], level)
    swept = select(costs, protocol=protocol, norm_backward="center_scale")
    shares = sorted(swept["radial_share"].unique())
    rows = crossed(pd.concat([swept, lines.assign(radial_share="slope")]), keys, "radial_share")
    fields = [
        *WHERE,
        text("in", "surrogates_in"),
        *(at(x, number(f"share {x:g}", "mean", SIGNED)) for x in shares),
        at("slope", count("n")),
        at("slope", number("slope", "mean", SIGNED)),
        at("slope", interval("interval", form=SIGNED)),
    ]
    return tabulate("What a share of the radial part costs", rows, fields)


def part_table(parts: pd.DataFrame, protocol: str) -> PageTable:
    """One row per setting and surrogate: its cost by place, and the interaction of the places."""
    rows = crossed(select(parts, protocol=protocol), [*SETTING, "norm_backward"], "measure")
    fields = [
        *WHERE,
        text("surrogate", "norm_backward"),
        count("n"),
        *(at(part, estimate(part, form=SIGNED)) for part in PARTS),
    ]
    return tabulate("Where the cost comes from", rows, fields)


def section(study: Jacobian, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the norms' backward pass."""
    was, now = (study.protocols[name] for name in (study.published, study.corrected))
    costs = tables["costs"]
    return Section(
        words={
            "published": _settings(was),
            "corrected": _settings(now),
            "windows": study.windows,
            "seeds": FEWEST,
        },
        tables={
            "formulas": FORMULAS,
            "layers": layer_table(tables["layers_by_cell"], study.published),
            "costs": cost_table(costs, study.corrected),
            "doses": dose_table(costs, tables["slopes"], study.corrected, settings.level),
            "parts": part_table(tables["parts"], study.corrected),
        },
    )


def _settings(protocol: Protocol) -> str:
    """The sizes and training of a protocol, in words."""
    m, t = protocol.model, protocol.training
    head = "tied to the embedding" if m.tied_head else "not tied"
    return (
        f"blocks: {m.n_layer}, heads: {m.n_head}, width {m.n_embd}, context {m.block_size}, "
        f"placement pre, causal: {m.causal}, head: {head}; {t.precision}, steps: "
        f"{t.steps}, windows a step: {t.batch_size}, learning rate {t.learning_rate:g}"
    )
