"""Figures and LaTeX of the norms' backward pass from planted losses and layers."""

import functools
import itertools
import re
import runpy
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from jacobian_recipes import GRADIENTS, LAYERS, frame, gradient, layer, model
from latex_recipes import rows_of, tex
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from normscope.studies.jacobian.figure import ATTENTION
from processes import SCRIPTS

from normscope.nn.arms import ARMS
from normscope.paper.style import MARKERS
from normscope.studies.jacobian.measures import MEASURES, SURROGATES
from normscope.studies.jacobian.tables import (
    PREDICTORS,
    at_chosen_rate,
    by_layer,
    chosen,
    costs,
    predictors,
)

BLOCK = {"r_mean": 0.1, "r_radial": 0.2}
BLOCK |= dict.fromkeys((f"{x}_{rule}" for x in ("cos", "error") for rule in SURROGATES), 0.5)
NAMES = ("blocks.0.attention.before", "blocks.0.mlp.before", "blocks.0.mlp.after", "final_norm")
LABELS = {"0a", "0m", "0m'", "final"}
KINDS = (("own", "corrected"), ("backprop", "corrected"), ("own", "published"))
PREDICTORS_SHOWN = ("left_in_blocks", "left_in_final", "cosine_parameters")
PROTOCOLS, SEEDS = ("script", "small"), (1, 2)
RULES = ("center_scale all", "center_scale final", "straight_through blocks")
UNIGRAM = 3.0  # loss of character frequencies


def write_tables(
    place: Path,
    *,
    arms: tuple[str, ...] = ("layernorm",),
    attention: tuple[str, ...] = ("softmax", "sigmoid"),
    feedback: tuple[str, ...] = ("fa",),
    rules: tuple[str, ...] = RULES,
    lost: tuple[str, ...] = (),
    rates: tuple[float, ...] = (0.01,),
) -> None:
    """Tables of two protocols, as the workflow's; of lost rules every run diverged at step 3."""
    losses, layers, gradients = [], [], []
    settings = itertools.product(PROTOCOLS, arms, attention, feedback, rates)
    for (i, values), seed in itertools.product(enumerate(settings), SEEDS):
        names = ("protocol", "arm", "attention", "feedback", "learning_rate")
        keys: dict[str, Any] = dict(zip(names, values, strict=True))
        for j, name in enumerate(("exact all", *rules)):
            rule, where = name.split()
            loss = None if rule in lost else 2 + 0.1 * j + 0.01 * i * seed
            losses.append(model(seed, loss, norm_backward=rule, surrogates_in=where, **keys))
            if j and "exact" not in lost:
                cosine = 0.5 + 0.01 * (i + seed)
                gradients.append(gradient(seed, cosine, rule, where, **keys))
        if "none" in arms:
            continue
        for (k, name), (signal, variant) in itertools.product(enumerate(NAMES), KINDS):
            grown = {m: v * (1 + 0.1 * (i + k + seed)) for m, v in BLOCK.items()}
            measures = dict.fromkeys(MEASURES, float("nan")) if "exact" in lost else grown
            layers.append(
                layer(seed, name, measures, index=k, signal=signal, variant=variant, **keys)
            )
    # the script knows a cell's rate from its name, also where the cell has no row
    of_layers, of_gradients = (
        frame(rows, columns).astype({"learning_rate": float})
        for rows, columns in ((layers, LAYERS), (gradients, GRADIENTS))
    )
    picked = chosen(frame(losses))
    tables = {
        "losses": frame(losses),
        "layers_by_cell": by_layer(at_chosen_rate(of_layers, picked), 0.95),
    }
    tables |= {"costs": costs(picked, 0.95, UNIGRAM, 2.0)}
    tables |= {"expected": predictors(picked, of_layers, of_gradients)}
    for name, table in tables.items():
        table.to_csv(place / f"{name}.csv", index=False)
    (place / "shown.rst").write_text("What is\n  shown.\n")


def run(name: str, arguments: list[object]) -> None:
    script = SCRIPTS / f"{name}.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        runpy.run_path(str(script), run_name="__main__")


class Panel(NamedTuple):
    title: str
    label: str  # of x
    points: list[tuple[str, float, float]]  # marker, x, y, of lines without a line
    lines: list[list[float]]  # x of lines with more than two points
    dotted: list[tuple[object, list[float], list[float]]]  # color, x, y of two points
    bands: list[tuple[float, float]]


class Drawn(NamedTuple):
    written: list[str]
    caption: str
    files: dict[str, bytes]
    panels: list[Panel]


