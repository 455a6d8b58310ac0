"""Figures: the same bytes each time, sizes on paper, arms that are told apart, captions with n."""

import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import caption, count, divergences

DRAW = """
import sys
from pathlib import Path
from normscope import style
from normscope.arms import ARMS

style.use(8)
figure, axes = style.canvas(100, 60, 1, 2)
for arm in list(ARMS)[:4]:
    axes[0, 0].plot([1, 2, 4], label=arm, **style.look(arm, list(ARMS)))
axes[0, 1].hist(range(9), hatch="//")
axes[0, 0].legend()
style.save(figure, Path(sys.argv[1]))
"""


@pytest.fixture(autouse=True)
def _fresh():
    with mpl.rc_context():
        yield
    plt.close("all")


def test_two_processes_write_the_same_bytes(tmp_path):
    written = []
    for seed in ("1", "2"):
        stem = tmp_path / seed / "figure"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", DRAW, str(stem)], env=environment, check=True)
        written.append({p.name: p.read_bytes() for p in stem.parent.iterdir()})
    assert set(written[0]) == {"figure.pdf", "figure.svg"}
    assert written[0] == written[1]


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


def test_palette_is_okabe_and_itos():
    """Okabe & Ito 2008, "Color Universal Design": black to sky blue, in 8-bit RGB."""
    published = {
        (0, 0, 0),
        (230, 159, 0),
        (86, 180, 233),
        (0, 158, 115),
        (0, 114, 178),
        (213, 94, 0),
        (204, 121, 167),
    }
    assert {tuple(round(255 * c) for c in to_rgb(color)) for color in style.COLORS} == published


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_colours_stand_out_from_paper():
    """At 2:1 or more against white; the palette's yellow, left out, has 1.3:1."""
    for color in style.COLORS:
        assert 1.05 / (luminance(color) + 0.05) >= 2, color
    assert 1.05 / (luminance("#F0E442") + 0.05) < 2


def test_seven_arms_differ_in_colour_and_in_marker():
    arms = list(ARMS)[:7]
    looks = [style.look(arm, arms) for arm in arms]
    for a, b in itertools.combinations(looks, 2):
        assert a["color"] != b["color"]
        assert a["marker"] != b["marker"]


def test_all_arms_of_the_registry_are_told_apart():
    arms = list(ARMS)
    looks = [style.look(arm, arms) for arm in arms]
    for one, other in (("color", "marker"), ("color", "linestyle")):
        assert len({(str(x[one]), str(x[other])) for x in looks}) == len(arms)


def test_a_look_does_not_depend_on_how_often_an_arm_is_listed():
    once = ["layernorm", "rmsnorm", "none"]
    often = ["layernorm"] * 6 + ["rmsnorm"] * 3 + ["none"]
    for arm in once:
        assert style.look(arm, often) == style.look(arm, once)


def test_arms_come_in_the_order_of_the_registry():
    assert style.in_order(["none", "rmsnorm", "layernorm", "rmsnorm"]) == [
        "layernorm",
        "rmsnorm",
        "none",
    ]


def runs(*rows: tuple[str, str, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["arm", "placement", "seed", "diverged_at"])


NAN = math.nan
TABLE = runs(
    ("layernorm", "pre", 1, NAN),
    ("layernorm", "pre", 1, NAN),
    ("layernorm", "pre", 2, NAN),
    ("dyt", "post", 1, 40.0),
    ("none", "none", 1, NAN),
)


def test_count_says_how_many_models_stand_behind_each_arm():
    assert count(TABLE) == (
        "2 trained models of layernorm pre; 1 trained model each of dyt post, none"
    )


def test_divergences_are_named_with_their_step():
    assert divergences(TABLE) == "Diverged, and in no mean: dyt post seed 1 at step 40."
    assert divergences(TABLE[TABLE["arm"] != "dyt"]) == "No run diverged."


def test_a_caption_is_one_line_of_text_and_n(tmp_path):
    path: Path = tmp_path / "loss.rst"
    path.write_text("Validation\n  loss.\n")
    assert caption(path, "n: 3.") == "Validation loss. n: 3."
