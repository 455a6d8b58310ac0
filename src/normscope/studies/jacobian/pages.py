"""The norms' backward pass in words and tables, made from the workflow's tables alone."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from normscope.nn.arms import ARMS
from normscope.paper.words import Section, interval, number, records, reference
from normscope.statistics.estimate import ALPHA, seeds_needed
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.jacobian.measures import PREDICTORS
from normscope.studies.jacobian.tables import ANY, VARIED

AVERAGE = "average: published of all norms, corrected of block norms"
PUBLISHED = {  # as the script prints them
    "r_mean": "r_mean",
    "r_radial": "r_radial",
    "sigma_mean": "sigma",
    "cos_center_scale": "cos center",
    "cos_straight_through": "cos STE",
}
CORRECTED = {
    "r_mean": "r_mean x d",
    "r_radial": "r_radial x d",
    "cos_center_scale": "cos center",
    "cos_straight_through": "cos STE",
    "error_center_scale": "error center",
    "error_projected": "error projected",
    "error_straight_through": "error STE",
    "alignment": "cos to backprop",
}


def layer_table(layers: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """A row per norm layer and cell of a protocol: as published, then corrected; means over models.

    Below each cell its averages: as published over all norms, as the script has them, corrected
    over the block norms alone.

    Args:
        layers: layers_by_cell.csv.
        protocol: whose cells.
    """
    rows = layers[(layers["protocol"] == protocol) & (layers["signal"] == "own")]
    several = rows["arm"].nunique() > 1
    table = []
    for key, of_cell in rows.groupby([*VARIED, "d"], sort=False):
        at: dict = dict(zip([*VARIED, "d"], key, strict=True))
        head = {"arm": ARMS[at["arm"]].label} if several else {}
        head |= {"attention": at["attention"], "feedback": at["feedback"]}
        for layer, group in of_cell.groupby("layer", sort=False):
            table.append(head | {"layer": layer} | _numbers(group, at["d"]))
        averaged = of_cell[(of_cell["variant"] == "published") | (of_cell["place"] == "block")]
        table.append(head | {"layer": AVERAGE} | _numbers(averaged, at["d"]))
    return pd.DataFrame(table)


def _numbers(rows: pd.DataFrame, d: int) -> dict[str, str]:
    """The columns of a line of the table: means over its layers."""
    means = rows.groupby(["variant", "measure"])["mean"].mean()
    line = {}
    for measure, title in PUBLISHED.items():
        line[f"{title}, published"] = number(means.get(("published", measure), math.nan), 4)
    for measure, title in CORRECTED.items():
        value = means.get(("corrected", measure), math.nan)
        line[title] = number(value * d, 2) if title.endswith("x d") else number(value)
    return line


def cost_table(costs: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """A row per surrogate and setting of a protocol: its cost beside the spread of exact models."""
    rows = [
        {
            "arm": ARMS[r.arm].label,
            "attention": r.attention,
            "feedback": r.feedback,
            "surrogate": r.norm_backward,
            "in": r.surrogates_in,
            "n": f"{r.n}, {r.diverged} diverged" if r.diverged else str(r.n),
            "cost": number(r.mean, sign=True),
            "interval": interval(r.low, r.high, sign=True),
            "joint interval": interval(r.joint_low, r.joint_high, sign=True),
            "margin": number(r.margin),
            "loss": number(r.loss),
            "reads": _reads(r),
        }
        for r in records(costs[costs["protocol"] == protocol])
    ]
    return pd.DataFrame(rows)


def _reads(row) -> str:
    """What a cost shows, by its joint interval and where seeds are enough for an exact test."""
    needed, margin = seeds_needed(row.alpha), row.margin
    answers = {
        f"{row.diverged} diverged: no claim": row.diverged > 0,
        f"no better than character frequencies, {number(row.unigram)}": _is_ceiling(row),
        f"{row.n} seed{'s' if row.n != 1 else ''}, {needed} needed": row.n < needed,
        "costs more than the margin": row.joint_low > margin,
        "within the margin": -margin < row.joint_low and row.joint_high < margin,
        "better by more than the margin": row.joint_high < -margin,
        "not told apart from the margin": True,
    }
    return next(answer for answer, applies in answers.items() if applies)


def _is_ceiling(row) -> bool:
    return row.loss > row.unigram - (0 if math.isnan(row.margin) else row.margin)


def prediction_table(predictions: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """A row per predictor, a column per surrogate and place: rank correlation with the cost."""
    of = predictions[predictions["protocol"] == protocol]
    found = {(r.norm_backward, r.surrogates_in, r.predictor): r for r in records(of)}

    def cell(rule: str, place: str, predictor: str) -> str:
        row = found[rule, place, predictor]
        if np.isnan(row.rho):
            return "–"
        return f"{number(row.rho, 2)} (n {row.n})"

    table = {
        "all cells" if rule == ANY else f"{rule}, {place}": [
            cell(rule, place, p) for p in PREDICTORS
        ]
        for rule, place, _ in found
    }
    return pd.DataFrame({"predictor": list(PREDICTORS.values()), **table})


def section(grid: Jacobian, tables: Mapping[str, pd.DataFrame]) -> Section:
    """What the template of the summary says of the norms' backward pass, by the template's names.

    Args:
        grid: the configuration.
        tables: layers, layers_by_cell, chosen, costs, expected, predictions of results/jacobian.
    """
    predictions = tables["predictions"]
    was, now = (grid.protocols[name] for name in (grid.published, grid.corrected))
    by_layer = layer_table(tables["layers_by_cell"], grid.published)
    costs = cost_table(tables["costs"], grid.corrected)
    has_norms = (tables["layers"]["protocol"] == grid.published).any()
    why_none = "All models diverged." if has_norms else "No model has a norm layer."
    texts = {
        "jacobian_published": _settings(was.model_dump()),
        "jacobian_corrected": _settings(now.model_dump()),
        "jacobian_windows": grid.windows,
        "jacobian_seeds": seeds_needed(ALPHA),
        "jacobian_layers": reference("jacobian") if len(by_layer) else why_none,
        "jacobian_costs": reference("surrogates") if len(costs) else "No surrogate was trained.",
    }
    shown = {"jacobian": by_layer, "surrogates": costs}
    shown["predictions"] = prediction_table(predictions, grid.corrected)
    return Section(texts, shown)


def _settings(protocol: dict) -> str:
    """The sizes and training of a protocol, in words."""
    m, t = protocol["model"], protocol["training"]
    head = "tied to the embedding" if m["tied_head"] else "not tied"
    return (
        f"blocks: {m['n_layer']}, heads: {m['n_head']}, width {m['n_embd']}, context "
        f"{m['block_size']}, placement {protocol['placement']}, causal: {m['causal']}, head: "
        f"{head}; {t['precision']}, steps: {t['steps']}, windows a step: {t['batch_size']}, "
        f"learning rate {t['learning_rate']:g}"
    )
