"""Rule figure_surrogates: what each surrogate costs, and what lets one expect it."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.jacobian.figure import ATTENTION, FEEDBACK, in_order, n_of
from normscope.studies.jacobian.measures import SURROGATES
from normscope.studies.jacobian.tables import PREDICTORS, VARIED

SHOWN = ("left_in_blocks", "left_in_final", "cosine_parameters")
MARKERS = dict(zip(SURROGATES, ("^", "s", "o"), strict=True))
MODEL: dict = {"color": "0.4", "mfc": "none"}
PLACES = {"all": "all norms", "blocks": "in blocks", "final": "final norm"}


class Flags(FigureFlags):
    """Draw the cost of surrogates."""

    protocol: CliPositionalArg[str]
    runs: Path
    costs: Path
    expected: Path


def draw_costs(axis: Axes, models: pd.DataFrame, costs: pd.DataFrame, kinds: list[tuple]) -> None:
    """Every model an open marker, the mean a dash with its interval, a cross where one diverged."""
    axis.axhline(0, color="0.6", linewidth=0.6)
    arms = style.in_order(list(costs["arm"]))
    groups = [(arm, attention) for arm in arms for attention in ATTENTION]
    for row in costs.to_dict("records"):
        color, kind = ATTENTION[row["attention"]], (row["norm_backward"], row["surrogates_in"])
        shift = (groups.index((row["arm"], row["attention"])) + 0.5) / len(groups) - 0.5
        x = kinds.index(kind) + 0.6 * shift
        there = models[(models[VARIED] == [row[k] for k in VARIED]).all(axis=1)]
        marker = style.MARKERS[arms.index(row["arm"])]
        dots: dict = {"marker": marker, "linestyle": "", "mfc": "none", "markersize": 3}
        axis.plot([x] * len(there), there["cost"], color=color, **dots)
        axis.plot([x - 0.08, x + 0.08], [row["mean"]] * 2, color=color, linewidth=1.4)
        axis.vlines(x, row["low"], row["high"], color=color, linewidth=0.8)
        axis.axhspan(-row["margin"], row["margin"], color=color, alpha=0.02, lw=0)
        ceiling = row["mean"] + row["unigram"] - row["loss"]
        axis.plot([x - 0.2, x + 0.2], [ceiling] * 2, color=color, linewidth=0.6, linestyle=":")
        lost = int(row["diverged"])
        cross: dict = {"marker": "x", "linestyle": "", "color": color}
        axis.plot([x] * lost, [0.97] * lost, transform=axis.get_xaxis_transform(), **cross)
    names = [f"{rule.replace('_', ' ')},\n{PLACES[place]}" for rule, place in kinds]
    axis.set_xticks(range(len(kinds)), names, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_xlim(-0.6, max(1, len(kinds)) - 0.4)


def draw_prediction(axis: Axes, models: pd.DataFrame, predictor: str) -> None:
    """Cost against a predictor, every model a marker, filled where all norms are replaced."""
    axis.axhline(0, color="0.6", linewidth=0.6)
    for row in models.to_dict("records"):
        color = ATTENTION[row["attention"]]
        fill = color if row["surrogates_in"] == "all" else "none"
        looks: dict = {"marker": MARKERS[row["norm_backward"]], "color": color, "mfc": fill}
        axis.plot(row[predictor], row["cost"], linestyle="", markersize=3.5, **looks)
    axis.set_xlabel(PREDICTORS[predictor])


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs, costs, models = (pd.read_csv(p) for p in (flags.runs, flags.costs, flags.expected))
    runs, costs, models = (t[t["protocol"] == flags.protocol] for t in (runs, costs, models))
    there = set(zip(costs["norm_backward"], costs["surrogates_in"], strict=True))
    kinds = [(rule, place) for rule in SURROGATES for place in PLACES if (rule, place) in there]
    feedback = in_order(list(costs["feedback"]), list(FEEDBACK))
    arms = style.in_order(list(costs["arm"]))
    rows = 1 + max(1, len(arms))
    figure, axes = style.canvas(
        flags.width_mm, 85 + 60 * (rows - 1), rows, len(SHOWN), shared=False
    )
    for line in axes:  # before anything is drawn: what is drawn later widens all
        for axis in line[1:]:
            axis.sharey(line[0])
    for axis in axes[0, max(1, len(feedback)) :]:
        axis.set_axis_off()
    if not kinds:
        axes[0, 0].text(0.5, 0.5, "no surrogate was trained", ha="center")
    for name, axis in zip(feedback, axes[0], strict=False):
        axis.set_title(FEEDBACK[name])
        of_models, of_costs = (t[t["feedback"] == name] for t in (models, costs))
        draw_costs(axis, of_models, of_costs, kinds)
    for line, arm in zip(axes[1:], arms, strict=False):
        for predictor, axis in zip(SHOWN, line, strict=True):
            draw_prediction(axis, models[models["arm"] == arm], predictor)
        line[0].set_title(ARMS[arm].label)
    for axis in axes[:, 0]:
        axis.set_ylabel("cost: loss above exact (nats)")
    marks = {name: {"color": color, "marker": ""} for name, color in ATTENTION.items()}
    if len(arms) > 1:
        shapes = zip(arms, style.MARKERS, strict=False)
        marks |= {f"above: {ARMS[a].label}": MODEL | {"marker": shape} for a, shape in shapes}
    marks |= {r.replace("_", " "): {"color": "0.4", "marker": m} for r, m in MARKERS.items()}
    marks |= {"not in all norms": MODEL | {"marker": "o"}}
    handles = [axes[1, 0].plot([], [], **looks)[0] for looks in marks.values()]
    for handle, looks in zip(handles, marks.values(), strict=True):
        handle.set_linestyle("" if looks["marker"] else "-")
    figure.legend(handles, list(marks), loc="outside lower center", ncols=6)
    style.save(figure, flags.out)
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n_of(runs)))


if __name__ == "__main__":
    report(main)
