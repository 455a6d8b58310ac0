"""The figure of effects that change with size: one panel per statement, in units of its bound."""

import numpy as np
import pytest
from normscope.pages.reach import draw
from page_recipes import CASE, claim, ledger, reading

from normscope.pages.drawing import Look

LOOK = Look(width_mm=170, font_pt=8, level=0.95)


def case(effect: float, blocks: int, steps: int) -> dict:
    extent = {"blocks": blocks, "d": 64, "steps": steps, "text": "dataset"}
    ends = {"effect": effect, "low": effect - 0.1, "high": effect + 0.1}
    return {"": CASE | ends | {"reads": "holds", "extents": [extent]}}


def test_effects_are_drawn_from_the_smallest_size_to_the_largest_in_units_of_their_margin():
    margin = {"margin": 0.5, "margin_because": "half"}
    readings = {
        "stated": reading(cases=case(1, 2, 300), **margin),
        "longer": reading(cases=case(2, 2, 2000), reach="stated", **margin),
        "larger": reading(cases=case(4, 4, 300), reach="stated", **margin),
    }
    places = [[name, ""] for name in readings]
    changing = claim(readings=readings, changing=[places], with_size="changes between a and b")
    figure, n = draw(ledger(claim(key="b"), changing), LOOK)
    (axis,) = figure.axes
    assert axis.get_title(loc="left").endswith("\nchanges")  # the axis has the sizes
    (line,) = [line for line in axis.lines if line.get_marker() == "o"]
    assert np.asarray(line.get_xydata()).tolist() == [[0, 2], [1, 4], [2, 8]]
    assert [word.get_text() for word in axis.get_xticklabels()] == [
        *("2 x 64,\n300", "2 x 64,\n2,000", "4 x 64,\n300")
    ]
    (bars,) = [c for c in axis.collections if len(c.get_paths()) == 3]
    assert np.asarray(bars.get_paths()[0].vertices)[:, 1] == pytest.approx([1.8, 2.2])
    assert n == "1 statement, 95% intervals."


def test_readings_that_are_supported_in_different_regions_have_panels_of_their_own():
    within = {"direction": "within", "margin": 0.5, "margin_because": "half"}
    readings = {
        "above": reading(cases=case(1, 2, 300)),
        "above_later": reading(cases=case(2, 2, 2000), reach="above"),
        "alike": reading(cases=case(1, 2, 300), **within),
        "alike_later": reading(cases=case(2, 2, 2000), reach="alike", **within),
    }
    places = [[[name, ""], [f"{name}_later", ""]] for name in ("above", "alike")]
    figure, n = draw(ledger(claim(readings=readings, changing=places, with_size="grows")), LOOK)
    above, alike = figure.axes
    regions = [
        axis.patches[0].get_extents().transformed(axis.transData.inverted()).y1
        for axis in (above, alike)
    ]
    assert regions == pytest.approx([above.get_ylim()[1], 1])
    assert n == "1 statement, 95% intervals."


def test_without_changes_the_figure_says_so():
    figure, n = draw(ledger(claim()), LOOK)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no effect changes with size"]
    assert n == "Here no effect changes with size."
