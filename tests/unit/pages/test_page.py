"""The page: all that the frame says is in it, and none of it is read as HTML."""

import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from page_recipes import HOSTILE, frame, made

from normscope.pages import style
from normscope.pages.page import inlined

TAGS = """html head meta title link style body a header div h1 main p nav details summary ul li span
h2 h3 h4 table caption thead tr th tbody td code strong pre figure svg g rect line circle path br
blockquote figcaption dl dt dd footer""".split()
KEYS = ["a", "b", "d0", "u", "c"]  # those of the document, then a question


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
    for table in frame().tables.values():
        if table.rows:
            assert {*table.headings, *(cell for row in table.texts() for cell in row)} <= cells
    (text,) = texts(seen, "body")
    for part in ("The title of a page", "An opening of words.", "The end.", "Nothing of words."):
        assert part in text
    for part in ("c0ffee", "3.11.7", "da7a", "2 (main 2)"):
        assert part in text
    assert "absent" not in text  # was not measured


def test_figures_have_captions_and_sizes(seen):
    assert attributes(seen, "figure", "id") == ["figure-forest", "figure-loss", "figure-final_norm"]
    assert attributes(seen, ".drawing", "aria-label") == ["Title words"] * 3
    assert attributes(seen, ".drawing", "style") == ["aspect-ratio: 40 / 20"] * 3
    captions = [f"Figure {i}. Title words. Caption words" for i in (3, 1, 2)]
    assert texts(seen, "figcaption") == captions


def test_links_lead_to_places_that_exist_once(seen):
    ids = Counter(attributes(seen, "[id]", "id"))
    assert set(ids.values()) == {1}
    targets = set(attributes(seen, "a", "href"))
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {"#figure-loss", "#on-losses-of-words", "#on-empty", "#provenance"} <= targets
    assert set(attributes(seen, ".drawing", "aria-describedby")) <= set(ids)


def test_a_card_has_all_that_is_known_of_a_statement(seen):
    """Its verdict and finding stay in sight; readings, facts, code and command open below it."""
    assert attributes(seen, ".card .more", "id") == [f"statement-{key}" for key in KEYS]
    verdicts = ["fails", "undecided", "depends", "cannot be asked here", "holds"]
    assert texts(seen, ".card summary .verdict") == verdicts
    assert texts(seen, ".card summary .finding")[0] == frame().cards[0]["finding"]
    one = seen.select_one("#statement-a")
    assert texts(one, "h4") == ["Reading stated: holds", "Verdict"]
    assert texts(one, "blockquote") == ["words"]
    said = dict(zip(texts(one, "dt"), texts(one, "dd"), strict=True))
    assert (said["measured"], said["published"]) == ("words", "holds; 1.5")
    assert said["p-values"] == "0.0312; 0.0625 within the document (Holm)"
    assert said["rerun"] == "snakemake --cores 4 results/main/tables/runs.csv"
    assert said["refined by"] == "“words”"
    assert attributes(one, "a", "href") == ["#figure-loss"]
    assert len(seen.select(".card svg.interval")) == len(KEYS) - 1
    unasked = seen.select_one("#statement-u")
    assert texts(unasked, "blockquote") == ["words"]
    assert not {"test", "rerun", "reach"} & set(texts(unasked, "dt"))
    assert texts(seen, ".card summary .finding")[3] == "What it would take: words."


def test_small_plots_stand_next_to_each_other_with_their_verdicts(seen):
    assert texts(seen, ".plots dt") == ["words: fails", "words: depends"]
    assert attributes(seen, ".plots dt a", "href") == ["#statement-a", "#statement-d0"]
    assert len(seen.select(".plots svg.interval circle")) == 2


def test_tables_have_captions_scopes_and_names(seen):
    assert len(seen.select("table")) == len(seen.select("table > caption"))
    assert set(attributes(seen, "th", "scope")) == {"row", "col"}
    boxes = seen.select('.scroll[tabindex="0"][role=region]')
    assert boxes == seen.select(".scroll")
    assert boxes[0]["aria-label"] == "Table: What became of the assertions"


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
    assert " ".join(text.split()) in texts(parsed, "td")
    assert {element.name for element in parsed.find_all()} <= set(TAGS)
    assert len(parsed.select("style")) == 1
    for element in parsed.find_all():
        assert not [name for name in element.attrs if name.startswith("on")]
        assert not str(element.get("href", "")).startswith("javascript:")
        if "src" in element.attrs or element.name == "link":
            assert str(element.get("src", element.get("href"))).startswith("data:")
    assert attributes(parsed, ".drawing", "aria-label") == [f"Title {text}"] * 3
    assert " ".join(text.split()) in texts(parsed, "blockquote")


def test_ids_of_two_figures_in_a_page_differ_and_references_lead_to_them(tmp_path):
    style.use(8)
    parts = []
    for name in "ab":
        figure, axes = style.canvas(60, 40, 1, 1)
        axes[0, 0].plot([1, 2], [1, 2], "o")
        style.save(figure, tmp_path / name)
        parts.append(inlined((tmp_path / f"{name}.svg").read_text(), f"{name}-")[0])
    ids = [re.findall(r' id="([^"]+)"', part) for part in parts]
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1]) > 0
    for known, part in zip(ids, parts, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', part)) <= set(known)
