"""Figure trained_and_pretrained: the last block's gain of trained arms and of pretrained models."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import arm_look, count, divergences, in_order
from normscope.studies.pretrained.figures import (
    MARKS,
    OTHER,
    count_prompts,
    draw_gains,
    gain_axis,
    list_models,
)
from normscope.studies.pretrained.measures import FIRST_STUDIES

MM_PER_ROW, MM_PER_PANEL = 5, 16
PLACEMENT = "pre"  # of pretrained models, and of the trained arms that are comparable
SHIFT = 0.25  # between protocols
LOOKS: dict[str, dict] = MARKS | {
    "another norm": {"color": OTHER, "linestyle": "-"},
    "one trained model": {"color": "0.4", "marker": "o", "linestyle": "", **style.OPEN},
}


def draw_trained(axis: Axes, gains: pd.DataFrame, markers: Mapping[str, str]) -> None:
    """One marker per arm and protocol, with its interval over models, in its norm's color."""
    arms = in_order(list(gains["arm"]))
    for row in gains.to_dict("records"):
        y = arms.index(row["arm"]) + SHIFT * list(markers).index(row["protocol"])
        color = arm_look(row["arm"])["color"]
        look: dict = {"marker": markers[row["protocol"]], "linestyle": "", "color": color}
        ends = row["last_low"], row["last_high"]
        style.estimates(axis, row["last"], y, ends, across=True, width=1.2, **look)
    style.name_rows(axis, [ARMS[arm].label for arm in arms])
    counts = [gains.loc[gains["arm"] == arm, "n"] for arm in arms]
    style.annotate_rows(axis, ["n = " + " and ".join(f"{n:.0f}" for n in c) for c in counts])
    axis.set_title("trained here, all else equal (n: models)")


def draw_pretrained(axis: Axes, table: pd.DataFrame) -> None:
    """One marker per model, sorted by norm and family, base models first."""
    table = table.assign(tuned=table["base"].notna())
    table = table.sort_values(["tuned", "norm", "family", "log_gain"], ignore_index=True)
    draw_gains(axis, table)
    style.name_rows(axis, list(table["model"]))
    style.annotate_rows(axis, [style.sample_size([n]) for n in table["n"]])
    axis.set_title("pretrained, much else unequal (n: prompts)")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocols: Sequence[str]
) -> tuple[Figure, str]:
    """Trained and pretrained models side by side."""
    gains, by_model = tables["main.gain_by_arm"], tables["by_model"]
    gains = gains[(gains["placement"] == PLACEMENT) & gains["last"].notna()]
    trained = select(tables["main.chosen"], placement=PLACEMENT)
    trained = trained[trained["protocol"].isin(protocols)]
    markers = dict(zip(protocols, style.MARKERS, strict=False))
    looks = {name: {"color": "0.4", "marker": m, "linestyle": ""} for name, m in markers.items()}
    pretrained = by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))]
    counts = [max(1, gains["arm"].nunique()), max(1, len(pretrained))]
    figure, axes = style.stacked(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    draw_trained(axes[0], gains, markers)
    draw_pretrained(axes[1], pretrained)
    style.baseline(axes[0], 1, vertical=True)
    gain_axis(axes[1])
    style.legend_below(figure, style.samples(axes[1], LOOKS | looks), ncols=5)
    by = ("protocol", "arm")
    return figure, (
        f"n: {count(trained, by)}, bars: {look.level:.0%} t interval over trained models; "
        f"{count_prompts(by_model)} of each pretrained model, bars: bootstrap over prompts. "
        f"{divergences(trained, by)} {list_models(tables['models'])}"
    )
