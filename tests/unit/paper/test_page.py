"""The page: all that the frame says is in it, and none of it is read as HTML."""

import base64
import hashlib
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from page_recipes import HOSTILE, REPORT, frame, made

TAGS = """html head meta title link style body a header div button h1 main p nav details summary ul
li span h2 h3 form label input small fieldset legend table caption thead tr th tbody td code strong
pre figure svg br figcaption dl dt dd footer script""".split()
KEYS = ["a", "b", "c", "d0"]


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> BeautifulSoup:
    return soup(made(tmp_path_factory.mktemp("templates")))


def texts(parsed: BeautifulSoup, query: str) -> list[str]:
    return [" ".join(element.get_text().split()) for element in parsed.select(query)]


def attributes(parsed: BeautifulSoup, query: str, name: str) -> list[str]:
    return [str(element[name]) for element in parsed.select(query)]


def test_every_cell_of_every_table_and_every_word_is_there(seen):
    cells = set(texts(seen, "td, th"))
    for name, table in frame().tables.items():
        if table.rows and name != "tally":  # a picture
            assert {*table.headings, *(cell for row in table.texts() for cell in row)} <= cells
    (text,) = texts(seen, "body")
    for part in ("The title of a page", "An opening of words.", "The end.", "Nothing of words."):
        assert part in text
    for part in ("c0ffee", "3.11.7", "da7a", "2 (main 2)"):
        assert part in text
    assert "absent" not in text  # was not measured


def test_figures_have_captions_and_sizes(seen):
    assert attributes(seen, "figure", "id") == ["figure-loss", "figure-final_norm"]
    assert attributes(seen, ".drawing", "aria-label") == ["Title words"] * 2
    assert attributes(seen, ".drawing", "style") == ["aspect-ratio: 40 / 20"] * 2
    captions = [f"Figure {i}. Title words. Caption words" for i in (1, 2)]
    assert texts(seen, "figcaption") == captions


def test_links_lead_to_places_that_exist_once(seen):
    ids = Counter(attributes(seen, "[id]", "id"))
    assert set(ids.values()) == {1}
    targets = set(attributes(seen, "a", "href"))
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {"#figure-loss", "#on-losses-of-words", "#on-empty", "#provenance"} <= targets
    assert set(attributes(seen, ".drawing", "aria-describedby")) <= set(ids)


def test_a_statement_leads_to_its_figure_its_numbers_its_test_and_its_code_and_back(seen):
    assert attributes(seen, "#ledger tbody tr", "id") == [f"statement-{key}" for key in KEYS]
    assert attributes(seen, "#table-main-claims tbody tr", "id") == [f"numbers-{k}" for k in KEYS]
    for key in KEYS:
        assert f"#from-{key}" in attributes(seen, f"#statement-{key} a", "href")
        figure = ["#figure-loss"] * (key != "c")  # the figure of c is not in the paper
        links = [f"#statement-{key}", *figure, f"#numbers-{key}"]
        assert attributes(seen, f"#from-{key} a", "href") == links
        command = "snakemake --cores 4 results/main/tables/runs.csv"
        codes = ["claims.yaml:1-2", "words", "a.py:3-4", command]
        assert texts(seen, f"#from-{key} code")[-4:] == codes


def test_every_statement_is_a_tile_in_the_row_of_its_document_and_the_column_of_its_verdict(seen):
    assert texts(seen, ".tally thead th") == ["document", "holds", "fails", "undecided"]
    cells = seen.select(".tally tbody td")
    signs = [[tile.span.get_text() for tile in cell.select(".tile")] for cell in cells]
    assert signs == [["·"], ["≠"], ["?", "?"]]
    assert attributes(seen, ".tile", "href") == [f"#statement-{k}" for k in ("c", "a", "b", "d0")]


def test_rows_have_the_values_that_they_are_filtered_by(seen):
    verdicts = ["fails", "undecided", "holds", "undecided"]
    assert attributes(seen, "#ledger tbody tr", "data-verdict") == verdicts
    assert attributes(seen, "#ledger tbody tr", "data-document") == ["words"] * 4
    values = ["holds", "fails", "undecided", "words"]
    assert attributes(seen, "input[type=checkbox]", "value") == values


def test_tables_have_captions_scopes_and_names(seen):
    assert len(seen.select("table")) == len(seen.select("table > caption"))
    assert set(attributes(seen, "th", "scope")) == {"row", "col"}
    boxes = seen.select('.scroll[tabindex="0"][role=region]')
    assert boxes == seen.select(".scroll")
    assert len(boxes) == 5  # traces, statements, losses, two figures
    assert boxes[2]["aria-label"] == "Table: Losses words"


def test_the_policy_lets_one_script_run_and_nothing_load(seen):
    (policy,) = attributes(seen, "meta[http-equiv]", "content")
    script = (REPORT / "page.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert [element.string for element in seen.select("script")] == [script]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text, tmp_path):
    html = made(tmp_path, text)
    assert html == made(tmp_path, text)
    parsed = soup(html)
    assert " ".join(text.split()) in texts(parsed, "td")
    assert {element.name for element in parsed.find_all()} <= set(TAGS)
    assert len(parsed.select("script")) == len(parsed.select("style")) == 1
    for element in parsed.find_all():
        assert not [name for name in element.attrs if name.startswith("on")]
        assert not str(element.get("href", "")).startswith("javascript:")
        if "src" in element.attrs or element.name == "link":
            assert str(element.get("src", element.get("href"))).startswith("data:")
    assert attributes(parsed, ".drawing", "aria-label") == [f"Title {text}"] * 2
    assert text in attributes(parsed, "#ledger tbody tr", "data-document")
