"""Figure textbook: what a tutorial says of LayerNorm and BatchNorm, and what is measured."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.estimate import estimate
from normscope.studies.arms import arm_look

BEFORE, AFTER = style.COLORS[0], style.COLORS[2]
TITLES = (
    "A. the tutorial's layer over torch's",
    "B. eps",
    "C. 100 features; the largest's share",
    "D. one grown; the largest's share",
    "E. gain and bias of trained models",
    "F. a token by its batch",
)
BELOW: dict = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28)}
DOTS: dict = {"marker": "o", "linestyle": "", "color": AFTER}
THEORY: dict = {"color": "0.6", "linewidth": 1.6, "zorder": 0, "label": "theory"}
MEASURES: dict[str, tuple[str, dict]] = {  # of affine.csv: label, look
    "std_before": ("std before", {"color": BEFORE, "marker": "s", "linestyle": "--"}),
    "std_after": ("std after", {"color": AFTER, "marker": "s"}),
    "mean_before": ("|mean| before", {"color": BEFORE, "marker": "o", "linestyle": "--"}),
    "mean_after": ("|mean| after", {"color": AFTER, "marker": "o"}),
}


def draw_scratch(axis: Axes, scratch: pd.DataFrame) -> None:
    """Ratio of the tutorial's output to torch's by width; a cross where it is NaN."""
    axis.plot(scratch["d"], scratch["theory"], **THEORY)
    axis.plot(scratch["d"], scratch["ratio"], **DOTS, label="measured")
    lost = scratch[~scratch["finite"]]
    cross: dict = DOTS | {"marker": "x", "label": "NaN"}
    axis.plot(lost["d"], lost["theory"], **cross)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(scratch["d"]), [str(d) for d in scratch["d"]])
    axis.set(xlabel="width d", ylabel="tutorial's output / torch's")
    axis.legend(loc="lower right")


def draw_epsilon(axis: Axes, epsilon: pd.DataFrame) -> None:
    """Standard deviation of the output against the token's."""
    style.baseline(axis, 1)
    looks = {"textbook": ("tutorial", "o", AFTER), "torch": ("torch", "s", BEFORE)}
    for name, (label, marker, color) in looks.items():
        look: dict = {"marker": marker, "color": color, "markersize": 3, "label": label}
        axis.plot(epsilon["token_std"], epsilon[name], **look)
    axis.set_xscale("log")
    axis.set(xlabel="std of the token", ylabel="std of the output")
    axis.legend(loc="lower right")


def draw_wild(axis: Axes, before: pd.Series, after: pd.Series) -> None:
    """A vector's features before and after, with the largest one's share of the energy."""
    for when, v, color in (("before", before, BEFORE), ("after", after, AFTER)):
        share = v.pow(2).max() / v.pow(2).sum()
        axis.plot(v.index, v, ".", color=color, markersize=3, label=f"{when}: {share:.1%}")
    style.baseline(axis, 0)
    axis.set_xlabel("feature")
    axis.legend(ncols=2, **BELOW)


def draw_affine(axis: Axes, affine: pd.DataFrame, level: float) -> None:
    """Mean and standard deviation of tokens at every norm; bars are intervals over models."""
    norms = sorted(affine["index"].unique())
    for measure, (label, look) in MEASURES.items():
        values = [affine.loc[affine["index"] == i, measure] for i in norms]
        estimates = [estimate(list(v), level) for v in values]
        ends = [e.low for e in estimates], [e.high for e in estimates]
        means, marks = [e.mean for e in estimates], look | {"markersize": 3, "label": label}
        style.estimates(axis, norms, means, ends, **marks)
    axis.set_xticks(norms)
    if affine.empty:
        style.say(axis, "no token norm was measured")
    else:
        axis.legend(ncols=2, **BELOW)
    axis.set(xlabel="norm layer, in order of depth", ylabel="of a token's features")


def draw_batches(axis: Axes, batches: pd.DataFrame) -> None:
    """Change of a BatchNorm token by its batch; what LayerNorm's is, in words."""
    batchnorm = batches[batches["arm"] == "batchnorm"]
    tokens = batchnorm["tokens"]
    axis.plot(tokens, batchnorm["theory"], **THEORY)
    look: dict = DOTS | {"color": arm_look("batchnorm")["color"], "markersize": 2}
    ends = batchnorm["low"], batchnorm["high"]
    style.estimates(axis, tokens, batchnorm["mean"], ends, label="BatchNorm", **look)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(tokens), [str(n) for n in tokens])
    style.log_y(axis)
    refused = tokens[batchnorm["error"].notna()]
    largest = batches.loc[batches["arm"] == "layernorm", "mean"].max()
    words = "".join(f"BatchNorm refuses {n} token\n" for n in refused)
    words += f"LayerNorm: {largest:.2g} at every size"
    axis.text(0.03, 0.03, words, transform=axis.transAxes, va="bottom")
    axis.set(xlabel="tokens in the batch", ylabel="relative change of a token")
    axis.legend(loc="upper right")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """What the tutorial's layer, eps, an outlier, gain and bias, and a batch do."""
    affine = tables["affine"].dropna()  # a diverged model has nothing to show
    batches, wild = tables["batches"], tables["wild"].set_index("index")
    figure, axes = style.canvas(look.width_mm, 180, 3, 2, shared=False)
    draw_scratch(axes[0, 0], tables["scratch"])
    draw_epsilon(axes[0, 1], tables["epsilon"])
    draw_wild(axes[1, 0], wild["value"], wild["normalized"])
    axes[1, 0].set_ylabel("value")
    axes[1, 1].set_yscale("symlog", linthresh=1)
    draw_wild(axes[1, 1], wild["outlier"], wild["outlier_normalized"])
    axes[1, 1].set_ylim(top=2 * wild["outlier"].max())
    axes[1, 1].set_ylabel("value, with an outlier")
    draw_affine(axes[2, 0], affine, look.level)
    draw_batches(axes[2, 1], batches)
    models = affine["seed"].nunique()
    counts = f", {style.sample_size([models])}", f", {style.sample_size(batches['n'])} batches"
    for title, n, axis in zip(TITLES, ("", "", "", "", *counts), axes.flat, strict=True):
        axis.set_title(title + n, loc="left")
    draws = "–".join(str(n) for n in sorted({int(n) for n in batches["n"] if n}))
    many = f"{models} trained model{'s' * (models != 1)}; {draws} batches of each size."
    return figure, f"n: {many}"
