"""Tooltips: the numbers of the tables, with their series and intervals."""

import math
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from drawings import FIGURES, draw
from matplotlib import pyplot as plt
from planted_tables import CONFIGURATION, Case, tables_of

from normscope.errors import Explained
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.hover import MEAN, tell
from normscope.paper.svg import finished, inlined

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _fresh():
    with mpl.rc_context():
        yield
    plt.close("all")


def titles(svg: bytes) -> list[str]:
    return [str(title.text) for title in ET.fromstring(svg).iter(f"{SVG}title")]


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_numbers_are_those_of_the_table_and_a_shifted_point_has_the_name_of_its_tick(tmp_path):
    entry = FIGURES["sweep"]
    tables = tables_of(entry, Case())
    shown = titles(
        draw("sweep", tables, **entry.values(CONFIGURATION)).save(tmp_path / "sweep")[".svg"]
    )
    parts = [dict(p.rsplit(": ", 1) for p in text.split("; ") if ": " in p) for text in shown]
    said = {
        (text.split("; ")[0], number(part["learning rate"]), number(part["loss (nats)"]))
        for text, part in zip(shown, parts, strict=True)
        if "loss (nats)" in part
    }
    runs = tables["runs"]
    tried = runs.groupby(["task", "arm"])["learning_rate"].transform("nunique")
    drawn = runs[(tried >= 3) & runs["loss"].notna()].to_dict("records")
    known = {(ARMS[r["arm"]].label, r["learning_rate"], float(f"{r['loss']:.4g}")) for r in drawn}
    assert len(known) > 3
    assert known <= said


def test_a_value_between_ticks_is_itself_and_not_the_nearest_tick(tmp_path):
    entry = FIGURES["final_norm"]
    tables = tables_of(entry, Case())
    rhos = {float(f"{0.1 + rho / 7:.4g}") for rho in range(len(tables["h25_models"]))}
    tables["h25_models"] = tables["h25_models"].assign(rho=sorted(rhos))
    drawing = draw("final_norm", tables, **entry.values(CONFIGURATION))
    shown = titles(drawing.save(tmp_path / "final_norm")[".svg"])
    said = {match[1] for text in shown if (match := re.search(r"head dimension: ([\d.]+)", text))}
    assert said
    assert {float(rho) for rho in said} <= rhos


def panel(tmp_path, plot) -> list[str]:
    style.use(8)
    figure, axes = style.canvas(120, 60, 1, 2)
    axes[0, 0].set(xlabel="step", ylabel="loss\n(nats)", title="panel")
    plot(figure, axes[0, 0])
    style.save(figure, tmp_path / "figure")
    return titles((tmp_path / "figure.svg").read_bytes())


def test_only_points_and_bars_that_were_told_have_tooltips(tmp_path):
    def plot(_, axis):
        style.points(axis, [1, 2], [3, -4.56789e-7], "LayerNorm", marker="o")
        axis.plot(range(50), [x / 7 for x in range(50)], "o")
        style.points(axis, [5], [6], "<b>", marker="^")
        style.points(axis, [], [], "nothing", marker="o")
        style.points(axis, [5], [0.97], marker="x", transform=axis.get_xaxis_transform())
        for bar in axis.barh([1], [0.25]):
            tell(bar, "share")

    assert sorted(panel(tmp_path, plot)) == [
        "<b>; step: 5; loss (nats): 6",
        "LayerNorm; step: 1; loss (nats): 3",
        "LayerNorm; step: 2; loss (nats): −4.568e-07",
        "share; step: 0.25; loss (nats): 1",
        "step: 5",
    ]


def test_an_interval_follows_its_point_and_rows_come_first(tmp_path):
    def plot(_, axis):
        style.name_rows(axis, ["one", "two"])
        ends = [1, math.nan], [2, math.nan]
        style.estimates(axis, [1.5, 4], [0.1, 1], ends, MEAN, across=True, color="b", marker="|")

    assert panel(tmp_path, plot) == ["mean; one; step: 1.5 [1, 2]", "mean; two; step: 4"]


def test_ids_of_two_figures_in_a_page_differ_and_lead_somewhere(tmp_path):
    style.use(8)
    parts = []
    for name in "ab":
        figure, axes = style.canvas(60, 40, 1, 1)
        axes[0, 0].plot([1, 2], [1, 2], "o")
        style.save(figure, tmp_path / name)
        parts.append(inlined(name, (tmp_path / f"{name}.svg").read_bytes(), f"{name}-").elements)
    ids = [re.findall(r' id="([^"]+)"', part) for part in parts]
    assert all(ids)
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1])
    for known, part in zip(ids, parts, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', part)) == set(known)


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<rect onload="alert(1)"/>',
        '<use href="https://example.org/x.svg"/>',
        "<foreignObject/>",
    ],
)
def test_elements_that_no_drawing_has_are_refused(inside):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">{inside}</svg>'
    with pytest.raises(Explained, match="that no drawing has"):
        inlined("x", svg.encode(), "")


def test_a_short_number_is_near_and_what_is_not_referred_to_is_gone():
    drawn = (
        b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        b'<metadata/><g id="m" transform="translate(1.23456 -0.00001) scale(0.015625)">'
        b'<path id="p" d="M 1.23456 2\nL 3 4.5"/>'
        b'<use xlink:href="#p" x="9.87654321" y="1"/></g></svg>'
    )
    group = ET.fromstring(finished(drawn, {})).find(f"{SVG}g")
    assert group is not None
    assert group.attrib == {"transform": "translate(1.23 0) scale(0.015625)"}
    assert [child.attrib for child in group] == [
        {"id": "p", "d": "M 1.23 2 L 3 4.5"},
        {"x": "9.88", "y": "1", "href": "#p"},
    ]
