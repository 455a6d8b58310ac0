"""The page: the summary as one file of HTML that loads nothing.

Names and texts come from models, corpora and documents, so that none of them is trusted: Jinja2
escapes every value, Markdown may hold no HTML, and a policy in the page lets no other script run.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from normscope.errors import Explained
from normscope.paper.frame import Frame

VERDICTS = ("holds", "fails", "undecided")
NONE = "–"
LONG, TEXT = 32, 200  # characters; longer cells break into lines, and need room
PLACE = re.compile(r"\[\[(?:table (\w+)|(figures))\]\]")
# 0.5, < 0.000001, −1,234.5, 3.15e-09, 3 seeds
NUMBER = re.compile(r"[<≥≤]? ?[−+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?%?( \w+)?")
SIZE = re.compile(rb'<svg[^>]*?\sviewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', re.DOTALL)
PARTS = set("config_sha256 dataset device packages pretrained python runs sources_sha256".split())
TAKEN = "top main contents toc scheme ledger choose words shown provenance packages".split()


class Look(NamedTuple):
    """The files of this project that make the page: a template of Jinja2, CSS and JavaScript."""

    page: str
    style: str
    script: str


class Grid(NamedTuple):
    """A table of cells that are HTML already."""

    id: str
    label: str
    head: Sequence[Markup]
    kinds: Sequence[str]
    rows: Sequence[Sequence[Markup]]


class Plate(NamedTuple):
    """A figure; ``note`` is the id of its caption."""

    id: str
    note: str
    number: int
    title: str
    caption: str
    source: str
    width: int
    height: int


class Heading(NamedTuple):
    """A line of the contents, with those below it."""

    id: str
    text: str
    below: "list[Heading]"


class Statement(NamedTuple):
    """A row of the ledger; its cells have names and kinds in its table."""

    verdict: str
    document: str
    figure: str | None
    cells: Sequence[str]


class Ledger(NamedTuple):
    """The table of claims, and how many of them have each verdict and each document."""

    columns: Sequence[str]
    kinds: Sequence[str]
    rows: Sequence[Statement]
    verdicts: Mapping[str, int]
    documents: Mapping[str, int]


@dataclass
class Ids:
    """Names of places in the page, each given once."""

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
    template: str, frame: Frame, svgs: Mapping[str, bytes], manifest: Mapping[str, Any], look: Look
) -> str:
    """The whole page.

    Args:
        template: of the summary, in Markdown.
        svgs: every figure by its name.
        manifest: what manifest.json holds.

    Raises:
        Explained: a figure, a table or a part of the manifest is not there.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    whole = environment.from_string(look.page)
    ids = Ids()
    figures = plates(frame, svgs, ids)
    anchors = {name: plate.id for name, plate in zip(frame.captions, figures, strict=True)}
    macros = whole.make_module()
    text = Text(frame, ids, macros, figures, ledger(frame.tables, anchors))
    body = text.html(template)
    return whole.render(
        title=text.title,
        opening=body.opening,
        body=body.rest,
        contents=text.contents,
        figures=figures,
        provenance=provenance(manifest),
        style=_inside("style", look.style),
        script=_inside("script", look.script),
        policy=policy(look.script),
    )


