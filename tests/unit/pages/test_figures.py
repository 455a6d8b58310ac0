"""The look of figures: sizes on paper, distinct arms, readable ticks, sample sizes."""

import itertools
import math
import os
import re
import subprocess
import sys

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from processes import SCRIPTS

from normscope.pages import style
from normscope.studies.arms import divergences

RUNS = """\
protocol,arm,placement,learning_rate,seed,text,capped_loss,failed,diverged_at
small,layernorm,pre,0.01,1,dataset,1.5,0,
small,rmsnorm,pre,0.01,1,dataset,1.6,0,
"""


def by_hand(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """scripts/draw.py with these arguments."""
    command = [sys.executable, str(SCRIPTS / "draw.py"), *map(str, words)]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)


def test_a_figure_drawn_by_hand_is_the_same_bytes_in_another_environment(tmp_path):
    """Another order of hashes, a locale of ASCII, and a user's matplotlibrc."""
    (tmp_path / "chosen.csv").write_text(RUNS)
    words: list[object] = ["main", "loss", f"--tables=chosen={tmp_path}/chosen.csv"]
    baseline = '{"arm": "layernorm", "placement": "pre"}'
    params = f'"protocols": ["small"], "titles": {{"small": "300 steps"}}, "baseline": {baseline}'
    words += ["--params", f"{{{params}}}"]
    words += ["--look", '{"width_mm": 170, "font_pt": 8, "level": 0.9}']
    caption = 'Of {braces}, "quotes" ä\n and   lines.'
    settings = tmp_path / "matplotlibrc"
    settings.write_text(
        "axes.grid: True\nlines.linestyle: --\nfont.family: serif\nsavefig.dpi: 9\n"
    )
    written = []
    for seed, more in ("1", {}), ("2", {"MATPLOTLIBRC": str(settings), "LC_ALL": "C"}):
        stem = tmp_path / seed / "figure"
        done = by_hand(*words, "--caption", caption, "--out", stem, PYTHONHASHSEED=seed, **more)
        assert done.returncode == 0, done.stderr
        written.append({p.name: p.read_bytes() for p in stem.parent.glob("[!.]*")})
    assert set(written[0]) == {"figure.pdf", "figure.svg", "figure.txt"}
    assert written[0] == written[1]
    text = written[0]["figure.txt"].decode()
    assert text.startswith('Of {braces}, "quotes" ä and lines. Bars: ')
    assert "90% t intervals" in text
    assert text.endswith(" No run diverged.\n")


def test_a_wrong_argument_is_an_error_that_names_it(tmp_path):
    look = ["--look", '{"width_mm": 170, "font_pt": 8, "level": 0.9}']
    done = by_hand("main", "los", "--tables", "", *look, "--out", tmp_path / "x")
    assert done.returncode == 1
    assert "did you mean main loss?" in done.stderr


def test_a_figure_has_its_size_and_fonts_on_paper(tmp_path):
    style.use(8)
    figure, axes = style.canvas(170, 75, 2, 3)
    assert axes.shape == (2, 3)
    axes[0, 0].set_title("title")
    style.save(figure, tmp_path / "figure")
    pdf = (tmp_path / "figure.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?([\d. ]+?) ?\]", pdf)
    assert box is not None
    left, bottom, right, top = map(float, box[1].split())
    points = 72 / 25.4
    assert (right - left, top - bottom) == pytest.approx((170 * points, 75 * points), abs=0.1)
    assert axes[0, 0].title.get_fontsize() == 8
    assert b"/FontFile2" in pdf  # TrueType, which journals ask for; matplotlib's default is Type 3
    assert not plt.get_fignums()


