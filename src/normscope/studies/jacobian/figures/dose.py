"""Figure dose: what a share of the radial part costs, and the scale that it blows up."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.jacobian.figures import FEEDBACK, describe_outcomes

PLACES = {"all": style.COLORS[0], "final": style.COLORS[2], "blocks": style.COLORS[1]}
NAMES = {"all": "all norms", "final": "final norm", "blocks": "block norms"}
NO_LINE: dict = {"linestyle": ""}
NO_MARK: dict = {"marker": ""}
PENALTY: dict = {"linestyle": (0, (4, 1.5)), "marker": "s"}
EXACT = "0.6"
SHIFT = 0.04  # of the share, over which places are dodged
RULE = "center_scale"


def draw_costs(axis: Axes, costs: pd.DataFrame) -> None:
    """Mean cost against the share left in, one line per place, dashed where sigma is held."""
    axis.axhline(0, color=EXACT, linewidth=0.6)
    for key, line in split(costs, ["surrogates_in", "sigma_penalty"]):
        doses = line.sort_values("radial_share")
        place = key["surrogates_in"]
        shares = doses["radial_share"] + style.dodge([*PLACES].index(place), len(PLACES), SHIFT)
        look: dict = {"color": PLACES[place], "marker": "o"}
        look |= PENALTY if key["sigma_penalty"] else {}
        # with nothing left in there is no cost by definition, and no model
        line_only, dots = look | NO_MARK, look | NO_LINE
        axis.plot([0, *shares], [0, *doses["mean"]], **line_only)
        style.estimates(axis, shares, doses["mean"], (doses["low"], doses["high"]), **dots)
    swept = sorted({0.0, *costs["radial_share"]})
    axis.set_xticks(swept, [f"{share:g}" for share in swept])
    axis.set_xlabel("share of the radial part left in")


def draw_sigma(axis: Axes, sigma: pd.DataFrame) -> None:
    """The scale before the final norm over steps, of the exact pass and of all left in."""
    shown = select(sigma[sigma["norm_backward"].isin(["exact", RULE])], radial_share=1.0)
    for key, line in split(shown, ["norm_backward", "surrogates_in", "sigma_penalty"]):
        color = EXACT if key["norm_backward"] == "exact" else PLACES[key["surrogates_in"]]
        dashes = PENALTY["linestyle"] if key["sigma_penalty"] else "-"
        axis.plot(line["step"], line["mean"], color=color, linestyle=dashes)
        axis.fill_between(line["step"], line["low"], line["high"], color=color, alpha=0.12, lw=0)
    axis.set_xlabel("step")
    style.log_y(axis)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocol: str, arm: str, attention: str
) -> tuple[Figure, str]:
    """Costs above and sigma below for one arm and attention, one column per kind of feedback."""
    kept = {
        name: select(table, protocol=protocol, arm=arm, attention=attention)
        for name, table in tables.items()
    }
    doses = select(kept["costs"], norm_backward=RULE)
    feedback = [name for name in FEEDBACK if (doses["feedback"] == name).any()]
    figure, axes = style.canvas(look.width_mm, 120, 2, max(1, len(feedback)), shared=False)
    for row in axes:
        style.share_y(row)
    if not feedback:
        style.say(axes[0, 0], "no surrogate was trained")
    for name, (top, bottom) in zip(feedback, axes.T, strict=False):
        for axis, table in ((top, doses), (bottom, kept["sigma"])):
            n = style.sample_size(select(table, feedback=name)["n"])
            axis.set_title(f"{FEEDBACK[name]}, {n}")
        draw_costs(top, select(doses, feedback=name))
        draw_sigma(bottom, select(kept["sigma"], feedback=name))
    axes[0, 0].set_ylabel("cost (nats)")
    axes[1, 0].set_ylabel("sigma before the final norm\n(geometric mean)")
    looks: dict[str, dict] = {NAMES[place]: {"color": color} for place, color in PLACES.items()}
    looks |= {"exact": {"color": EXACT}, "sigma held": {"color": "0.4", **PENALTY}}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=5)
    return figure, describe_outcomes(select(kept["losses"], norm_backward=RULE))