def policy(script: str) -> str:
    """Nothing is loaded, and no script runs but this one."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def plates(frame: Frame, svgs: Mapping[str, bytes], ids: Ids) -> list[Plate]:
    """The figures in the order of their captions.

    Raises:
        Explained: one is missing, or is no SVG with a size.
    """
    missing = [name for name in frame.captions if name not in svgs]
    if missing:
        raise Explained(f"figures without an svg: {', '.join(missing)}; make them: rule figures")
    found = []
    for number, (name, (title, caption)) in enumerate(frame.captions.items(), start=1):
        size = SIZE.search(svgs[name])
        if size is None:
            raise Explained(f"{name}.svg is no SVG with a viewBox; delete it and make it again")
        source = "data:image/svg+xml;base64," + base64.b64encode(svgs[name]).decode()
        width, height = (round(float(points) * 4 / 3) for points in size.groups())
        place, note = ids.new(f"figure-{name}"), ids.new(f"caption-{number}")
        found.append(Plate(place, note, number, title, caption, source, width, height))
    return found


def ledger(tables: Mapping[str, pd.DataFrame], anchors: Mapping[str, str]) -> Ledger | None:
    """The claims as rows; none without the table.

    Raises:
        Explained: the table lacks a column that rows are chosen by.
    """
    if "ledger" not in tables:
        return None
    table = tables["ledger"].astype(str)
    lacking = {"source", "corrected", "figure"} - set(table.columns)
    if lacking:
        raise Explained(f"the table ledger has no column {', '.join(sorted(lacking))}")
    rows = []
    for cells in table.to_numpy().tolist():
        row = dict(zip(table.columns, cells, strict=True))
        document = row["source"].split(", ")[0]
        rows.append(Statement(row["corrected"], document, anchors.get(row["figure"]), cells))
    verdicts = Counter(row.verdict for row in rows)
    order = [*VERDICTS, *sorted(set(verdicts) - set(VERDICTS))]
    return Ledger(
        list(table.columns),
        kinds(table),
        rows,
        {verdict: verdicts[verdict] for verdict in order},
        Counter(row.document for row in rows),
    )


def kinds(table: pd.DataFrame) -> list[str]:
    """Of every column: ``number`` if it holds nothing else; or what its longest cell is."""
    found = []
    for column in range(table.shape[1]):
        cells = [str(cell) for cell in table.iloc[:, column] if str(cell) != NONE]
        if cells and all(NUMBER.fullmatch(cell) for cell in cells):
            found.append("number")
        else:
            longest = max(map(len, cells), default=0)
            found.append("text" if longest > TEXT else "long" if longest > LONG else "short")
    return found


def provenance(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader is told of the origin of the results.

    Raises:
        Explained: the manifest lacks a part.
    """
    lacking = PARTS - set(manifest)
    if lacking:
        raise Explained(f"the manifest has no {', '.join(sorted(lacking))}; make it again")
    measured = [n for n, model in manifest["pretrained"].items() if model.get("missing") is None]
    facts = {
        "Configuration, SHA-256": manifest["config_sha256"],
        "Python": manifest["python"],
        "Device": manifest["device"],
        "Runs": f"{len(manifest['runs']):,}",
        "Pretrained models measured": ", ".join(measured) or "none",
        "Dataset": manifest["dataset"].get("origin", NONE),
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
    """The summary's Markdown as HTML.

    Args:
        macros: of the page's template: ``table``, ``figure`` and ``ledger``.
        claims: the ledger, None where there is none.
    """

    def __init__(
        self, frame: Frame, ids: Ids, macros: Any, figures: list[Plate], claims: Ledger | None
    ) -> None:
        self.frame, self.ids, self.macros = frame, ids, macros
        self.figures, self.claims = figures, claims
        # an image in a text would be loaded from elsewhere
        self.markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        self.title = "Summary"
        self.contents: list[Heading] = []
        self.placed: set[str] = set()
        self.labels: Counter[str] = Counter()
        self.here = self.title

    def html(self, template: str) -> Body:
        """Headings, paragraphs, tables and figures in order.

        Raises:
            Explained: it refers to a table that is not there, or to something twice.
        """
        opening: list[Markup] = []
        rest: list[Markup] = []
        for block in blocks(self.markdown.parse(template.format(**self.frame.texts))):
            html = self.block(block)
            (rest if self.contents else opening).append(html)
        return Body(Markup("").join(opening), Markup("").join(rest))

    def block(self, block: list[Token]) -> Markup:
        """One part of the text."""
        match block[0].type:
            case "heading_open":
                return self.heading(block)
            case "table_open":
                head, *rows = self.cells(block)
                words = pd.DataFrame([[str(cell) for cell in row] for row in rows])
                return self.grid(self.here, head, kinds(words), rows)
        found = [(t, m) for t in block if t.type == "inline" for m in PLACE.finditer(t.content)]
        for token, match in found:
            if len(block) != 3 or match[0] != token.content.strip():
                raise Explained(f"{match[0]} needs a paragraph of its own in: {token.content}")
            return self.place(match[1], match[0])
        return self.rendered(block)

    def heading(self, block: list[Token]) -> Markup:
        """A heading with a line in the contents; the first of all is the title."""
        self.here = "".join(token.content or " " for token in block[1].children or [])
        if block[0].tag == "h1":
            self.title = self.here
            return Markup("")
        line = Heading(self.ids.new(self.here), self.here, [])
        is_below = block[0].tag != "h2" and self.contents
        (self.contents[-1].below if is_below else self.contents).append(line)
        block[0].attrSet("id", line.id)
        return self.rendered(block)

    def place(self, table: str | None, reference: str) -> Markup:
        """What a reference stands for."""
        if reference in self.placed:
            raise Explained(f"{reference} stands twice in the summary")
        self.placed.add(reference)
        if table is None:
            return Markup("").join(self.macros.figure(plate) for plate in self.figures)
        if table not in self.frame.tables:
            raise Explained(f"{reference}: there is no such table in the frame")
        if table == "ledger" and self.claims is not None:
            return self.macros.ledger(self.claims)
        words = self.frame.tables[table].astype(str)
        if words.empty:
            return Markup("<p>none</p>")
        head = [escape(column) for column in words.columns]
        rows = [[escape(cell) for cell in row] for row in words.to_numpy().tolist()]
        return self.grid(table, head, kinds(words), rows)

    def grid(
        self, name: str, head: list[Markup], columns: list[str], rows: list[list[Markup]]
    ) -> Markup:
        """A table that is called by its heading."""
        self.labels[self.here] += 1
        count = self.labels[self.here]
        label = self.here if count == 1 else f"{self.here}, table {count}"
        return self.macros.table(Grid(self.ids.new(f"table-{name}"), label, head, columns, rows))

    def cells(self, block: Iterable[Token]) -> list[list[Markup]]:
        """A table of the text, row by row."""
        rows: list[list[Markup]] = []
        for token in block:
            if token.type == "tr_open":
                rows.append([])
            if token.type == "inline":
                rows[-1].append(self.rendered([token]))
        return rows

    def rendered(self, tokens: Sequence[Token]) -> Markup:
        """By the Markdown library, which escapes all text."""
        return Markup(self.markdown.renderer.render(tokens, self.markdown.options, {}))


def blocks(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The tokens of every part of a text that lies in no other."""
    block: list[Token] = []
    depth = 0
    for token in tokens:
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block
            block = []


def _inside(tag: str, text: str) -> Markup:
    """A file of this project, as it stands between two tags."""
    if f"</{tag}" in text.lower():
        raise Explained(f"a {tag} of the page must not hold </{tag}")
    return Markup(text)
