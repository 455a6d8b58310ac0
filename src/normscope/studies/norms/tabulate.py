"""From models to norms: losses and differences over texts, and pilot losses by learning rate."""

import pandas as pd

from normscope.statistics.summary import describe, paired_difference, select, split
from normscope.statistics.tuning import commonest_setting
from normscope.studies.norms.recipe import NormsTables
from normscope.studies.norms.tables import TABLES
from normscope.studies.outcome import trained_models
from normscope.studies.stage import TableInputs

COMPARED = TABLES["arms"].keys


def tabulate(recipe: NormsTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    models = trained_models(recipe, inputs)[TABLES["models"].names]
    return {"models": models, "arms": compare(models, recipe), "rates": tried(recipe)}


def compare(models: pd.DataFrame, recipe: NormsTables) -> pd.DataFrame:
    """One row per protocol, norm and placement: means over texts, with t intervals.

    A difference is that of the capped losses of one seed, averaged over the seeds of its text. If
    the models learn one text, the seeds take the place of texts.
    """
    rows = []
    for _, of_protocol in models.groupby("protocol", sort=False):
        same = select(of_protocol, arm=recipe.arm, placement=recipe.placement)
        reference = same.set_index("seed")["capped_loss"]
        unit = "text" if of_protocol["text"].nunique() > 1 else "seed"
        for cell, group in split(of_protocol, COMPARED):
            units = group.assign(above=group["capped_loss"] - group["seed"].map(reference))
            means = units.groupby(unit)[["capped_loss", "above"]].mean()
            above = means["above"].dropna()
            row = cell | commonest_setting(group.assign(at_edge=group["pilot_edge"]))
            row |= describe(means["capped_loss"], recipe.level)
            row |= {"n": len(group), "texts": group["text"].nunique()}
            row |= {"failed": group["failed"].sum()}
            if len(above) and (cell["arm"], cell["placement"]) != (recipe.arm, recipe.placement):
                row |= paired_difference(above, recipe.level) | {"worse": (above > 0).mean()}
            rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["arms"].names)


def tried(recipe: NormsTables) -> pd.DataFrame:
    """One row per learning rate that the pilot tried, of every norm and placement."""
    rows = [cell._asdict() | {"loss": loss} for cell, loss in recipe.rates]
    table = pd.DataFrame(rows, columns=[*COMPARED, "learning_rate", "loss"])
    table = table.astype({"loss": float})
    lowest = table.groupby(COMPARED)["loss"].transform("min")
    return table.assign(is_best=table["loss"] == lowest)
