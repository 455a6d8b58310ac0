"""SVG as matplotlib writes it: its marks given titles, and made part of a page.

No matplotlib: pages read this module too.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
NEAR = 0.02  # pt, between a mark and its place: both are rounded
IDS = re.compile(r'( id="|href="#|url\(#)')
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')

ET.register_namespace("", SVG)
ET.register_namespace("xlink", XLINK)


class Mark(NamedTuple):
    """The tooltips of a line's points, or of a bar.

    Args:
        places: x and y in pt from the upper left corner, one per text; none for a bar.
        words: the texts.
    """

    places: Sequence[tuple[float, float]]
    words: Sequence[str]


def titled(drawn: bytes, marks: Mapping[str, Mark]) -> bytes:
    """A drawing with titles, which browsers show as tooltips.

    Args:
        drawn: as matplotlib writes it.
        marks: by the ids of their groups.
    """
    root = ET.fromstring(drawn)  # noqa: S314 - a drawing of this process
    for group in root.iter(f"{{{SVG}}}g"):
        mark = marks.get(group.get("id", ""))
        if mark is None:
            continue
        if not mark.places:
            _add_title(group, mark.words[0])
        for use in group.iter(f"{{{SVG}}}use"):
            at = float(use.get("x", "nan")), float(use.get("y", "nan"))
            for (x, y), words in zip(mark.places, mark.words, strict=True):
                if abs(x - at[0]) < NEAR and abs(y - at[1]) < NEAR:
                    _add_title(use, words)
                    break
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _add_title(element: ET.Element, words: str) -> None:
    title = ET.Element(f"{{{SVG}}}title")
    title.text = words
    element.insert(0, title)


def inlined(svg: str, prefix: str) -> tuple[str, int, int]:
    """A figure as an element of a page: its text, and its width and height in CSS pixels.

    Args:
        svg: the file.
        prefix: what its ids begin with in the page.
    """
    tag, rest = svg[svg.index("<svg") :].strip().split(">", 1)
    width, height = (round(float(n) * 4 / 3) for n in VIEW.findall(tag)[0])
    tag = re.sub(r' (?:width|height)="[^"]*"', "", tag)
    return IDS.sub(rf"\1{prefix}", f"{tag}>{rest}"), width, height
