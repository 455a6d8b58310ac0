"""Tables of pages: cells by format, and the same hostile cells in every language."""

import json
import math
from html.parser import HTMLParser

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from page_recipes import (
    HOSTILE,
    HOSTILE_TEX,
    LATEX,
    LOOK,
    frame,
    manifest,
    rows_of,
    template_text,
    templates,
)
from page_recipes import SVG as PICTURE

from normscope import words
from normscope.errors import Explained
from normscope.paper.latex import files
from normscope.paper.markdown import pipe_table
from normscope.paper.page import kinds, page
from normscope.paper.table import (
    Column,
    Format,
    PageTable,
    at,
    count,
    crossed,
    estimate,
    interval,
    label,
    number,
    short,
    significant,
    tabulate,
    text,
    yes_no,
)
from normscope.paper.tex import escaped
from normscope.paper.typeset import document

NAN = math.nan
ROW = {"arm": "manual_l2", "n": 6, "lost": 2, "none": NAN, "yes": True, "no": False}
ROW |= {"mean": -0.5, "low": -1.25, "high": 0.25, "ln": math.log(2), "rate": 0.0003, "word": "a*"}


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        (text("word"), "a*"),
        (text("none"), "–"),
        (label(), "Unit L2"),
        (short("rate"), "0.0003"),
        (short("none"), "–"),
        (count(), "6"),
        (count("none"), "0"),
        (count("n", "lost"), "6, 2 diverged"),
        (count("n", "no"), "6"),
        (yes_no("yes"), "yes"),
        (yes_no("no"), "no"),
        (number("mean"), "−0.500"),
        (number("high", 2, sign=True), "+0.25"),
        (number("ln", 4, log=True), "2.0000"),
        (number("none"), "–"),
        (significant("ln", log=True), "2.00"),
        (interval("low", "high"), "[−1.250, 0.250]"),
        (interval("low", "high", 1, sign=True), "[−1.2, +0.2]"),
        (interval("none", "none"), "–"),
        (estimate("mean", "low", "high"), "−0.500 [−1.250, 0.250]"),
        (estimate("mean", "none", "none"), "−0.500"),
        (estimate("none", "none", "none"), "–"),
        (estimate("mean", "low", "high", words.significant_or_tiny), "−0.500 [−1.25, 0.250]"),
    ],
)
def test_a_format_writes_a_cell(form: Format, cell):
    assert form(ROW) == cell


def test_a_table_has_a_row_a_record_and_a_column_a_title():
    data = pd.DataFrame({"arm": ["layernorm", "none"], "loss": [1.5, NAN]})
    table = tabulate("Losses", data, [Column("arm", label()), Column("loss", number("loss", 1))])
    assert table == PageTable("Losses", ("arm", "loss"), (("LayerNorm", "1.5"), ("No norm", "–")))
    assert table.cells(1) == ("1.5", "–")
    assert table.select("loss") == PageTable("Losses", ("loss",), (("1.5",), ("–",)))
    with pytest.raises(Explained, match="has no column cost; it has arm, loss"):
        table.select("cost")
    assert tabulate("None", data[:0], [Column("arm", label())]).rows == ()


def test_records_are_crossed_in_the_order_in_which_they_come():
    data = pd.DataFrame(
        [["b", "x", 1.0], ["a", "x", 2.0], ["b", "y", 3.0]], columns=["key", "name", "v"]
    )
    cells = [Column(name, at(name, number("v", 0))) for name in ("x", "y")]
    table = tabulate("", crossed(data, ["key"], "name"), [Column("key", text("key")), *cells])
    assert table.rows == (("b", "1", "3"), ("a", "2", "–"))
    pairs = crossed(data, [], ["key", "name"])
    assert at(("b", "y"), number("v", 0))(pairs[0]) == "3"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0.5", "–", "−1,234.5", "3.15e-09", "< 0.000001", "+5%"], "number"),
        (["3 seeds", "25 prompts"], "number"),
        (["–"], "short"),
        (["0.8, drawn", "7"], "short"),
        (["1.9 [1.8, 2.0]"], "short"),
        (["x" * 33, "1"], "long"),
        (["x" * 201, "1"], "text"),
    ],
)
def test_columns_are_of_numbers_or_of_words(cells, kind):
    assert kinds(PageTable("", ("column",), tuple((cell,) for cell in cells))) == [kind]


class Cells(HTMLParser):
    """The text of every cell of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@pytest.mark.parametrize("hostile", [*HOSTILE, *HOSTILE_TEX])
def test_a_hostile_cell_is_text_in_every_language(hostile, tmp_path):
    """Markdown, HTML, LaTeX and print, in a header and in a cell."""
    printed = frame(hostile)
    seen = " ".join(hostile.split())
    table = printed.tables["main.loss"]

    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(pipe_table(table))
    cells = [t.children or [] for t in tokens if t.type == "inline"]
    assert {child.type for cell in cells for child in cell} == {"text"}
    assert ["".join(c.content for c in cell) for cell in cells].count(seen) == 2

    summary = template_text(templates(tmp_path), printed)
    svgs = dict.fromkeys(printed.figures, PICTURE)
    html = Cells(page(LOOK, summary, printed, svgs, manifest())).cells
    assert [" ".join(cell.split()) for cell in html].count(seen) >= 2

    latex = rows_of(files(printed, LATEX)["tables/main/loss.tex"])
    assert re_joined(escaped(hostile)) in re_joined(latex[2])

    parts = json.loads(json.dumps(document(summary, printed)))
    (part,) = [p for p in flat(parts) if p["kind"] == "table" and len(p["head"]) == 3]
    assert all(list(run) == ["text", "style", "to"] for row in part["rows"] for (run,) in row)
    assert part["rows"][1][0][0]["style"] == ""


def re_joined(tex: str) -> str:
    """TeX without what only says where lines may end."""
    return "".join(tex.replace(r"\allowbreak{}", "").split())


def flat(parts: list[dict]) -> list[dict]:
    return [block for part in parts for block in part.get("blocks", [part])]
