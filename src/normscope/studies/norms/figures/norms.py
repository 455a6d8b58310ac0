"""Figure norms: validation loss of each norm above the baseline's, text by text."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.rows import CELL, draw_differences

SAME = ["protocol", "seed"]


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    titles: Mapping[str, str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """One panel per protocol, one row per norm and placement, one marker per text."""
    models = tables["models"]
    reference = select(models, **baseline).set_index(SAME)["capped_loss"]
    of_reference = reference.reindex(pd.MultiIndex.from_frame(models[SAME])).to_numpy()
    models = models.assign(above=models["capped_loss"] - of_reference)
    is_other = (models[CELL] != [baseline[key] for key in CELL]).any(axis=1)
    models = models[is_other & models["above"].notna()]
    panels = {title: select(models, protocol=key) for key, title in titles.items()}
    return draw_differences(panels, look, "above", f"{ARMS[baseline['arm']].label}'s")