def test_svg_has_every_mark_and_text_at_its_place(tmp_path):
    style.use(8)
    figure, axes = style.canvas(60, 40, 1, 1)
    axis = axes[0, 0]
    axis.plot([1, 2, 4], [1, 3, 2], "o", label="a & b < c")
    axis.plot([1.23456], [2], "s", alpha=0.5)
    axis.legend()
    style.save(figure, tmp_path / "one")
    figure.set_dpi(style.DPI)
    height = figure.bbox.height
    expected = [(x, height - y) for x, y in axis.transData.transform([(1, 1), (2, 3), (4, 2)])]
    svg = (tmp_path / "one.svg").read_text()
    (places,) = re.findall(r'd="M([\d. ]+)" style="fill:none;marker:url', svg)
    numbers = list(map(float, places.split()))
    assert numbers == pytest.approx([v for place in expected for v in place], abs=0.006)
    assert set(re.findall(r"#([am]\d+)", svg)) == set(re.findall(r' id="([^"]+)"', svg))
    assert ">a &amp; b &lt; c</text>" in svg
    assert "opacity:0.5" in svg
    assert not re.search(r"\d\.\d{3}[^p]", svg)  # font sizes remain exact


TABLE = pd.DataFrame(
    [
        ("layernorm", "pre", 1, math.nan),
        ("layernorm", "pre", 1, math.nan),
        ("layernorm", "pre", 2, math.nan),
        ("dyt", "post", 1, 40.0),
        ("none", "none", 1, math.nan),
    ],
    columns=["arm", "placement", "seed", "diverged_at"],
)


def test_divergences_are_named_with_their_step():
    assert divergences(TABLE) == "Diverged, and in no mean: DyT post seed 1 at step 40."
    assert divergences(TABLE[TABLE["arm"] != "dyt"]) == "No run diverged."


def labels(values: list[float]) -> tuple[list[float], list[str]]:
    """Ticks with a label within the view of a logarithmic axis, and their labels."""
    style.use(8)
    figure, axes = style.canvas(80, 60, 1, 1)
    axis = axes[0, 0]
    axis.plot(values, marker="o")
    style.log_y(axis)
    figure.canvas.draw()
    low, high = axis.get_ylim()
    assert math.isfinite(low)
    assert low < high
    ticks = [*axis.yaxis.get_major_ticks(), *axis.yaxis.get_minor_ticks()]
    placed = [(t.get_loc(), t.label1.get_text()) for t in ticks]
    shown = [(y, text) for y, text in placed if low <= y <= high and text]
    return [y for y, _ in shown], [text for _, text in shown]


@pytest.mark.parametrize(
    "values",
    [
        *([2.0, 2.4], [2.0, 9.0], [0.02, 0.4], [150.0, 2000.0], [2.9957, 2.9961], [1.0, 1.001]),
        [0.02, 0.5],  # a decade and a half: the view is from 0.017 to 0.59
    ],
)
def test_a_logarithmic_axis_over_little_has_distinct_plain_numbers(values):
    ticks, written = labels(values)
    assert 2 <= len(ticks) <= 12
    assert [float(text) for text in written] == pytest.approx(ticks, rel=5e-3)
    assert len(set(written)) == len(written)


@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.parametrize("values", [[], [math.nan, math.nan], [3.0], [0.0, 0.0]])
def test_a_logarithmic_axis_of_nothing_or_of_one_value_can_be_drawn(values):
    labels(values)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_numbers_of_a_logarithmic_axis_do_not_overlap(columns):
    """Of long numbers fewer have room: 0.0001 and 0.001 would overlap in a third of the width."""
    style.use(8)
    figure, axes = style.canvas(170, 70, 1, columns, shared=False)
    for axis in axes.flat:
        axis.set_ylabel("validation loss (nats)")
        style.log_x(axis, [m * 10.0**k for k in range(-4, 0) for m in (1, 3)])
    figure.draw_without_rendering()
    for axis in axes.flat:
        shown = [label for label in axis.get_xticklabels() if label.get_text()]
        ends = [label.get_window_extent() for label in shown]
        assert len(shown) >= 3
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(ends))
