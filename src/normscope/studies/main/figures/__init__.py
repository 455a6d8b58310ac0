"""Drawings of the figures in ``figures.yaml``: comparisons of the table ``differences``."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages.drawing import Look
from normscope.studies.main.tables import TABLES
from normscope.studies.rows import CELL, draw_differences


def draw_compared(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    *,
    column: str,
    reference: str,
    panels: Mapping[str, str],
    norms: Sequence[str] = (),
    placements: Sequence[str] = (),
) -> tuple[Figure, str]:
    """Differences from the model of the same seed and protocol that differs in one thing.

    ``column`` of the table ``differences`` is this thing, ``panels`` has titles by protocol, and
    ``norms`` the beginnings of names of arms; without norms or placements, all are shown.
    """
    keys = TABLES["differences"].keys
    models = tables["differences"][[*keys, column, "failed"]]
    models = models.merge(tables["chosen"][[*keys, "diverged_at", "text"]], on=keys)
    largest = models[column].abs().groupby([models[key] for key in ("protocol", *CELL)])
    models = models[largest.transform("max") > 0]  # the reference itself is at 0
    if norms:
        models = models[models["arm"].str.startswith(tuple(norms))]
    if placements:
        models = models[models["placement"].isin(placements)]
    parts = {title: models[models["protocol"] == key] for key, title in panels.items()}
    return draw_differences(parts, look, column, reference)
