"""Rule figure_jacobian: what each norm removes of the gradient, layer by layer."""

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

MEASURES = {"r_mean": "r_mean x d", "r_radial": "r_radial x d"}
LOOKS = {  # (signal, variant)
    ("own", "corrected"): {"marker": "o", "linestyle": "-"},
    ("backprop", "corrected"): {"marker": "", "linestyle": ":"},
    ("own", "published"): {"marker": "x", "linestyle": ""},
}
NOISE = 1e-6  # a share below it is rounding
MM_PER_ROW, REST_MM = 42, 40


class Flags(FigureFlags):
    """Draw the shares of the gradient's energy that norms remove, by layer."""

    protocols: CliPositionalArg[list[str]]
    runs: Path
    layers: Path


def label(layer: str) -> str:
    """``0a`` for the norm before attention in block 0, ``0m`` the MLP's; a prime for a second."""
    if layer == "final_norm":
        return "final"
    _, block, branch, where = layer.split(".")
    return f"{block}{branch[0]}{chr(39) * (where == 'after')}"


def draw(axis: Axes, panel: pd.DataFrame) -> None:
    """Lines over the block norms, the final norm apart; bars are intervals over models."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    for attention in in_order(list(panel["attention"]), list(ATTENTION)):
        for (signal, variant), style_of in LOOKS.items():
            line = panel[
                (panel["attention"] == attention)
                & (panel["signal"] == signal)
                & (panel["variant"] == variant)
            ].sort_values("index")
            looks: dict = style_of | {"color": ATTENTION[attention], "markersize": 3}
            for place in ("block", "final"):
                part = line[line["place"] == place]
                # of one layer a dotted line would show nothing
                dot: dict = {"marker": "_"} if place == "final" and not looks["marker"] else {}
                axis.plot(part["index"], part["mean"] * part["d"], **looks | dot)
                if variant == "corrected" and signal == "own":
                    bars = part["low"] * part["d"], part["high"] * part["d"]
                    axis.vlines(part["index"], *bars, color=ATTENTION[attention], linewidth=0.8)
    ticks = panel.drop_duplicates("index").sort_values("index")
    axis.set_xticks(list(ticks["index"]), [label(name) for name in ticks["layer"]], rotation=90)


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    layers, runs = pd.read_csv(flags.layers), pd.read_csv(flags.runs)
    protocols = list(dict.fromkeys(flags.protocols))
    runs = runs[runs["protocol"].isin(protocols) & (runs["norm_backward"] == "exact")]
    columns = [
        (protocol, feedback)
        for protocol in protocols
        for feedback in in_order(list(runs["feedback"]), list(FEEDBACK))
        if len(runs[(runs["protocol"] == protocol) & (runs["feedback"] == feedback)])
    ]
    shown = layers[layers["measure"].isin(MEASURES) & (layers["mean"] > NOISE)]
    there = [(a, m) for a in style.in_order(list(shown["arm"])) for m in MEASURES]
    rows = [(a, m) for a, m in there if len(shown[(shown["arm"] == a) & (shown["measure"] == m)])]
    height = MM_PER_ROW * max(1, len(rows)) + REST_MM
    figure, axes = style.canvas(flags.width_mm, height, max(1, len(rows)), max(1, len(columns)))
    if not rows:
        lost = len(runs) > 0 and runs["diverged_at"].notna().all()
        words = "all models diverged" if lost else "no model has a norm layer"
        axes[0, 0].text(0.5, 0.5, words, ha="center", transform=axes[0, 0].transAxes)
    for (arm, measure), line in zip(rows, axes, strict=False):
        for (protocol, feedback), axis in zip(columns, line, strict=True):
            keys = {"arm": arm, "measure": measure, "protocol": protocol, "feedback": feedback}
            draw(axis, shown[(shown[list(keys)] == list(keys.values())).all(axis=1)])
        name = f"{ARMS[arm].label}: " * (len({a for a, _ in rows}) > 1)
        line[0].set_ylabel(f"{name}{MEASURES[measure]}")
        style.log_y(line[0])
    for (protocol, feedback), axis, bottom in zip(columns, axes[0], axes[-1], strict=False):
        axis.set_title(f"{protocol},\n{FEEDBACK[feedback]}")
        bottom.set_xlabel("norm layer")
    attentions = {name: {"color": color} for name, color in ATTENTION.items()}
    grey = {"color": "0.4"}
    words = {"corrected": LOOKS["own", "corrected"] | grey}
    words |= {"corrected, true gradient": LOOKS["backprop", "corrected"] | grey}
    words |= {"as published": LOOKS["own", "published"] | grey}
    handles = [axes[0, 0].plot([], [], **looks)[0] for looks in (attentions | words).values()]
    figure.legend(handles, [*attentions, *words], loc="outside lower center", ncols=5)
    style.save(figure, flags.out)
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n_of(runs)))


if __name__ == "__main__":
    report(main)
