"""The page: the summary as one file of HTML that loads nothing.

Names and texts come from models, corpora and documents, so that none of them is trusted: Jinja2
escapes every value, Markdown may hold no HTML, and a policy in the page lets no other script run.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Template
from markupsafe import Markup

from normscope.errors import Explained
from normscope.formats import DASH
from normscope.paper.blocks import PARSER, Block, blocks
from normscope.paper.frame import CLAIMS, LEDGER, TALLY, TRACES, Frame
from normscope.paper.statements import VERDICTS, counts
from normscope.paper.svg import inlined
from normscope.paper.table import PageTable
from normscope.paper.tally import SURE
from normscope.paper.template import environment, fill, open_template

LONG, TEXT = 32, 200  # characters; longer cells break into lines, and need room
PARTS = set("config_sha256 dataset device packages python sources_sha256 studies".split())
TAKEN = "top main contents toc scheme ledger choose words shown provenance packages".split()


class Look(NamedTuple):
    """The files of this project that make the page: a template of Jinja2, CSS and JavaScript."""

    page: Template
    style: str
    script: str


def open_look(folder: Path) -> Look:
    """The page's files in a folder; the template escapes every value."""
    page = open_template(environment(folder, autoescape=True), "page.html.j2")
    return Look(page, (folder / "page.css").read_text(), (folder / "page.js").read_text())


class Grid(NamedTuple):
    """Id, caption and columns of a table."""

    id: str
    label: str
    columns: Sequence[str]
    kinds: Sequence[str]


class Plate(NamedTuple):
    """A figure, whose ``drawing`` is a part of the page; ``note`` is the id of its caption."""

    id: str
    note: str
    number: int
    title: str
    caption: str
    drawing: Markup
    width: int
    height: int


class Heading(NamedTuple):
    """An entry of the contents, with the entries below it."""

    id: str
    text: str
    below: "list[Heading]"


class Places(NamedTuple):
    """Ids of a statement's rows: in the ledger, among the numbers, and in the traces."""

    row: str
    numbers: str
    trace: str


@dataclass
class Ids:
    """Unique ids of the page."""

    given: set[str] = field(default_factory=lambda: set(TAKEN))

    def new(self, words: str) -> str:
        """An id made of letters, digits and dashes of these words."""
        stem = re.sub(r"[^a-z0-9_]+", "-", words.lower()).strip("-") or "part"
        name, tries = stem, 1
        while name in self.given:
            tries += 1
            name = f"{stem}-{tries}"
        self.given.add(name)
        return name


def page(
    look: Look, text: str, frame: Frame, svgs: Mapping[str, bytes], manifest: Mapping[str, Any]
) -> str:
    """The whole page.

    Args:
        text: the summary's, with marks where tables and figures stand.
        svgs: every figure by its name.
        manifest: what manifest.json holds.

    Raises:
        Explained: a figure, a table or a part of the manifest is missing.
    """
    ids = Ids()
    figures = plates(frame, svgs, ids)
    shown = Text(frame, look.page.make_module(), figures, ids)
    body = shown.html(text)
    words = {
        "title": shown.title,
        "opening": body.opening,
        "demonstration": frame.words.get("demonstration", False),
        "body": body.rest,
        "contents": shown.contents,
        "figures": figures,
        "provenance": provenance(manifest),
        "style": _inside("style", look.style),
        "script": _inside("script", look.script),
        "policy": policy(look.script),
    }
    return fill(look.page, words)


def policy(script: str) -> str:
    """The content security policy: nothing is loaded, and only this script runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def plates(frame: Frame, svgs: Mapping[str, bytes], ids: Ids) -> list[Plate]:
    """The figures in the frame's order.

    Raises:
        Explained: one is missing, or is not an SVG with a size.
    """
    if missing := [name for name in frame.figures if name not in svgs]:
        raise Explained(f"figures without an svg: {', '.join(missing)}; make them: rule figures")
    shown = []
    for number, (name, (title, caption)) in enumerate(frame.figures.items(), start=1):
        elements, width, height = inlined(name, svgs[name], f"drawing-{number}-")
        place, note = ids.new(f"figure-{name}"), ids.new(f"caption-{number}")
        drawing = Markup(elements)
        shown.append(Plate(place, note, number, title, caption, drawing, width, height))
    return shown


def statement_places(traces: PageTable, ids: Ids) -> list[Places]:
    """Ids of every statement, in the ledger's order."""
    keys = traces.select("key").cells(0)
    kinds_of_place = ("statement", "numbers", "from")
    return [Places(*(ids.new(f"{kind}-{key}") for kind in kinds_of_place)) for key in keys]


