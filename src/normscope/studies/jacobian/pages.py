"""The norms' backward pass in words and tables, made from the study's tables alone."""

import math
from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from normscope import words
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    CELLS,
    Column,
    PageTable,
    Row,
    at,
    count,
    crossed,
    estimate,
    interval,
    label,
    number,
    setting,
    short,
    tabulate,
    text,
    to_rows,
)
from normscope.statistics.estimate import FEWEST
from normscope.statistics.summary import select, split, summarize
from normscope.studies.jacobian.grid import Jacobian, Protocol
from normscope.studies.jacobian.recipe import SETTING, VARIED
from normscope.studies.jacobian.tabulate import PARTS
from normscope.studies.study import Settings

AVERAGE = "average: published of all norms, corrected of block norms"
PUBLISHED = {  # as the script prints them
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
FORMULAS = {  # of dL/dx, with g the gradient at the normalized activations z
    "exact": "(g - mean(g) - z mean(g z))/sigma",
    "center_scale": "(g - mean(g))/sigma",
    "projected": "g - mean(g) - z mean(g z)",
    "straight_through": "g",
}


def formula_table() -> PageTable:
    """A row per backward pass of a norm."""
    rows = tuple(FORMULAS.items())
    return PageTable("The backward passes of a norm", ("backward pass", "dL/dx"), rows)


def layer_table(layers: pd.DataFrame, protocol: str) -> PageTable:
    """A row per norm layer and cell of a protocol: as published, then corrected; means over models.

    Below each cell its averages: as published over all norms, as the script has them, corrected
    over the block norms alone.

    Args:
        layers: layers_by_cell.csv.
        protocol: whose cells.
    """
    shown = select(layers, protocol=protocol, signal="own")
    rows: list[Row] = []
    for head, cell in split(shown, [*VARIED, "d"]):
        for layer, group in cell.groupby("layer", sort=False):
            rows.append({**head, "layer": layer, CELLS: _means(group)})
        averaged = cell[(cell["variant"] == "published") | (cell["place"] == "block")]
        rows.append({**head, "layer": AVERAGE, CELLS: _means(averaged)})
    columns = [
        *([Column("arm", label())] if shown["arm"].nunique() > 1 else []),
        *(Column(key, text(key)) for key in ("attention", "feedback", "layer")),
        *(
            Column(f"{title}, published", at(("published", key), number("mean", 4)))
            for key, title in PUBLISHED.items()
        ),
        *(
            Column(title, at(("corrected", key), number("times_d", 2)))
            for key, title in TIMES_D.items()
        ),
        *(
            Column(title, at(("corrected", key), number("mean")))
            for key, title in CORRECTED.items()
        ),
    ]
    return tabulate("The backward pass of norms, layer by layer", rows, columns)


def _means(rows: pd.DataFrame) -> dict[object, Row]:
    """Means over layers by variant and measure; and times the width, which 1/d is compared with."""
    means = rows.groupby(["variant", "measure"])["mean"].mean()
    d = rows["d"].iloc[0] if len(rows) else math.nan
    return {key: {"mean": mean, "times_d": mean * d} for key, mean in means.items()}


WHERE = (
    Column("arm", label()),
    Column("attention", text("attention")),
    Column("feedback", text("feedback")),
    Column("penalty", short("sigma_penalty")),
)


def cost_table(costs: pd.DataFrame, protocol: str) -> PageTable:
    """A row per surrogate and setting of a protocol: its cost, whole.

    Args:
        costs: costs.csv.
    """
    columns = [
        *WHERE,
        Column("surrogate", text("norm_backward")),
        Column("in", text("surrogates_in")),
        Column("n", count("n")),
        Column("failed", count("failed")),
        Column("rate", setting()),
        Column("exact rate", setting("rate_exact", "at_edge_exact")),
        Column("cost", number("mean", sign=True)),
        Column("interval", interval("low", "high", sign=True)),
        Column("loss", number("loss")),
        Column("cos of all parameters", number("cosine")),
    ]
    shown = select(costs, protocol=protocol, radial_share=1.0)
    return tabulate("What a surrogate backward pass costs", shown, columns)


def dose_table(costs: pd.DataFrame, slopes: pd.DataFrame, protocol: str, level: float) -> PageTable:
    """A row per setting and place: the cost at each share left in, and the slope over seeds.

    Args:
        costs: costs.csv.
        slopes: slopes.csv.
        protocol: whose models.
        level: confidence level of the intervals.
    """
    keys = [*SETTING, "surrogates_in"]
    lines = summarize(select(slopes, protocol=protocol), keys, ["slope"], level)
    own = select(costs, protocol=protocol, norm_backward="center_scale")
    shares = sorted(own["radial_share"].unique())
    rows = crossed(pd.concat([own, lines.assign(radial_share="slope")]), keys, "radial_share")
    columns = [
        *WHERE,
        Column("in", text("surrogates_in")),
        *(Column(f"share {x:g}", at(x, number("mean", sign=True))) for x in shares),
        Column("n", at("slope", count("n"))),
        Column("slope", at("slope", number("mean", sign=True))),
        Column("interval", at("slope", interval("low", "high", sign=True))),
    ]
    return tabulate("What a share of the radial part costs", rows, columns)


def part_table(parts: pd.DataFrame, protocol: str) -> PageTable:
    """A row per setting and surrogate: its cost by where it is put, and what the parts leave over.

    Args:
        parts: parts.csv.
    """
    rows = crossed(select(parts, protocol=protocol), [*SETTING, "norm_backward"], "measure")
    signed = partial(words.number, sign=True)
    columns = [
        *WHERE,
        Column("surrogate", text("norm_backward")),
        Column("n", count("n")),
        *(Column(part, at(part, estimate("mean", "low", "high", signed))) for part in PARTS),
    ]
    return tabulate("Where the cost comes from", rows, columns)


def _numbers(costs: pd.DataFrame) -> Iterator[Named]:
    for row in to_rows(costs.dropna(subset="mean")):
        yield (*(row[key] for key in VARIED), "cost"), words.number(row["mean"])


def section(study: Jacobian, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the norms' backward pass.

    Args:
        study: its configuration.
        tables: layers, layers_by_cell, costs, slopes and parts.
    """
    was, now = (study.protocols[name] for name in (study.published, study.corrected))
    costs = tables["costs"]
    return Section(
        words={
            "published": _settings(was),
            "corrected": _settings(now),
            "windows": study.windows,
            "seeds": FEWEST,
            "has_norms": bool((tables["layers"]["protocol"] == study.published).any()),
        },
        tables={
            "formulas": formula_table(),
            "layers": layer_table(tables["layers_by_cell"], study.published),
            "costs": cost_table(costs, study.corrected),
            "doses": dose_table(costs, tables["slopes"], study.corrected, settings.level),
            "parts": part_table(tables["parts"], study.corrected),
        },
        numbers=list(_numbers(costs)),
    )


def _settings(protocol: Protocol) -> str:
    """The sizes and training of a protocol, in words."""
    m, t = protocol.model, protocol.training
    head = "tied to the embedding" if m.tied_head else "not tied"
    return (
        f"blocks: {m.n_layer}, heads: {m.n_head}, width {m.n_embd}, context {m.block_size}, "
        f"placement {protocol.placement}, causal: {m.causal}, head: {head}; {t.precision}, steps: "
        f"{t.steps}, windows a step: {t.batch_size}, learning rate {t.learning_rate:g}"
    )