def panel(axis: Axes) -> Panel:
    points, lines, dotted = [], [], []
    for line in axis.lines:
        x, y = (np.asarray(data, dtype=float).tolist() for data in line.get_data())
        if len(x) > 2:
            lines.append(x)
        if len(x) == 2 and line.get_linestyle() == ":":
            dotted.append((line.get_color(), x, y))
        if line.get_linestyle() == "None":
            points += [(str(line.get_marker()), *at) for at in zip(x, y, strict=True)]
    spans = [p for p in axis.patches if isinstance(p, Rectangle)]
    bands = [(p.get_y(), p.get_y() + p.get_height()) for p in spans]
    return Panel(axis.get_title(), axis.get_xlabel(), points, lines, dotted, bands)


def draw(name: str, place: Path, out: str = "figure") -> Drawn:
    """Run a figure's script on the tables; what is in it, and its caption."""
    words: list[object] = [*(PROTOCOLS if name == "jacobian" else ("small",))]
    words += ["--runs", place / "losses.csv"]
    if name == "jacobian":
        words += ["--layers", place / "layers_by_cell.csv"]
    else:
        words += ["--costs", place / "costs.csv", "--expected", place / "expected.csv"]
    words += ["--width-mm", 170, "--font-pt", 8, "--level", 0.95]
    stem = place / out / name
    words += ["--caption", place / "shown.rst", "--out", stem]
    with mpl.rc_context(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "close", lambda *_: None)
        run(f"figure_{name}", words)
        panels = [panel(axis) for axis in plt.gcf().axes]
    plt.close("all")
    files = {p.name: p.read_bytes() for p in stem.parent.glob(f"{name}.*")}
    svg, caption = (files[f"{name}.{kind}"].decode() for kind in ("svg", "txt"))
    # matplotlib names the text beside its glyphs, a line each
    return Drawn(re.findall(r"<!-- (.*?) -->", svg, re.DOTALL), caption, files, panels)


class Scene:
    """Tables, and what is made of them, each once."""

    def __init__(self, place: Path, **what: Any) -> None:
        self.place = place
        write_tables(place, **what)

    @functools.cached_property
    def jacobian(self) -> Drawn:
        return draw("jacobian", self.place)

    @functools.cached_property
    def surrogates(self) -> Drawn:
        return draw("surrogates", self.place)

    @functools.cached_property
    def tex(self) -> dict[str, str]:
        return tex(self.place)


@pytest.fixture(scope="module")
def one_arm(tmp_path_factory) -> Scene:
    """Two kinds of attention and of feedback, two rates, of which 0.01 is better; a rule lost."""
    what: dict[str, Any] = {"feedback": ("backprop", "fa"), "rates": (0.01, 0.1)}
    return Scene(tmp_path_factory.mktemp("one"), lost=("straight_through",), **what)


@pytest.fixture(scope="module")
def two_arms(tmp_path_factory) -> Scene:
    what: dict[str, Any] = {"attention": ("softmax",), "rules": RULES[:2]}
    return Scene(tmp_path_factory.mktemp("two"), arms=("layernorm_gain", "layernorm"), **what)


@pytest.fixture(scope="module")
def all_lost(tmp_path_factory) -> Scene:
    lost = ("exact", "center_scale", "straight_through")
    return Scene(tmp_path_factory.mktemp("lost"), attention=("softmax",), lost=lost)


@pytest.fixture(scope="module")
def no_norm(tmp_path_factory) -> Scene:
    what: dict[str, Any] = {"attention": ("softmax",), "rules": ()}
    return Scene(tmp_path_factory.mktemp("none"), arms=("none",), **what)


BOTH = ("jacobian", "surrogates")


@pytest.mark.parametrize("name", BOTH)
def test_a_figure_is_the_same_bytes_again(name, two_arms):
    drawn = getattr(two_arms, name)
    assert set(drawn.files) == {f"{name}.pdf", f"{name}.svg", f"{name}.txt"}
    assert drawn.files[f"{name}.pdf"].startswith(b"%PDF")
    assert draw(name, two_arms.place, "again").files == drawn.files


def titles(written: list[str]) -> str:
    return " ".join(" ".join(text.split()) for text in written)


def test_every_protocol_and_feedback_has_a_panel_with_all_layers(one_arm):
    written, caption, _, panels = one_arm.jacobian
    assert {"feedback alignment", "backpropagation"} <= set(written)
    for protocol in PROTOCOLS:
        assert titles(written).count(f"{protocol},") == 2
    assert {*LABELS, "softmax", "sigmoid", "corrected", "as published"} <= set(written)
    assert written.count("final") == 4
    assert {"r_mean x d", "r_radial x d"} <= set(written)
    assert len(panels) == 2 * 4
    # exact cells: 2 protocols x 2 kinds of attention x 2 of feedback x 2 rates
    assert caption == "What is shown. n: 2 trained models each of 16 cells. No run diverged.\n"


