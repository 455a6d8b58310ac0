"""How figures and pages show arms: their looks, legends, labels, and their words in captions."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from normscope.formats import Format
from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.table import DECIMALS, Cell, Field, Quantity, Row, field

# the color of each family of arms; a label begins with its family. Red and orange show on the
# blue lines of LayerNorm, green would not
FAMILIES = {
    "No norm": 0,
    "LayerNorm": 1,
    "RMSNorm": 2,
    "DyT": 3,
    "Unit L2": 4,
    "BatchNorm": 5,
    "ScaleNorm": 6,
    # these never share a panel with the family of the same color
    "Centered ScaleNorm": 0,
    "Derf": 3,
    "Centered L2": 5,
}
OTHER_FAMILY = 4  # of norms of users: far from the colors of LayerNorm and RMSNorm
NAMES = 12  # a caption spells out no more
AS_CHANCE = "and counted as a uniform guess"  # the loss of a diverged run


def _words(key: tuple) -> str:
    """The label of a model's arm and its other keys, each word once."""
    words = (f"{part:g}" if isinstance(part, float) else str(part) for part in key)
    return " ".join(dict.fromkeys(ARMS[word].label if word in ARMS else word for word in words))


def count(table: pd.DataFrame, by: Sequence[str] = ("arm", "placement"), many: str = "arms") -> str:
    """The number of trained models per arm, in words; many names become a number."""
    seeds = table.groupby(list(by), sort=False)["seed"].nunique()
    parts = []
    for n, group in seeds.groupby(seeds, sort=False):
        names = [_words(key) for key in group.index]
        each = " each" if len(names) > 1 else ""
        whom = ", ".join(names) if len(names) <= NAMES else f"{len(names)} {many}"
        parts.append(f"{n} trained model{'s' if n != 1 else ''}{each} of {whom}")
    return "; ".join(parts)


def divergences(
    runs: pd.DataFrame, by: Sequence[str] = ("arm", "placement"), how: str = "and in no mean"
) -> str:
    """The runs that diverged, and their steps; ``how`` says how they count."""
    lost = runs[runs["diverged_at"].notna()]
    if lost.empty:
        return "No run diverged."
    names = [
        f"{_words(tuple(r[k] for k in by))} seed {r['seed']} at step {r['diverged_at']:.0f}"
        for r in lost.to_dict("records")
    ]
    return f"Diverged, {how}: {', '.join(names)}."


def arm_label(arm: str, placement: str) -> str:
    """How people call an arm with its placement."""
    label = ARMS[arm].label
    return label if placement == "none" else f"{label}, {placement}"


def family(arm: str) -> str:
    """The family of an arm: its label up to the comma."""
    return ARMS[arm].label.partition(",")[0]


def arm_look(arm: str) -> dict:
    """Color, marker and line of an arm, the same in every figure; a family shares its color.

    Solid lines are wider than dashed ones, so that they show under them.
    """
    order = list(dict.fromkeys((*FAMILIES, *map(family, ARMS))))
    hues = {name: FAMILIES.get(name, OTHER_FAMILY) for name in order}
    hue = hues[family(arm)]
    alike = [other for other in ARMS if hues[family(other)] == hue]
    i = hue + sorted(alike, key=lambda other: order.index(family(other))).index(arm)
    line = style.LINES[(i - 1) % len(style.LINES)]  # LayerNorm's is solid
    return {
        "color": style.COLORS[hue],
        "marker": style.MARKERS[i % len(style.MARKERS)],
        "linestyle": line,
        "linewidth": 1.8 if line == "-" else 1.0,
    }


def line_look(arm: str) -> dict:
    """The look of a line of an arm without markers."""
    return arm_look(arm) | {"marker": ""}


def draw_models(axis: Axes, arm: str, x: ArrayLike, y: ArrayLike, **look) -> None:
    """Plot trained models of an arm as open markers."""
    dots: dict = arm_look(arm) | {"linestyle": "", "mfc": "none"} | look
    axis.plot(x, y, **dots)


def add_sample(axis: Axes, arm: str) -> None:
    """Add an arm to the legend, with its line and open marker."""
    axis.plot([], [], label=ARMS[arm].label, mfc="none", **arm_look(arm))


def in_order(arms: Sequence[str]) -> list[str]:
    """Distinct arms in the order of the registry."""
    return sorted(set(arms), key=list(ARMS).index)


def arm_legend(figure: Figure, notes: Mapping[str, str] | None = None) -> None:
    """One legend of all arms below the panels, in the order of the registry.

    Args:
        figure: whose labeled artists are listed.
        notes: what follows the label of an arm, such as its sample size.
    """
    handles, notes = style.legend_handles(figure.axes), notes or {}
    arms = {
        ", ".join(filter(None, (arm.label, notes.get(key)))): handles[arm.label]
        for key, arm in ARMS.items()
        if arm.label in handles
    }
    style.legend_below(figure, arms, min(len(arms), 4 if not notes else 3))


def means(table: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Means over models of each group, with the number of seeds, n, and of values, ``n_<column>``.

    A column may be unknown in some models. The table has one row per model and group.
    """
    groups = table.groupby(list(by), sort=False)
    values = groups[list(columns)]
    known = values.mean().join(values.count().add_prefix("n_"))
    return known.assign(n=groups["seed"].nunique()).reset_index()


def mean(title: str, name: str, form: Format = DECIMALS) -> Field:
    """A column of ``means``, each with its own n if it is unknown in some models of the row."""

    def cell(row: Row) -> Cell:
        few = 0 < row[f"n_{name}"] < row["n"]
        return Quantity(row[name], note=f", n = {row[f'n_{name}']}") if few else row[name]

    return field(title, cell, form)


def describe_rate(rate: float, *, at_edge: bool) -> str:
    """The chosen learning rate, and whether it is at an end of those tried."""
    return f"{rate:g}{' (end of the range)' if at_edge else ''}"
