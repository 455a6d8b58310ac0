"""Figure layers: the published script's table of LayerNorms, and the corrected one."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.jacobian.figures import ATTENTION

COLUMNS = {  # the script's, and what a gradient without a preferred direction gives at width d
    "r_mean": ("share along\nthe mean", lambda d: 1 / d),
    "r_radial": ("share along\nthe token", lambda d: 1 / d),
    "sigma_mean": ("standard\ndeviation", None),
    "cos_center_scale": ("cosine of\ncenter_scale", lambda d: (1 - 1 / (d - 1)) ** 0.5),
    "cos_straight_through": ("cosine of\nstraight_through", lambda d: (1 - 2 / d) ** 0.5),
}
MARKS: dict[str, dict] = {
    "published": {"marker": "x", "markersize": 4, "linestyle": ""},
    "corrected": {"marker": "o", "markersize": 5, "linestyle": "", "mfc": "none"},
}


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """One row per LayerNorm, one panel per column of the table."""
    shown = {"norm_backward": "exact", "arm": "layernorm", "feedback": "fa", "signal": "own"}
    table = select(tables["layers"], protocol=protocol, **shown).sort_values("index")
    names = list(dict.fromkeys(table["layer"]))
    figure, axes = style.canvas(look.width_mm, 6 * len(names) + 32, 1, len(COLUMNS))
    n = style.sample_size([table["seed"].nunique()])
    for axis, (column, (title, isotropic)) in zip(axes[0], COLUMNS.items(), strict=True):
        for variant, mark in MARKS.items():
            for attention, color in ATTENTION.items():
                rows = select(table, variant=variant, attention=attention)
                means = rows.groupby("layer")[column].mean().reindex(names)
                axis.plot(means, range(len(names)), color=color, **mark)
        if isotropic and names:
            style.baseline(axis, isotropic(table["d"].iloc[0]), vertical=True)
        axis.set(title=title, xlabel=n)
        axis.locator_params(axis="x", nbins=3)
    style.name_rows(axes[0, 0], [name.removesuffix(".before") for name in names])
    looks = {name: {"color": color} for name, color in ATTENTION.items()}
    looks |= {name: {"color": "0.4"} | mark for name, mark in MARKS.items()}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=4)
    return figure, f"{n} models of each attention." if names else "No model was measured."
