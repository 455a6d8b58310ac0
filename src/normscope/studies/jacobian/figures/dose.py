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
    """Costs at the left and scales at the right, for one norm, attention and kind of feedback."""
    kept = {
        name: select(table, protocol=protocol, arm=arm, attention=attention)
        for name, table in tables.items()
    }
    doses = select(kept["costs"], norm_backward=RULE)
    figure, axes = style.canvas(look.width_mm, 75, 1, 2, shared=False)
    left, right = axes[0]
    left.set_ylabel("loss above that of the exact\nbackward pass (nats)")
    right.set_ylabel("standard deviation\nbefore the final norm")
    trained = [name for name in FEEDBACK if (doses["feedback"] == name).any()]
    for axis, table in ((left, doses), (right, kept["sigma"])):
        axis.set_title(
            style.sample_size(select(table, feedback=trained[0])["n"] if trained else [])
        )
    if not trained:
        return figure, style.say(left, "no surrogate was trained")
    draw_costs(left, select(doses, feedback=trained[0]))
    draw_sigma(right, select(kept["sigma"], feedback=trained[0]))
    looks: dict[str, dict] = {NAMES[place]: {"color": color} for place, color in PLACES.items()}
    looks |= {"exact": {"color": EXACT}, "with a penalty": {"color": "0.4", **PENALTY}}
    style.legend_below(figure, style.samples(left, looks), ncols=5)
    return figure, f"Trained by {FEEDBACK[trained[0]]}. {describe_outcomes(doses)}"