def test_a_line_over_layers_has_every_layer_once(one_arm):
    """With both rates in one line it would jump back and forth."""
    lines = [x for panel in one_arm.jacobian.panels for x in panel.lines]
    # of each kind of attention: own, true and published
    assert lines == [[0.0, 1.0, 2.0]] * 2 * 3 * 2 * 4


def test_several_arms_have_rows_of_their_own_names(two_arms):
    drawn, arms = two_arms.jacobian, ("layernorm", "layernorm_gain")
    for arm, measure in itertools.product(arms, ("r_mean", "r_radial")):
        assert f"{ARMS[arm].label}: {measure} x d" in drawn.written
        assert f"script {arm} softmax fa exact all 0.01, " in drawn.caption
    assert "center_scale" not in drawn.caption


def test_shares_that_are_rounding_have_no_row(two_arms, tmp_path):
    table = pd.read_csv(two_arms.place / "layers_by_cell.csv")
    table.loc[table["measure"] == "r_mean", "mean"] = 9e-7
    table.to_csv(tmp_path / "layers_by_cell.csv", index=False)
    for name in ("losses.csv", "shown.rst"):
        (tmp_path / name).write_bytes((two_arms.place / name).read_bytes())
    drawn = draw("jacobian", tmp_path)
    labels = {f"{ARMS[arm].label}: r_radial x d" for arm in ("layernorm", "layernorm_gain")}
    assert {text for text in drawn.written if text.endswith(" x d")} == labels


# the i of a setting of one_arm, small and at 0.01, in write_tables
AT_I = {"backpropagation": (8, 12), "feedback alignment": (10, 14)}  # softmax, sigmoid


@pytest.mark.parametrize("name", AT_I)
def test_a_dotted_line_is_where_a_cost_is_that_of_character_frequencies(name, one_arm):
    """Exact models lose 2 + 0.01 i and 2 + 0.02 i, of which the mean is 2 + 0.015 i."""
    (drawn,) = [panel for panel in one_arm.surrogates.panels if panel.title == name]
    there = [(color, x, y) for color, x, y in drawn.dotted if not np.isnan(y).any()]
    colors = [ATTENTION[attention] for attention in ("softmax", "sigmoid")]
    for color, i in zip(colors, AT_I[name], strict=True):
        of_color = [(x, y) for of, x, y in there if of == color]
        # center_scale in all norms and in the final one; straight_through diverged
        assert [round(x[0] + x[1]) / 2 for x, _ in of_color] == [0, 1]
        assert [y for _, y in of_color] == [[pytest.approx(1 - 0.015 * i)] * 2] * 2
    assert len(there) == 4


@pytest.mark.parametrize("name", AT_I)
def test_the_band_of_the_margin_lies_on_both_sides_of_0(name, one_arm):
    """Two losses 0.01 i apart: sd is 0.01 i / sqrt(2)."""
    (drawn,) = [panel for panel in one_arm.surrogates.panels if panel.title == name]
    margins = [0.01 * i * 2**0.5 for i in AT_I[name] for _ in RULES]
    found = sorted(drawn.bands, key=lambda band: band[1])
    assert found == [pytest.approx((-margin, margin)) for margin in margins]


def test_every_surrogate_and_place_has_its_costs(one_arm):
    lines = [line for w in one_arm.surrogates.written for line in w.splitlines()]
    for rule in ("center scale", "straight through"):
        assert f"{rule}," in lines
    assert {"all norms", "in blocks", "final norm", "softmax", "sigmoid"} <= set(lines)
    assert {"feedback alignment", "backpropagation"} <= set(lines)
    for words in ("block norms", "final norm", "all parameters"):
        assert any(line.endswith(f", {words}") for line in lines)
    assert "above: " not in titles(lines)


def test_every_arm_has_a_marker_of_its_own_and_a_row_of_predictions(two_arms):
    _, _, _, panels = two_arms.surrogates
    written = titles(two_arms.surrogates.written)
    models = pd.read_csv(two_arms.place / "expected.csv")
    models = models[models["protocol"] == "small"]
    assert len(panels) == 3 * 3
    for i, arm in enumerate(("layernorm", "layernorm_gain")):
        of_arm, label = models[models["arm"] == arm], ARMS[arm].label
        assert f"above: {label}" in written
        row = panels[3 * (i + 1) : 3 * (i + 2)]
        assert row[0].title == label
        for panel, predictor in zip(row, PREDICTORS_SHOWN, strict=True):
            assert panel.label == PREDICTORS[predictor]
            shown = {(x, y) for _, x, y in panel.points}
            assert shown == set(zip(of_arm[predictor], of_arm["cost"], strict=True))
        shown = {y for marker, _, y in panels[0].points if marker == MARKERS[i]}
        assert shown == set(of_arm["cost"])


