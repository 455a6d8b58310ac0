"""Figures as SVG in few bytes: text is text, and marks of one look are the vertices of one path."""

import re
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element, SubElement, fromstring, register_namespace, tostring

SPACE = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
TAGS = ("g", "use", "path", "style", "defs", "marker")
GROUP, USE, PATH, STYLE, DEFS, MARKER = (f"{{{SPACE}}}{tag}" for tag in TAGS)
# DejaVu Sans has the widths of Verdana, which Windows and macOS have
FONTS = "text{font-family:DejaVu Sans,Verdana,sans-serif}"
register_namespace("", SPACE)

Mark = tuple[str, str]  # the reference to a shape, and its style


def compact(svg: bytes) -> bytes:
    """The same drawing in fewer bytes, with coordinates of two decimals.

    Args:
        svg: A figure that matplotlib wrote, with text as text.
    """
    root = fromstring(svg)  # noqa: S314 - matplotlib wrote it
    ids = [element.get("id", "") for element in root.iter()]
    names = {name: f"a{i}" for i, name in enumerate(ids) if f"#{name}".encode() in svg}
    for element in root.iter():
        element.attrib = dict(_attributes(element, names))
        element.text = element.text if (element.text or "").strip() else None
        element.tail = "\n"
    marks: dict[Mark, str] = {}
    _flatten(root, marks)
    (style,) = root.iter(STYLE)
    style.text = f"{style.text}{FONTS}"
    for (shape, look), name in marks.items():
        size = {"markerUnits": "userSpaceOnUse", "overflow": "visible"}
        mark = SubElement(SubElement(root, DEFS), MARKER, {"id": name, **size})
        SubElement(mark, USE, {"href": shape, "style": look})
    return tostring(root, encoding="utf-8")


def _attributes(element: Element, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The attributes, with short names; without defaults, and names that nothing refers to."""
    for key, value in element.items():
        if key == "id":
            if value in names:
                yield key, names[value]
        elif key == LINK:
            yield "href", f"#{names[value[1:]]}" if value[1:] in names else value
        elif key == "clip-path":
            yield key, f"url(#{names[value[5:-1]]})"
        elif key == "style":
            parts = [part for part in value.split("; ") if not part.startswith("font-family")]
            yield key, ";".join(parts).replace(": ", ":")
        elif not value.startswith("rotate(-0 "):
            text = re.sub(r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 2):g}", value)
            yield key, re.sub(r" ?([MLQCz]) ?", r"\1", text) if key == "d" else text


def _flatten(element: Element, marks: dict[Mark, str]) -> list[Element]:
    """The element, or its children if it is a group that adds nothing to them."""
    element[:] = [part for child in element for part in _flatten(child, marks)]
    if element.tag != GROUP:
        return [element]
    looks = {(mark.get("href", ""), mark.get("style", "")) for mark in element}
    if len(looks) == 1 < len(element) and all(mark.tag == USE for mark in element):
        name = marks.setdefault(looks.pop(), f"m{len(marks)}")
        places = " ".join(f"{mark.get('x')} {mark.get('y')}" for mark in element)
        element[:] = [Element(PATH, d=f"M{places}", style=f"fill:none;marker:url(#{name})")]
    return [element] if element.attrib else list(element)
