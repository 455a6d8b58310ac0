"""The norms' backward pass in words and tables, made from the study's tables alone."""

import math
from collections.abc import Iterator, Mapping

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
    interval,
    label,
    number,
    tabulate,
    text,
    to_rows,
)
from normscope.statistics.estimate import FEWEST
from normscope.statistics.summary import select, split
from normscope.studies.jacobian.grid import Jacobian, Protocol
from normscope.studies.jacobian.measures import PREDICTORS
from normscope.studies.jacobian.tables import ANY, VARIED
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


def cost_table(costs: pd.DataFrame, protocol: str) -> PageTable:
    """A row per surrogate and setting of a protocol: its cost beside the spread of exact models.

    Args:
        costs: costs.csv.
    """
    columns = [
        Column("arm", label()),
        Column("attention", text("attention")),
        Column("feedback", text("feedback")),
        Column("surrogate", text("norm_backward")),
        Column("in", text("surrogates_in")),
        Column("n", count("n", "diverged")),
        Column("cost", number("mean", sign=True)),
        Column("interval", interval("low", "high", sign=True)),
        Column("joint interval", interval("joint_low", "joint_high", sign=True)),
        Column("margin", number("margin")),
        Column("loss", number("loss")),
        Column("reads", _reads),
    ]
    shown = costs[costs["protocol"] == protocol]
    return tabulate("What a surrogate backward pass costs", shown, columns)


def _reads(row: Row) -> str:
    """What a cost shows, by its joint interval and where seeds are enough for an exact test."""
    n, needed, margin = row["n"], FEWEST, row["margin"]
    low, high = row["joint_low"], row["joint_high"]
    ceiling = row["unigram"] - (0 if math.isnan(margin) else margin)
    answers = {
        f"{row['diverged']} diverged: no claim": row["diverged"] > 0,
        f"no better than character frequencies, {words.number(row['unigram'])}": (
            row["loss"] > ceiling
        ),
        f"{n} seed{'s' if n != 1 else ''}, {needed} needed": n < needed,
        "costs more than the margin": low > margin,
        "within the margin": -margin < low and high < margin,
        "better by more than the margin": high < -margin,
        "not told apart from the margin": True,
    }
    return next(answer for answer, applies in answers.items() if applies)


def prediction_table(predictions: pd.DataFrame, protocol: str) -> PageTable:
    """A row per predictor, a column per surrogate and place: rank correlation with the cost.

    Args:
        predictions: predictions.csv.
    """
    shown = predictions[predictions["protocol"] == protocol]
    places = ["norm_backward", "surrogates_in"]
    names = list(dict.fromkeys(shown[places].itertuples(index=False, name=None)))
    columns = [
        Column("predictor", lambda row: PREDICTORS[row["predictor"]]),
        *(
            Column("all cells" if name[0] == ANY else ", ".join(name), at(name, _correlation))
            for name in names
        ),
    ]
    rows = crossed(shown, ["predictor"], places)
    rows.sort(key=lambda row: list(PREDICTORS).index(row["predictor"]))
    return tabulate("What predicts the cost: rank correlations", rows, columns)


def _correlation(record: Row) -> str:
    rho = record["rho"]
    return words.DASH if math.isnan(rho) else f"{words.number(rho, 2)} (n {record['n']})"


def _numbers(costs: pd.DataFrame) -> Iterator[Named]:
    for row in to_rows(costs.dropna(subset="mean")):
        yield (*(row[key] for key in VARIED), "cost"), words.number(row["mean"])


def section(study: Jacobian, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the norms' backward pass.

    Args:
        study: its configuration.
        tables: layers, layers_by_cell, costs and predictions.
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
            "predictions": prediction_table(tables["predictions"], study.corrected),
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
