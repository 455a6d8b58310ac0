"""The page: all that the frame says is in it, and none of it is read as HTML."""

import re
from collections import Counter
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup, Tag
from page_recipes import HOSTILE, frame, made

from normscope.pages import style
from normscope.pages.page import embedded

TAGS = """html head meta title link style body a div h1 main p nav details summary ul li span
h2 h3 table caption thead tr th tbody td code strong em pre figure img figcaption
blockquote""".split()
KEYS = ["a", "b", "d0", "u", "c"]  # those of the document, then a question


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> BeautifulSoup:
    return soup(made(tmp_path_factory.mktemp("templates")))


def texts(parsed: BeautifulSoup | Tag, query: str) -> list[str]:
    return [" ".join(element.get_text().split()) for element in parsed.select(query)]


def attributes(parsed: BeautifulSoup | Tag, query: str, name: str) -> list[str]:
    return [str(element[name]) for element in parsed.select(query)]


def test_every_cell_of_every_table_and_every_word_is_there(seen):
    cells = set(texts(seen, "td, th"))
    for table in frame().tables.values():
        if table.rows:
            assert {*table.headings, *(cell for row in table.texts() for cell in row)} <= cells
            assert table.title in texts(seen, ".table > table > caption")
    assert attributes(seen, ".table", "tabindex") == ["0"] * 3  # the keyboard scrolls them
    (text,) = texts(seen, "body")
    for part in ("The title of a page", "An opening of words.", "The end.", "Nothing of words."):
        assert part in text
    for part in ("c0ffee", "3.11.7", "da7a", "2 (main 2)"):
        assert part in text
    assert "absent" not in text  # was not measured


def test_figures_have_captions_and_are_in_the_page(seen):
    assert attributes(seen, "figure", "id") == ["figure-forest", "figure-loss", "figure-final_norm"]
    assert attributes(seen, "figure img", "alt") == ["Title words."] * 3
    assert texts(seen, "figcaption") == ["Title words. Caption words"] * 3
    for source in attributes(seen, "img", "src"):
        assert unquote(source.removeprefix("data:image/svg+xml,")).startswith("<svg xmlns='http")


def test_links_lead_to_places_that_exist_once(seen):
    ids = Counter(attributes(seen, "[id]", "id"))
    assert set(ids.values()) == {1}
    targets = set(attributes(seen, "a", "href"))
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {"#figure-loss", "#losses-of-words", "#empty", "#provenance"} <= targets
    assert {"table-main-loss", "figure-forest"} <= set(ids)


def test_a_card_has_all_that_is_known_of_a_statement(seen):
    """Its verdict and finding stay in sight; readings, facts, code and command open below it."""
    assert attributes(seen, "details.card > .more", "id") == [f"statement-{key}" for key in KEYS]
    verdicts = ["fails", "undecided", "depends", "cannot be asked here", "holds"]
    assert texts(seen, ".card summary .verdict") == verdicts
    assert texts(seen, ".card summary .finding")[0] == frame().cards[0]["finding"]
    one = seen.select_one("#statement-a")
    assert one is not None
    assert texts(one, "p > strong") == ["Reading stated:", "Verdict"]
    assert texts(one, "blockquote") == ["“words”"]
    said = dict(item.split(": ", 1) for item in texts(one, "li"))
    assert (said["measured"], said["published"]) == ("words", "holds; 1.5")
    assert said["rerun"] == "snakemake --cores 4 results/main/tables/runs.csv"
    assert said["refined by"] == "“words”"
    assert attributes(one, "a", "href") == ["#figure-loss"]
    unasked = seen.select_one("#statement-u")
    assert unasked is not None
    assert "rerun" not in unasked.get_text()
    assert texts(seen, ".card summary .finding")[3] == "What it would take: words."


def test_no_script_runs_and_nothing_loads(seen):
    (policy,) = attributes(seen, "meta[http-equiv]", "content")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; ")
    assert "script" not in policy
    assert not seen.select("script")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text, tmp_path):
    html = made(tmp_path, text)
    assert html == made(tmp_path, text)
    parsed = soup(html)
    assert " ".join(text.split()) in texts(parsed, "td, th")
    assert f"“{' '.join(text.split())}”" in texts(parsed, "blockquote")
    assert {element.name for element in parsed.find_all()} <= set(TAGS)
    assert len(parsed.select("style")) == 1
    for element in parsed.find_all():
        assert not [name for name in element.attrs if name.startswith("on")]
        assert not str(element.get("href", "")).startswith("javascript:")
        if "src" in element.attrs or element.name == "link":
            assert str(element.get("src", element.get("href"))).startswith("data:")
    assert attributes(parsed, "figure img", "alt") == [f"Title {text}."] * 3


def test_an_embedded_figure_is_the_drawing_with_shorter_coordinates(tmp_path):
    style.use(8)
    figure, axes = style.canvas(60, 40, 1, 1)
    axes[0, 0].plot([1, 2], [1, 2], "o", label="a & b < c")
    style.save(figure, tmp_path / "one")
    drawn = (tmp_path / "one.svg").read_text()
    address = soup(f'<img src="{embedded(drawn)}">').select_one("img")
    assert address is not None
    shown = unquote(str(address["src"]).removeprefix("data:image/svg+xml,"))
    tags = [re.findall(r"<(\w+)", text[text.index("<svg") :]) for text in (drawn, shown)]
    assert tags[0] == tags[1]
    numbers = [re.findall(r"-?\d+\.\d+", text[text.index("<svg") :]) for text in (drawn, shown)]
    for exact, short in zip(*numbers, strict=True):
        assert float(short) == pytest.approx(float(exact), abs=0.01)