def test_what_diverged_is_named_with_its_step(one_arm):
    head, _, lost = one_arm.surrogates.caption.partition(" Diverged, and in no mean: ")
    # 2 kinds of attention x 2 of feedback x 2 rates x (exact and 3 surrogates) of one protocol
    assert head == "What is shown. n: 2 trained models each of 32 cells."
    assert lost.count("at step 3") == 2 * 2 * 2 * len(SEEDS)
    for attention, seed in itertools.product(("softmax", "sigmoid"), SEEDS):
        name = f"small layernorm {attention} fa straight_through blocks 0.01 seed {seed}"
        assert f"{name} at step 3" in lost
    assert "center_scale" not in lost


def test_where_all_diverged_both_figures_are_drawn_and_say_so(all_lost):
    assert all_lost.surrogates.caption.count("at step 3") == 4 * len(SEEDS)
    assert all_lost.jacobian.caption.count("at step 3") == 2 * len(SEEDS)
    assert "all models diverged" in all_lost.jacobian.written


def test_without_a_norm_layer_both_figures_say_what_is_missing(no_norm):
    assert "no model has a norm layer" in no_norm.jacobian.written
    cells = [f"{protocol} none softmax fa exact all 0.01" for protocol in PROTOCOLS]
    assert f"n: 2 trained models each of {', '.join(cells)}. No run" in no_norm.jacobian.caption
    assert "no surrogate was trained" in no_norm.surrogates.written
    assert f"n: 2 trained models of {cells[1]}. No run" in no_norm.surrogates.caption


@pytest.mark.parametrize(
    ("scene", "cells", "costs"),
    # a cell has 4 layers and an average; of a setting every surrogate and place has a cost
    [("one_arm", 2 * 2, 3 * 2 * 2), ("two_arms", 2, 2 * 2)],
)
def test_latex_tables_are_booktabs_rows_without_a_bare_underscore(scene, cells, costs, request):
    """Outside of math TeX takes no underscore, in a header neither."""
    found = request.getfixturevalue(scene).tex
    for name, n in (("jacobian", 5 * cells), ("surrogates", costs)):
        rows = rows_of(found[name])
        assert len(rows) == 1 + n
        assert not [row for row in rows if re.search(r"(?<!\\)[_%#]", row)]
    for name, word in (("surrogates", r"center\_scale"), ("jacobian", r"final\_norm")):
        assert word in found[name].replace(r"\allowbreak{}", "")


def test_macros_of_costs_have_letters_only_and_are_told_apart(two_arms):
    lines = two_arms.tex["numbers"].splitlines()
    names = [re.fullmatch(r"\\newcommand\{\\([A-Za-z]+)\}\{.*\}", line) for line in lines]
    assert None not in names
    found = [name[1] for name in names if name]
    assert len(set(found)) == len(found)
    of_costs = [name for name in found if name.endswith("Cost")]
    assert len(of_costs) == 2 * 2 * 2  # protocols, arms, rules
    assert r"SoftmaxFaCenterScaleAllCost}{\num{0.100}}" in "\n".join(lines)


def test_a_diverged_cost_has_a_row_and_no_macro(one_arm):
    assert "StraightThrough" not in one_arm.tex["numbers"]
    assert "CenterScale" in one_arm.tex["numbers"]
    rows = [row for row in rows_of(one_arm.tex["surrogates"]) if r"straight\_through" in row]
    assert len(rows) == 4
    assert all("2 diverged: no claim" in row for row in rows)


def test_latex_tables_of_nothing_are_tables_that_tex_takes(no_norm, all_lost):
    for text in (no_norm.tex["jacobian"], no_norm.tex["surrogates"], all_lost.tex["jacobian"]):
        assert rows_of(text) == [r"{} \\", r"none \\"]
    for scene in (no_norm, all_lost):
        assert "Cost}" not in scene.tex["numbers"]


def test_a_row_is_of_the_protocol_that_its_table_is_of(two_arms, tmp_path):
    for name in ("layers_by_cell", "costs"):
        table = pd.read_csv(two_arms.place / f"{name}.csv")
        keep = "script" if name == "costs" else "small"
        assert (table["protocol"] == keep).any()
        table[table["protocol"] == keep].to_csv(tmp_path / f"{name}.csv", index=False)
    found = tex(tmp_path)
    for name in BOTH:
        assert rows_of(found[name])[1:] == [r"none \\"]
