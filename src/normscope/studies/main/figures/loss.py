"""Figure loss: validation loss of each norm, above that of the baseline's norm."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.main.tables import TABLES
from normscope.studies.rows import CELL, draw_differences

KEYS = [key for key in TABLES["chosen"].keys if key not in {*CELL, "learning_rate"}]


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    protocols: Sequence[str],
    titles: Mapping[str, str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """One panel per protocol: norms at the baseline's placement, and no norm."""
    models = tables["chosen"]
    models = models[models["placement"].isin([baseline["placement"], "none"])]
    base = select(models, **baseline).set_index(KEYS)["capped_loss"]
    of_base = base.reindex(pd.MultiIndex.from_frame(models[KEYS])).to_numpy()
    models = models.assign(above=models["capped_loss"] - of_base)
    models = models[(models["arm"] != baseline["arm"]) & models["above"].notna()]
    panels = {titles[key]: select(models, protocol=key) for key in protocols}
    return draw_differences(panels, look, "above", f"{ARMS[baseline['arm']].label}'s")
