"""The norms' backward pass in words and tables, made from the study's tables alone."""

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
    cross,
    estimate,
    fields_of,
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
ARM = text("norm", "arm", label=lambda arm: ARMS[arm].label)
WHERE = (
    ARM,
    text("attention"),
    text("feedback"),
    number("penalty", "sigma_penalty", GENERAL),
)
LAYER_COLUMNS = {  # title: variant, measure, decimals; published ones as the script prints them
    "r_mean, published": ("published", "r_mean", 4),
    "r_radial, published": ("published", "r_radial", 4),
    "sigma, published": ("published", "sigma_mean", 4),
    "cos center, published": ("published", "cos_center_scale", 4),
    "cos STE, published": ("published", "cos_straight_through", 4),
    "r_mean x d": ("corrected", "r_mean x d", 2),
    "r_radial x d": ("corrected", "r_radial x d", 2),
    "cos center": ("corrected", "cos_center_scale", 3),
    "cos STE": ("corrected", "cos_straight_through", 3),
    "error center": ("corrected", "error_center_scale", 3),
    "error projected": ("corrected", "error_projected", 3),
    "error STE": ("corrected", "error_straight_through", 3),
    "cos to backprop": ("corrected", "alignment", 3),
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
            at((variant, measure), number(title, "mean", decimals(digits)))
            for title, (variant, measure, digits) in LAYER_COLUMNS.items()
        ),
    ]
    return tabulate("The backward pass of norms, layer by layer", rows, fields)


def _means(rows: pd.DataFrame) -> dict[object, Row]:
    """Means over layers by variant and measure; and times d, which is compared with 1/d."""
    means = {}
    for (variant, measure), group in rows.groupby(["variant", "measure"]):
        mean = group["mean"].mean()
        means[variant, measure] = {"mean": mean}
        means[variant, f"{measure} x d"] = {"mean": mean * group["d"].iloc[0]}
    return means


def cost_table(costs: pd.DataFrame, protocol: str) -> PageTable:
    """One row per surrogate and setting of a protocol: the cost of the whole surrogate."""
    fields = [
        *WHERE,
        *fields_of(TABLES["costs"], "norm_backward", "surrogates_in", "n", "failed"),
        setting("rate"),
        setting("exact rate", "rate_exact", "at_edge_exact"),
        *fields_of(TABLES["costs"], "mean", "[mean]", "loss", "cosine"),
    ]
    shown = select(costs, protocol=protocol, radial_share=1.0)
    return tabulate("What a surrogate backward pass costs", shown, fields)


def dose_table(costs: pd.DataFrame, slopes: pd.DataFrame, protocol: str, level: float) -> PageTable:
    """One row per setting and place: the cost at each share left in, and the slope over seeds."""
    keys = [*SETTING, "surrogates_in"]
    lines = summarize(select(slopes, protocol=protocol), keys, ["slope"], level)
    swept = select(costs, protocol=protocol, norm_backward="center_scale")
    shares = sorted(swept["radial_share"].unique())
    rows = cross(pd.concat([swept, lines.assign(radial_share="slope")]), keys, "radial_share")
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
    rows = cross(select(parts, protocol=protocol), [*SETTING, "norm_backward"], "measure")
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
