"""Every figure can be read: panels have titles, texts are in the open, an arm has one colour."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from drawings import FIGURES, draw
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.text import Text
from planted_tables import CONFIGURATION, Case, tables_of

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.studies.arms import arm_look


@pytest.fixture(autouse=True)
def _fresh():
    with mpl.rc_context():
        yield
    plt.close("all")


def drawn(name: str) -> Figure:
    entry = FIGURES[name]
    return draw(name, tables_of(entry, Case()), **entry.values(CONFIGURATION)).figure


def written(figure: Figure) -> list[Text]:
    """The texts that are drawn: of an axis not the ticks beyond its ends."""
    texts: list[Text] = []
    with pytest.MonkeyPatch.context() as patch:
        draw_text = Text.draw

        def recorded(text: Text, *args, **kwargs) -> None:
            texts.extend([text] if text.get_visible() and text.get_text().strip() else [])
            draw_text(text, *args, **kwargs)

        patch.setattr(Text, "draw", recorded)
        figure.canvas.draw()
    return list(dict.fromkeys(texts))


def outline(text: Text, dpi: float) -> Path:
    """The corners of a text in pixels, a pixel inside of its box, turned as it is."""
    box, angle = text.get_window_extent(), np.deg2rad(text.get_rotation())
    across, up = abs(np.cos(angle)), abs(np.sin(angle))
    lines = text.get_text().count("\n") + 1
    height = lines * float(text.get_fontsize()) * dpi / 72
    if min(across, up) < 1e-9:  # lies or stands
        turn, width, height = np.eye(2), box.width, box.height
    else:  # the box around a turned rectangle is wider than it
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        width = (box.width - height * up) / across
    half = np.array([width, height]) / 2 - 1
    corners = [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]] * half
    return Path(corners @ turn.T + [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])


def hidden_texts(figure: Figure) -> list[str]:
    """Texts that end outside of the figure, lie on each other, or under a line of their panel."""
    outlines = {text: outline(text, figure.dpi) for text in written(figure)}
    faults = []
    for text, path in outlines.items():
        ends = path.get_extents()
        if not all(figure.bbox.contains(*corner) for corner in (ends.min, ends.max)):
            faults.append(f"{text.get_text()!r} leaves the figure")
        axis = text.axes
        is_inside = axis is not None and axis.bbox.contains(*np.mean([ends.min, ends.max], axis=0))
        if axis and is_inside and any(crosses(line, path) for line in axis.lines):
            faults.append(f"{text.get_text()!r} is under a line")
    for (one, a), (other, b) in itertools.combinations(outlines.items(), 2):
        if a.intersects_path(b, filled=True):
            faults.append(f"{one.get_text()!r} lies on {other.get_text()!r}")
    return faults


def crosses(line: Line2D, outline: Path) -> bool:
    """Whether a line, or one of its points, is drawn where a text is."""
    ends = np.asarray(line.get_transform().transform_path(line.get_path()).vertices)
    known = ends[np.isfinite(ends).all(axis=1)]
    if line.get_linestyle() == "None":
        return len(known) > 0 and bool(outline.contains_points(known).any())
    return len(known) > 1 and Path(known).intersects_path(outline, filled=False)


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_has_a_title_and_every_text_can_be_read(name):
    figure = drawn(name)
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    assert all(axis.get_title() or axis.get_title(loc="left") for axis in panels)
    assert hidden_texts(figure) == []
    ticks = [
        label
        for axis in figure.axes
        for label in (*axis.get_xticklabels(), *axis.get_yticklabels())
    ]
    assert {label.get_rotation() for label in ticks} == {0.0}


def test_texts_that_cannot_be_read_are_noticed():
    style.use(8)
    figure, axes = style.canvas(100, 60, 1, 1)
    axis = axes[0, 0]
    axis.plot([0, 1], [0, 1])
    axis.text(0.5, 0.5, "on the line")
    axis.text(0.2, 0.8, "one")
    axis.text(0.21, 0.8, "another")
    axis.text(0.9, 0.2, "beyond the edge").set_in_layout(False)
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axis.set_xticks([0.4, 0.5, 0.6], ["long labels", "side by side", "turned"], **turned)
    assert sorted(hidden_texts(figure)) == [
        "'beyond the edge' leaves the figure",
        "'on the line' is under a line",
        "'one' lies on 'another'",
    ]


@pytest.mark.parametrize("name", FIGURES)
def test_an_arm_has_one_colour_in_all_figures(name):
    colors = {arm.label: arm_look(key)["color"] for key, arm in ARMS.items()}
    for axis in drawn(name).axes:
        for line in axis.lines:
            label = str(line.get_label())
            assert line.get_color() == colors.get(label, line.get_color()), label
