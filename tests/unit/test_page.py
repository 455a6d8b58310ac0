"""The page: all that the frame says is in it, and nothing of it is taken for HTML."""

import base64
import hashlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from page_recipes import HOSTILE, LOOK, REPORT, TEMPLATE, frame, made, manifest, svg

from normscope.errors import Explained
from normscope.paper.page import Ids, kinds, page

ROOT = Path(__file__).parents[2]
TAGS = """html head meta title link style body a header div button h1 main p nav details summary ul
li span h2 h3 form label input small fieldset legend table caption thead tr th tbody td code strong
figure img figcaption dl dt dd footer script""".split()


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

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen(made())


def words(html: Seen) -> str:
    return " ".join(" ".join(html.text).split())


def test_every_cell_of_every_table_is_there(seen):
    for name, table in frame().tables.items():
        for cell in {*table.columns, *table.astype(str).to_numpy().ravel()} - {"arm"}:
            assert cell in seen.cells, f"{cell} of {name}"


def test_words_figures_and_the_table_of_the_text_are_there(seen):
    text = words(seen)
    for part in ("The title of a page", "An opening of words.", "The end.", "none"):
        assert part in text
    assert {"exact", "g - mean(g)"} <= set(seen.cells)
    ids = [figure["id"] for figure in seen.of("figure")]
    assert ids == ["figure-loss", "figure-final_norm"]  # in the order of their captions
    for image in seen.of("img"):
        kind, data = image["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(data) == svg()
        assert (image["alt"], image["width"], image["height"]) == ("Title words", "40", "20")
    assert text.count("Caption words") == 2


def test_links_lead_to_places_that_are_there_once(seen):
    ids = Counter(attributes["id"] for _, attributes in seen.tags if "id" in attributes)
    assert set(ids.values()) == {1}
    targets = {link["href"] for link in seen.of("a")}
    assert all(target.removeprefix("#") in ids for target in targets)
    assert {"#figure-loss", "#losses-of-words", "#empty", "#provenance"} <= targets
    described = {image["aria-describedby"] for image in seen.of("img")}
    assert described <= set(ids)


def test_rows_say_what_they_are_chosen_by(seen):
    rows = [row for row in seen.of("tr") if "data-verdict" in row]
    chosen = [(row["data-verdict"], row["data-document"]) for row in rows]
    assert chosen == [
        ("fails", "Rahman"),
        ("undecided", "words"),
        ("holds", "Rahman"),
        ("words", "words"),
    ]
    boxes = [(box["name"], box["value"]) for box in seen.of("input") if box["type"] == "checkbox"]
    verdicts = ["holds", "fails", "undecided", "words"]
    assert boxes == [
        *(("verdict", verdict) for verdict in verdicts),
        ("document", "Rahman"),
        ("document", "words"),
    ]


def test_tables_have_captions_scopes_and_names(seen):
    assert len(seen.of("caption")) == len(seen.of("table"))
    assert all(cell["scope"] in ("row", "col") for cell in seen.of("th"))
    scrolled = [box for box in seen.of("div") if "scroll" in box.get("class", "")]
    assert len(scrolled) == 5  # of the text, of losses, two figures, sources
    assert all(box["tabindex"] == "0" and box["role"] == "region" for box in scrolled)
    names = [box["aria-label"] for box in scrolled]
    assert names[:2] == ["Table: Losses of words", "Table: Losses of words, table 2"]


def test_the_origin_of_results_is_told(seen):
    text = words(seen)
    for part in ("c0ffee", "3.11.7", "da7a", "abc123", "def456"):
        assert part in text
    assert "Runs 2 " in text
    assert "absent" not in text  # was not measured


def test_the_policy_lets_one_script_run_and_nothing_load(seen):
    (policy,) = [m["content"] for m in seen.of("meta") if "http-equiv" in m]
    digest = base64.b64encode(hashlib.sha256(LOOK.script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert f"<script>{LOOK.script}</script>" in made()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    found = Seen(made(text))
    assert text in found.cells
    assert {tag for tag, _ in found.tags} <= set(TAGS)
    assert len(found.of("script")) == len(found.of("style")) == 1
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not attributes.get("href", "").startswith("javascript:")
        if "src" in attributes or tag == "link":
            assert attributes.get("src", attributes.get("href", "")).startswith("data:")
    assert [image["alt"] for image in found.of("img")] == [f"Title {text}"] * 2
    assert text in {row["data-verdict"] for row in found.of("tr") if "data-verdict" in row}


def test_names_of_figures_may_be_hostile():
    names = ('"><script>', "a b", "A-B", "top")
    printed = frame(names=names)
    found = Seen(page(TEMPLATE, printed, dict.fromkeys(names, svg()), manifest(), LOOK))
    ids = [figure["id"] for figure in found.of("figure")]
    assert ids == ["figure-script", "figure-a-b", "figure-a-b-2", "figure-top"]


def test_the_same_inputs_give_the_same_bytes():
    assert made() == made()


def test_a_missing_figure_is_named():
    with pytest.raises(Explained, match="without an svg: final_norm"):
        page(TEMPLATE, frame(), {"loss": svg()}, manifest(), LOOK)


def test_a_figure_that_is_no_svg_is_named():
    svgs = {"loss": svg(), "final_norm": b"cut off"}
    with pytest.raises(Explained, match=r"final_norm\.svg is no SVG"):
        page(TEMPLATE, frame(), svgs, manifest(), LOOK)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("# x\n\n[[table nowhere]]", "no such table"),
        ("# x\n\nsee [[table loss]] here", "paragraph of its own"),
        ("# x\n\n[[table loss]]\n\n[[table loss]]", "twice"),
        ("# x\n\n[[figures]]\n\n[[figures]]", "twice"),
    ],
)
def test_a_wrong_reference_is_named(template, said):
    svgs = dict.fromkeys(frame().captions, svg())
    with pytest.raises(Explained, match=said):
        page(template, frame(), svgs, manifest(), LOOK)


def test_what_the_manifest_or_the_ledger_lacks_is_named():
    svgs = dict.fromkeys(frame().captions, svg())
    short = {name: part for name, part in manifest().items() if name != "runs"}
    with pytest.raises(Explained, match="the manifest has no runs"):
        page(TEMPLATE, frame(), svgs, short, LOOK)
    tables = frame().tables
    without = {**tables, "ledger": tables["ledger"].drop(columns="corrected")}
    with pytest.raises(Explained, match="ledger has no column corrected"):
        page(TEMPLATE, replace(frame(), tables=without), svgs, manifest(), LOOK)


def test_files_of_the_page_cannot_end_their_own_tag():
    svgs = dict.fromkeys(frame().captions, svg())
    for part in ("style", "script"):
        wrong = LOOK._replace(**{part: f"</{part.upper()}>"})
        with pytest.raises(Explained, match=f"must not hold </{part}"):
            page(TEMPLATE, frame(), svgs, manifest(), wrong)


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
    assert kinds(pd.DataFrame({"column": cells})) == [kind]


def test_an_id_is_given_once():
    ids = Ids()
    assert [ids.new(words) for words in ("A b", "a  b", "<>", "top")] == [
        "a-b",
        "a-b-2",
        "part",
        "top-2",
    ]


def test_the_script_writes_the_page(tmp_path):
    printed = frame(HOSTILE[0])
    printed.write(tmp_path / "frame.json")
    (tmp_path / "summary.md").write_text(TEMPLATE)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest()))
    (tmp_path / "loss.svg").write_bytes(svg())
    flags = {
        "frame": tmp_path / "frame.json",
        "template": tmp_path / "summary.md",
        "page": REPORT / "page.html.j2",
        "style": REPORT / "page.css",
        "script": REPORT / "page.js",
        "figures": tmp_path,
        "manifest": tmp_path / "manifest.json",
        "out": tmp_path / "summary.html",
    }
    command = [sys.executable, ROOT / "scripts" / "page.py"]
    command += [part for name, value in flags.items() for part in (f"--{name}", value)]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: figures without an svg: final_norm")
    (tmp_path / "final_norm.svg").write_bytes(svg())
    subprocess.run(command, check=True)
    svgs = dict.fromkeys(printed.captions, svg())
    assert flags["out"].read_text().rstrip() == (
        page(TEMPLATE, printed, svgs, manifest(), LOOK).rstrip()
    )
