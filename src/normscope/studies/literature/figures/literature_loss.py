"""Figure literature_loss: loss by norm and placement, every seed a point."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages.drawing import Look
from normscope.studies.losses import draw_losses


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per protocol, each norm at its chosen rate."""
    models = tables["chosen"].assign(shown=tables["chosen"]["capped_loss"])
    bounds = ("mean", "low", "high")
    figure, axes = draw_losses(models, tables["cells"], look.width_mm, bounds)
    axes[-1].set_xlabel("validation loss (nats per character)")
    return figure, f"Bars: means and {look.level:.0%} t intervals over models."
