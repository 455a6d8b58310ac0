"""The page: the summary as one HTML file that loads nothing.

No name and no text is trusted: Jinja2 escapes every value, Markdown may hold no HTML, and the
content security policy lets no script run.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from normscope.formats import DASH
from normscope.pages.blocks import PARSER, Block, blocks
from normscope.pages.frame import Frame
from normscope.pages.table import PageTable
from normscope.pages.template import environment, fill

IDS = re.compile(r'( id="|href="#|url\(#)')  # of a drawing, and references to them
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
LONG, TEXT = 32, 200  # characters, beyond which cells break into lines, and need room
# nothing is loaded, and no script runs
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)


class Plate(NamedTuple):
    """A figure of the page; the ids within its drawing are unique in the page."""

    number: int
    name: str
    title: str
    caption: str
    drawing: Markup
    width: int
    height: int


def page(
    folder: Path, text: str, frame: Frame, svgs: Mapping[str, bytes], manifest: Mapping[str, Any]
) -> str:
    """The whole page.

    Args:
        folder: of the template and the style sheet.
        text: the summary with marks for tables and figures.
        frame: the frame, which has these.
        svgs: the figures by name.
        manifest: the contents of manifest.json.

    Raises:
        Explained: the text has a kind of block that pages do not support.
    """
    parts = blocks(text)
    begin = [part for part in parts if part.kind == "heading" and part.level > 1]
    first = parts.index(begin[0]) if begin else len(parts)
    titles = [part.words for part in parts if part.kind == "heading" and part.level == 1]
    words = {
        "title": titles[0] if titles else "Summary",
        "opening": parts[:first],
        "rest": parts[first:],
        "contents": contents(begin),
        "frame": frame,
        "demonstration": frame.words.get("demonstration", False),
        "plates": plates(frame, svgs),
        "facts": facts(manifest),
        "manifest": manifest,
        "kinds": kinds,
        "rendered": rendered,
        "style": Markup((folder / "page.css").read_text()),
        "policy": POLICY,
    }
    return fill(environment(folder, autoescape=True), "page.html.j2", words)


def contents(headings: Sequence[Block]) -> list[list[Block]]:
    """The headings below the title, each of level 2 with those below it; they receive ids."""
    groups: list[list[Block]] = []
    seen: Counter[str] = Counter()
    for heading in headings:
        slug = re.sub(r"[^a-z0-9_]+", "-", heading.words.lower()).strip("-")
        seen[slug] += 1
        heading.tokens[0].attrSet("id", f"on-{slug}" + f"-{seen[slug]}" * (seen[slug] > 1))
        if heading.level > 2 and groups:
            groups[-1].append(heading)
        else:
            groups.append([heading])
    return groups


def plates(frame: Frame, svgs: Mapping[str, bytes]) -> list[Plate]:
    """The figures in the frame's order."""
    shown = []
    for number, (name, (title, caption)) in enumerate(frame.figures.items(), 1):
        drawing, width, height = inlined(svgs[name].decode(), f"{name}-")
        shown.append(Plate(number, name, title, caption, Markup(drawing), width, height))
    return shown


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


def kinds(table: PageTable) -> list[str]:
    """The kind of each column: ``number``, or ``short``, ``long``, ``text`` by its longest cell."""

    def kind(column: int, longest: int) -> str:
        if table.is_numeric(column):
            return "number"
        return "text" if longest > TEXT else "long" if longest > LONG else "short"

    columns = zip(*table.texts(), strict=True)
    return [kind(i, max(map(len, cells))) for i, cells in enumerate(columns)]


def facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Facts about the origin of the results, from the contents of manifest.json."""
    studies, dataset = manifest["studies"], manifest["dataset"]
    trained = {study: len(parts["models"]) for study, parts in studies.items() if parts["models"]}
    measured = [
        name
        for parts in studies.values()
        for name, model in parts["probes"].items()
        if model.get("missing") is None
    ]
    counted = ", ".join(f"{study} {n:,}" for study, n in trained.items())
    texts = {"Dataset": dataset} | {
        f"Text {name}": text for name, text in manifest.get("texts", {}).items()
    }
    return {
        "Configuration, SHA-256": manifest.get("config_sha256", DASH),  # several runs have none
        "Python": manifest["python"],
        "Device": manifest["device"],
        "Trainings": f"{sum(trained.values()):,} ({counted or 'none'})",
        "Models measured as they are": ", ".join(measured) or "none",
        **{title: text.get("origin", DASH) for title, text in texts.items()},
        **{
            f"{title}, {name}, SHA-256": digest
            for title, text in texts.items()
            for name, digest in text.get("sha256", {}).items()
        },
    }


def rendered(block: Block) -> Markup:
    """A block by the Markdown library, which escapes all text."""
    return Markup(PARSER.renderer.render(block.tokens, PARSER.options, {}))