def tiles(frame: Frame, places: Sequence[Places]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The statements by document and verdict, the most certain first.

    Each is a tile of the frame, with ``place``, the id of its row in the ledger.
    """
    documents = dict.fromkeys(tile["document"] for tile in frame.tiles)
    shown = {name: {verdict: [] for verdict in VERDICTS} for name in documents}
    pairs = zip(frame.tiles, places, strict=True)
    for tile, place in sorted(pairs, key=lambda pair: (pair[0]["p"], pair[1].row)):
        shown[tile["document"]][tile["verdict"]].append({**tile, "place": place.row})
    return shown


def ledger(frame: Frame, anchors: Mapping[str, str], places: Sequence[Places]) -> dict[str, Any]:
    """The table of statements, with counts by verdict and by document.

    Args:
        frame: what is printed.
        anchors: ids of the figures by their names.
        places: ids of the statements.
    """
    table = frame.tables[LEDGER]
    figures = table.select("figure").cells(0)
    rows = [
        {**tile, "places": place, "figure": anchors.get(str(figure)), "cells": cells}
        for tile, figure, cells, place in zip(
            frame.tiles, figures, table.texts(), places, strict=True
        )
    ]
    return {
        "columns": table.headings,
        "kinds": kinds(table),
        "rows": rows,
        "verdicts": counts(frame.tiles),
        "documents": Counter(row["document"] for row in rows),
    }


def kinds(table: PageTable) -> list[str]:
    """The kind of each column: ``number``, or ``short``, ``long``, ``text`` by its longest cell."""

    def kind(column: int, longest: int) -> str:
        if table.is_numeric(column):
            return "number"
        return "text" if longest > TEXT else "long" if longest > LONG else "short"

    columns = zip(*table.texts(), strict=True)
    return [kind(i, max(map(len, cells))) for i, cells in enumerate(columns)]


def provenance(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about the origin of the results.

    Raises:
        Explained: the manifest lacks a part.
    """
    if lacking := PARTS - set(manifest):
        raise Explained(f"the manifest has no {', '.join(sorted(lacking))}; make it again")
    studies = manifest["studies"]
    trained = {study: len(parts["models"]) for study, parts in studies.items() if parts["models"]}
    measured = [
        name
        for parts in studies.values()
        for name, model in parts["probes"].items()
        if model.get("missing") is None
    ]
    counts = ", ".join(f"{study} {n:,}" for study, n in trained.items())
    facts = {
        "Configuration, SHA-256": manifest["config_sha256"],
        "Python": manifest["python"],
        "Device": manifest["device"],
        "Trainings": f"{sum(trained.values()):,} ({counts or 'none'})",
        "Models measured as they are": ", ".join(measured) or "none",
        "Dataset": manifest["dataset"].get("origin", DASH),
    }
    hashes = manifest["dataset"].get("sha256", {})
    facts |= {f"Dataset, {name}, SHA-256": digest for name, digest in hashes.items()}
    return {
        "facts": facts,
        "packages": manifest["packages"],
        "sources": manifest["sources_sha256"],
    }


class Body(NamedTuple):
    """The text before the first part, and the parts."""

    opening: Markup
    rest: Markup


class Text:
    """The summary's text as HTML.

    Args:
        frame: what is printed.
        macros: of the page's template: ``table``, ``figure`` and ``ledger``.
        figures: in their order.
        ids: the ids in use.
    """

    def __init__(self, frame: Frame, macros: Any, figures: Sequence[Plate], ids: Ids) -> None:
        self.frame, self.macros, self.figures, self.ids = frame, macros, figures, ids
        self.title = "Summary"
        self.contents: list[Heading] = []
        self.anchors = dict(zip(frame.figures, (f.id for f in figures), strict=True))
        self.places = statement_places(frame.tables[TRACES], ids)

    def html(self, text: str) -> Body:
        """Headings, paragraphs, tables and figures in order.

        Raises:
            Explained: the text has a kind of block that pages do not support.
        """
        opening: list[Markup] = []
        rest: list[Markup] = []
        for block in blocks(text):
            html = self.block(block)
            (rest if self.contents else opening).append(html)
        return Body(Markup("").join(opening), Markup("").join(rest))

    def block(self, block: Block) -> Markup:
        """One part of the text."""
        match block.kind:
            case "heading":
                return self.heading(block)
            case "table":
                return self.table(block.table)
            case "figures":
                return Markup("").join(self.macros.figure(plate) for plate in self.figures)
        return rendered(block)

    def heading(self, block: Block) -> Markup:
        """A heading, and its entry in the contents; a heading of level 1 is the title."""
        if block.level == 1:
            self.title = block.words
            return Markup("")
        line = Heading(self.ids.new(block.words), block.words, [])
        is_below = block.level > 2 and self.contents
        (self.contents[-1].below if is_below else self.contents).append(line)
        block.tokens[0].attrSet("id", line.id)
        return rendered(block)

    def table(self, name: str) -> Markup:
        """A table of the frame."""
        table = self.frame.tables[name]
        if name == LEDGER:
            return self.macros.ledger(ledger(self.frame, self.anchors, self.places))
        if name == TALLY:
            return self.macros.tally(table.title, tiles(self.frame, self.places), SURE)
        if not table.rows:
            return Markup("<p>none</p>")
        grid = Grid(self.ids.new(f"table-{name}"), table.title, table.headings, kinds(table))
        if name == TRACES:
            return self.macros.traces(
                grid, zip(table.texts(), self.places, strict=True), self.anchors
            )
        study, _, kind = name.rpartition(".")
        return self.macros.table(grid, table.texts(), self.numbers(study) if kind == CLAIMS else [])

    def numbers(self, study: str) -> list[str]:
        """Ids of the rows in a study's table of statements."""
        studies = self.frame.tables[TRACES].select("numbers").cells(0)
        return [p.numbers for name, p in zip(studies, self.places, strict=True) if name == study]


def rendered(block: Block) -> Markup:
    """A block by the Markdown library, which escapes all text."""
    return Markup(PARSER.renderer.render(block.tokens, PARSER.options, {}))


def _inside(tag: str, text: str) -> Markup:
    """A file of this project, inserted verbatim between two tags."""
    if f"</{tag}" in text.lower():
        raise Explained(f"a {tag} of the page must not hold </{tag}")
    return Markup(text)
