"""The page: all that the frame says is in it, and nothing of it is taken for HTML."""

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from page_recipes import (
    HOSTILE,
    LOOK,
    SVG,
    frame,
    made,
    manifest,
    template_text,
    templates,
)

from normscope.errors import Explained
from normscope.paper.frame import Frame
from normscope.paper.page import page

TAGS = """html head meta title link style body a header div button h1 main p nav details summary ul
li span h2 h3 form label input small fieldset legend table caption thead tr th tbody td code strong
pre figure svg br figcaption dl dt dd footer script""".split()


class Seen(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.cells: list[str] = []
        self.text: list[str] = []
        self.open = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.open = tag
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cells[-1] = self.cells[-1].strip()
            self.cells.append("")

    def handle_data(self, data):
        if self.open not in ("script", "style"):
            self.text.append(data)
        if self.cells:
            self.cells[-1] += data

    def elements(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> str:
    return made(tmp_path_factory.mktemp("templates"))


@pytest.fixture(scope="module")
def seen(whole) -> Seen:
    return Seen(whole)


def shown(folder, printed: Frame, **changes) -> str:
    """A page, but for what is changed of what it is made of."""
    parts = {"svgs": dict.fromkeys(printed.figures, SVG), "manifest": manifest(), "look": LOOK}
    parts |= changes
    return page(
        parts["look"],
        template_text(templates(folder), printed),
        printed,
        parts["svgs"],
        parts["manifest"],
    )


def drawings(html: Seen) -> list[dict[str, str]]:
    return [part for part in html.elements("div") if part.get("class") == "drawing"]


def words(html: Seen) -> str:
    return " ".join(" ".join(html.text).split())


def test_every_cell_of_every_table_is_there(seen):
    for name, table in frame().tables.items():
        if table.rows and name != "tally":  # a picture
            for cell in {*table.headings, *(cell for row in table.texts() for cell in row)}:
                assert cell in seen.cells, f"{cell} of {name}"


def test_words_and_figures_are_there(seen):
    text = words(seen)
    for part in ("The title of a page", "An opening of words.", "The end.", "Nothing of words."):
        assert part in text
    assert {"ul", "li", "code"} <= {tag for tag, _ in seen.tags}
    ids = [figure["id"] for figure in seen.elements("figure")]
    assert ids == ["figure-loss", "figure-final_norm"]  # in the order of their captions
    for drawing in drawings(seen):
        assert (drawing["role"], drawing["aria-label"]) == ("img", "Title words")
        assert drawing["style"] == "aspect-ratio: 40 / 20"
    assert [part["viewbox"] for part in seen.elements("svg")] == ["0 0 30 15"] * 2
    assert text.count("Caption words") == 2


def test_links_lead_to_places_that_are_there_once(seen):
    ids = Counter(attributes["id"] for _, attributes in seen.tags if "id" in attributes)
    assert set(ids.values()) == {1}
    targets = {link["href"] for link in seen.elements("a")}
    assert all(target.removeprefix("#") in ids for target in targets)
    assert {"#figure-loss", "#losses-of-words", "#empty", "#provenance"} <= targets
    described = {drawing["aria-describedby"] for drawing in drawings(seen)}
    assert described <= set(ids)


def test_a_statement_leads_to_its_figure_its_numbers_its_test_and_its_code_and_back(whole):
    """By the ids that are there: every row of the ledger, of the numbers and of the traces."""
    rows = re.findall(r'<tr[^>]* id="((?:statement|numbers|from)-\w+)".*?</tr>', whole, re.DOTALL)
    keys = [*"abc", "words"]
    assert sorted(rows) == sorted(
        f"{kind}-{k}" for kind in ("statement", "numbers", "from") for k in keys
    )
    for key in keys:
        (row,) = re.findall(rf'<tr[^>]* id="statement-{key}".*?</tr>', whole, re.DOTALL)
        assert f'href="#from-{key}"' in row
        (trace,) = re.findall(rf'<tr id="from-{key}".*?</tr>', whole, re.DOTALL)
        links = re.findall(r'href="#([^"]+)"', trace)
        figure = ["figure-loss"] * (key != "c")  # that of c is not in the paper
        assert links == [f"statement-{key}", *figure, f"numbers-{key}"]
        assert "<code>claims.yaml:1-2</code>" in trace
        assert "<code>words</code>, <br><code>a.py:3-4</code>" in trace
        assert "<code>snakemake --cores 4 results/main/tables/runs.csv</code>" in trace


def test_every_statement_is_a_tile_at_its_document_and_verdict(seen, whole):
    head, body = re.findall(r'<div class="tally">.*?</thead>|<tbody>.*?</tbody>', whole, re.DOTALL)[
        :2
    ]
    verdicts = re.findall(r'<th scope="col">(\w+)</th>', head)
    assert verdicts == ["holds", "fails", "undecided"]
    cells = re.findall(r"<td>(.*?)</td>", body, re.DOTALL)
    signs = [re.findall(r'aria-hidden="true">(.)</span>', cell) for cell in cells]
    assert signs == [["·"], ["≠"], ["?", "?"]]
    assert re.findall(r'href="#(.*?)"', body) == [
        f"statement-{k}" for k in ("c", "a", "b", "words")
    ]


def test_rows_say_what_they_are_chosen_by(seen):
    rows = [row for row in seen.elements("tr") if "data-verdict" in row]
    chosen = [(row["data-verdict"], row["data-document"]) for row in rows]
    assert chosen == [
        ("fails", "words"),
        ("undecided", "words"),
        ("holds", "words"),
        ("undecided", "words"),
    ]
    boxes = [
        (box["name"], box["value"]) for box in seen.elements("input") if box["type"] == "checkbox"
    ]
    verdicts = ["holds", "fails", "undecided"]
    assert boxes == [
        *(("verdict", verdict) for verdict in verdicts),
        ("document", "words"),
    ]


def test_tables_have_captions_scopes_and_names(seen):
    assert len(seen.elements("caption")) == len(seen.elements("table"))
    assert all(cell["scope"] in ("row", "col") for cell in seen.elements("th"))
    scrolled = [box for box in seen.elements("div") if "scroll" in box.get("class", "")]
    assert len(scrolled) == 6  # traces, statements, losses, two figures, sources
    assert all(box["tabindex"] == "0" and box["role"] == "region" for box in scrolled)
    names = [box["aria-label"] for box in scrolled]
    assert names[2] == "Table: Losses words"


def test_the_origin_of_results_is_told(seen):
    text = words(seen)
    for part in ("c0ffee", "3.11.7", "da7a", "abc123", "def456"):
        assert part in text
    assert "Trainings 2 (main 2)" in text
    assert "absent" not in text  # was not measured


def test_the_policy_lets_one_script_run_and_nothing_load(seen, whole):
    (policy,) = [m["content"] for m in seen.elements("meta") if "http-equiv" in m]
    digest = base64.b64encode(hashlib.sha256(LOOK.script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert f"<script>{LOOK.script}</script>" in whole


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text, tmp_path):
    parsed = Seen(made(tmp_path, text))
    assert text.strip() in parsed.cells
    assert {tag for tag, _ in parsed.tags} <= set(TAGS)
    assert len(parsed.elements("script")) == len(parsed.elements("style")) == 1
    for tag, attributes in parsed.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not attributes.get("href", "").startswith("javascript:")
        if "src" in attributes or tag == "link":
            assert attributes.get("src", attributes.get("href", "")).startswith("data:")
    assert [drawing["aria-label"] for drawing in drawings(parsed)] == [f"Title {text}"] * 2
    assert text in {row.get("data-document") for row in parsed.elements("tr")}


def test_names_of_figures_may_be_hostile(tmp_path):
    names = ('"><script>', "a b", "A-B", "top")
    parsed = Seen(shown(tmp_path, frame(names=names)))
    ids = [figure["id"] for figure in parsed.elements("figure")]
    assert ids == ["figure-script", "figure-a-b", "figure-a-b-2", "figure-top"]


def test_the_same_inputs_give_the_same_bytes(whole, tmp_path):
    assert made(tmp_path) == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"svgs": {"loss": SVG}}, "without an svg: final_norm"),
        ({"svgs": {"loss": SVG, "final_norm": b"cut off"}}, r"final_norm\.svg is no SVG"),
        ({"manifest": {"python": "3"}}, "the manifest has no config_sha256, dataset"),
        ({"look": LOOK._replace(style="</STYLE>")}, "must not hold </style"),
        ({"look": LOOK._replace(script="</SCRIPT>")}, "must not hold </script"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path, changes, message):
    with pytest.raises(Explained, match=message):
        shown(tmp_path, frame(), **changes)
