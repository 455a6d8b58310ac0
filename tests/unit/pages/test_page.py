"""The page: all that the frame says is in it, and none of it is read as HTML."""

from collections import Counter
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup, Tag
from page_recipes import HOSTILE, frame, make_page

TAGS = """html head meta title link style body a div h1 main p details summary ul li span
label input h2 h3 table caption thead tr th tbody td code strong em pre figure img figcaption
blockquote""".split()
KEYS = ["a", "u", "b", "d0"]


def soup(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> BeautifulSoup:
    return soup(make_page(tmp_path_factory.mktemp("templates")))


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
    for part in ("c0ffee", "3.11.7"):
        assert part in text


def test_figures_have_captions_and_are_in_the_page(seen):
    assert attributes(seen, "figure", "id") == ["figure-loss", "figure-final_norm"]
    assert attributes(seen, "figure img", "alt") == ["Title words."] * 2
    assert texts(seen, "figcaption") == ["Title words. Caption words"] * 2
    for source in attributes(seen, "img", "src"):
        assert unquote(source.removeprefix("data:image/svg+xml,")).startswith("<svg xmlns='http")


def test_links_lead_to_places_that_exist_once(seen):
    ids = Counter(attributes(seen, "[id]", "id"))
    assert set(ids.values()) == {1}
    targets = set(attributes(seen, "a", "href"))
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {"#figure-loss", "#statement-b", "#top"} <= targets
    assert {"table-main-loss", "figure-loss"} <= set(ids)


def test_a_card_has_all_that_is_known_of_a_statement(seen):
    """Its verdict and effect stay in sight; comparisons, words and command open below them."""
    assert attributes(seen, "details.card > .more", "id") == [f"statement-{key}" for key in KEYS]
    verdicts = ["as claimed", "not testable here", "undecided", "opposite"]
    assert texts(seen, ".card summary .verdict") == verdicts
    effect = "0.250 [0.125, 0.500] nats"
    assert texts(seen, ".card summary .finding")[0] == f"words: {effect}, n = 12; certainty high"
    one = seen.select_one("#statement-a")
    assert one is not None
    assert texts(one, "blockquote") == ["“words”"]
    assert texts(one, "td") == [
        *("words", "the same"),
        *("main", "words", "below 0", effect, "12", "as claimed"),
    ]
    assert "Without data: words." in " ".join(texts(one, "p"))
    assert texts(one, "details li")[-1] == "rerun: snakemake --cores 4 results/main/tables/runs.csv"
    assert attributes(one, "a", "href") == ["#figure-loss"]
    untestable = seen.select_one("#statement-u")
    assert untestable is not None
    assert "rerun" not in untestable.get_text()


def test_radio_buttons_choose_claims_by_the_classes_of_their_rows(seen):
    chosen = attributes(seen, ".results input", "id")
    assert chosen == ["all", "as-claimed", "opposite", "undecided", "not-testable-here"]
    rows = Counter(attributes(seen, "#table-claims tr[class]", "class"))
    assert {str(name) for name in rows} == {str([name]) for name in chosen[1:]}


def test_no_script_runs_and_nothing_loads(seen):
    (policy,) = attributes(seen, "meta[http-equiv]", "content")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; ")
    assert "script" not in policy
    assert not seen.select("script")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text, tmp_path):
    html = make_page(tmp_path, text)
    assert html == make_page(tmp_path, text)
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
    assert attributes(parsed, "figure img", "alt") == [f"Title {text}."] * 2
