"""SVG as matplotlib writes it: made small, its marks given titles, made a part of a page.

No matplotlib: pages read this module too.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import NamedTuple

NAMESPACE = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
LONG = re.compile(r"-?\d+\.\d{3,}")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
IDS = re.compile(r'( id="|href="#|url\(#)')
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
NEAR = 0.02  # pt, of a mark and its place: both are rounded
JOINS = "stroke-linejoin: round; stroke-linecap: butt"  # what matplotlib's style sheet says

ET.register_namespace("", NAMESPACE)


class Mark(NamedTuple):
    """What points of a line, or a bar, say when they are pointed at.

    Args:
        places: x and y in pt from the upper left corner, one a text; none of a bar.
        words: a text each.
    """

    places: Sequence[tuple[float, float]]
    words: Sequence[str]


def finished(drawn: bytes, marks: Mapping[str, Mark]) -> bytes:
    """A drawing without what nobody refers to, coordinates to 0.01 pt, and titles of its marks.

    Args:
        drawn: as matplotlib writes it.
        marks: by the ids of their groups.
    """
    builder = ET.TreeBuilder(insert_comments=True)  # texts are outlines, and comments say them
    root = ET.fromstring(drawn, ET.XMLParser(target=builder))  # noqa: S314 - our own drawing
    for about in root.findall(_named("metadata")):
        root.remove(about)
    for parent in list(root.iter(_named("defs"))):
        for sheet in parent.findall(_named("style")):
            parent.remove(sheet)
    root.set("style", JOINS)
    for group in root.iter(_named("g")):
        if mark := marks.get(group.get("id", "")):
            _tell(group, mark)
        _share_style(group)
    _shorten(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def inlined(svg: str, prefix: str) -> tuple[str, int, int]:
    """A figure as an element of a page: its text, and its width and height in CSS pixels.

    Args:
        svg: the file.
        prefix: what its ids begin with in the page.
    """
    root = svg[svg.index("<svg") :].strip()
    tag, rest = root.split(">", 1)
    width, height = (round(float(n) * 4 / 3) for n in VIEW.findall(tag)[0])
    elements = re.sub(r' (?:width|height)="[^"]*"', "", tag) + ">" + re.sub(r"<!--.*?-->", "", rest)
    return IDS.sub(rf"\1{prefix}", elements), width, height


def _named(tag: str) -> str:
    return f"{{{NAMESPACE}}}{tag}"


def _tell(group: ET.Element, mark: Mark) -> None:
    """Titles of a group's points, or of the group itself."""
    if not mark.places:
        _title(group, mark.words[0])
        return
    for use in group.iter(_named("use")):
        at = float(use.get("x", "nan")), float(use.get("y", "nan"))
        for (x, y), words in zip(mark.places, mark.words, strict=True):
            if abs(x - at[0]) < NEAR and abs(y - at[1]) < NEAR:
                _title(use, words)
                break


def _title(element: ET.Element, words: str) -> None:
    title = ET.Element(_named("title"))
    title.text = words
    element.insert(0, title)


def _share_style(group: ET.Element) -> None:
    """One style for marks that all have it."""
    styles = {use.get("style") for use in group}
    if len(styles) == 1 and all(use.tag == _named("use") for use in group):
        (style,) = styles
        if style is not None and "style" not in group.attrib:
            group.set("style", style)
            for use in group:
                del use.attrib["style"]


def _shorten(root: ET.Element) -> None:
    """Short numbers and references, and only the ids that something refers to."""
    wanted: set[str] = set()
    for element in root.iter():
        if XLINK in element.attrib:
            element.set("href", element.attrib.pop(XLINK))
        if element.get("href", "").startswith("#"):
            wanted.add(element.get("href", "")[1:])
        wanted |= {name for value in element.attrib.values() for name in REFERENCE.findall(value)}
        for key in ("d", "x", "y"):
            if key in element.attrib:
                element.set(key, LONG.sub(_rounded, element.attrib[key]))
        place, rest, scale = element.get("transform", "").partition(") scale(")
        if rest:
            element.set("transform", LONG.sub(_rounded, place) + rest + scale)
        element.tail = "\n" if element.tail else None
        if not (element.text or "").strip():
            element.text = None
    for element in root.iter():
        if "id" in element.attrib and element.attrib["id"] not in wanted:
            del element.attrib["id"]


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
