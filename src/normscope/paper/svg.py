"""SVG as matplotlib writes it: made small, its marks given titles, made a part of a page.

No matplotlib: pages read this module too.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from normscope.errors import Explained

NAMESPACE = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
DRAWN = frozenset("svg g path use defs clipPath rect image title".split())
LONG = re.compile(r"-?\d+\.\d{3,}")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
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


class Inlined(NamedTuple):
    """A figure within a page: its elements, and its size in CSS pixels."""

    elements: str
    width: int
    height: int


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


def inlined(name: str, svg: bytes, prefix: str) -> Inlined:
    """A figure's elements as a page holds them; its ids begin with a prefix.

    Raises:
        Explained: it is no SVG with a size, or has what no drawing has.
    """
    try:
        root = ET.fromstring(svg)  # noqa: S314 - its elements are checked below
        width, height = (round(float(n) * 4 / 3) for n in root.get("viewBox", "").split()[2:])
    except (ET.ParseError, ValueError):
        raise Explained(
            f"{name}.svg is no SVG with a viewBox; delete it and make it again"
        ) from None
    for element in root.iter():
        _check(name, element)
        for key, value in element.items():
            if key == "id" or (key == "href" and value.startswith("#")):
                element.set(key, value[: key == "href"] + prefix + value[key == "href" :])
            elif "url(#" in value:
                element.set(key, REFERENCE.sub(rf"url(#{prefix}\1)", value))
        element.text = (element.text or "").strip() or None
        element.tail = None
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    return Inlined(ET.tostring(root, encoding="unicode"), width, height)


def _check(name: str, element: ET.Element) -> None:
    """Whether an element is one that drawings are made of, and loads and runs nothing."""
    tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    handlers = [key for key in element.attrib if key.lower().startswith("on")]
    loads = not element.get("href", "#").startswith(("#", "data:image/png;"))
    if tag not in DRAWN or handlers or loads or XLINK in element.attrib:
        raise Explained(f"{name}.svg has a <{tag}> that no drawing has; delete it, make it again")


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
