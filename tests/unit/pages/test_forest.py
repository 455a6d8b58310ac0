"""The forest plot: every statement has its row, mark and verdict, by a scale of its own."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from normscope.pages.forest import COLORS, OTHER, draw
from normscope.pages.position import FAR
from page_recipes import CASE, claim, ledger, reading

from normscope.pages.drawing import Look

LOOK = Look(width_mm=170, font_pt=8, level=0.95)


def cases(**effects: float) -> dict:
    return {
        name: CASE | {"effect": x, "low": x - 1, "high": x + 1, "reads": "fails"}
        for name, x in effects.items()
    }


def drawn(*claims: dict) -> tuple[list[tuple], list[str]]:
    """The points (row, position, marker, color, opacity) and the words of a plot."""
    figure, _ = draw(ledger(*claims), LOOK)
    lines = [x for axis in figure.axes for x in axis.lines if x.get_marker() != "None"]
    points = [
        (
            *(*np.asarray(line.get_xydata())[0, ::-1], line.get_marker()),
            *(to_hex(line.get_color()), line.get_alpha() or 1),
        )
        for line in lines
    ]
    return points, [text.get_text() for axis in figure.axes for text in axis.texts]


def test_the_deciding_case_is_solid_and_all_others_are_faint():
    with_margin = {"margin": 0.5, "margin_because": "half"}
    readings = {
        "stated": reading(cases=cases(deep=2, flat=1), **with_margin),
        "strict": reading(cases=cases(deep=3), direction="less"),
    }
    one = claim(readings=readings, case="deep", verdict="depends", post_hoc="its test was changed")
    one["off_label"] = True
    points, words = drawn(one)
    red = COLORS["fails"].lower()
    assert points == [
        (1, 2, "o", red, 0.3),
        (1, -3, "o", red, 0.3),
        (1, 4, "o", red, 1),
    ]
    assert words == ["A. Author", "a", "depends†*"]


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        ({"n_unit": "facts", "verdict": "fails"}, [(-FAR, "D")]),
        ({"verdict": "holds"}, [(FAR, "s")]),
        ({"verdict": "depends"}, [(-FAR, "s"), (FAR, "s")]),
        ({"verdict": "undecided"}, []),
    ],
)
def test_what_has_no_scale_lies_at_the_side_of_its_verdict(changes, points):
    one = claim(readings={"stated": reading(direction=None)}, **changes)
    assert [point[1:3] for point in drawn(one)[0]] == points


def test_effects_beyond_the_axis_are_triangles_and_questions_come_last():
    far = {"stated": reading(cases={"": cases(x=1e9)["x"]})}
    question = claim(key="q", document="questions", verdict="undecided", readings=far)
    points, words = drawn(question, claim(key="b"))
    assert words[:2] == ["A. Author", "b"]
    assert words[3] == "Questions of this project"
    assert [point[:3] for point in points] == [(1, 0.25, "o"), (1, FAR, ">")]
    assert points[1][3] == to_hex(OTHER)


def test_an_empty_ledger_can_be_drawn():
    assert drawn() == ([], [])
