"""Tooltips: the numbers of the tables, with their series and intervals."""

import math
import re
import xml.etree.ElementTree as ET

from planted_tables import drawn, tables_of

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.hover import MEAN, tell
from normscope.paper.svg import inlined


def titles(svg: bytes) -> list[str]:
    found = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")
    return [str(title.text) for title in found]


def test_tooltips_have_the_numbers_of_the_table_and_shifted_points_the_name_of_their_tick(tmp_path):
    saved = drawn("sweep").save(tmp_path / "sweep")
    said = {tuple(title.split("; ")) for title in titles(saved[".svg"])}
    runs = tables_of("sweep")["runs"][["arm", "learning_rate", "loss"]]
    known = {
        (ARMS[arm].label, f"learning rate: {rate:g}", f"loss (nats): {loss:.4g}")
        for arm, rate, loss in runs.to_numpy().tolist()
    }
    assert len(known) > 3
    assert known <= said


def panel(tmp_path, plot) -> list[str]:
    """The tooltips of what a function plots."""
    style.use(8)
    figure, axes = style.canvas(120, 60, 1, 2)
    axes[0, 0].set(xlabel="step", ylabel="loss\n(nats)", title="panel")
    plot(axes[0, 0])
    style.save(figure, tmp_path / "figure")
    return titles((tmp_path / "figure.svg").read_bytes())


def test_only_points_and_bars_that_were_told_have_tooltips(tmp_path):
    def plot(axis):
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
    def plot(axis):
        style.name_rows(axis, ["one", "two"])
        ends = [1, math.nan], [2, math.nan]
        style.estimates(axis, [1.5, 4], [0.1, 1], ends, MEAN, across=True, color="b", marker="|")

    assert panel(tmp_path, plot) == ["mean; one; step: 1.5 [1, 2]", "mean; two; step: 4"]


def test_ids_of_two_figures_in_a_page_differ_and_references_lead_to_them(tmp_path):
    style.use(8)
    parts = []
    for name in "ab":
        figure, axes = style.canvas(60, 40, 1, 1)
        axes[0, 0].plot([1, 2], [1, 2], "o")
        style.save(figure, tmp_path / name)
        parts.append(inlined((tmp_path / f"{name}.svg").read_text(), f"{name}-")[0])
    ids = [re.findall(r' id="([^"]+)"', part) for part in parts]
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1]) > 0
    for known, part in zip(ids, parts, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', part)) <= set(known)
