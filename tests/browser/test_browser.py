"""The page in a browser: what a reader sees and does, by mouse, by keyboard and without scripts."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "results" / "screenshots"
TILE = 8000  # pixels; a screenshot of more than 16384 is cut by the browser
SHOWN = "#ledger tbody tr:not([hidden])"
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
DRAWN = """drawing => {
  const svg = drawing.querySelector("svg");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const box = svg.getBoundingClientRect();
  const ids = [...svg.querySelectorAll("use")].map((use) => use.href.baseVal.slice(1));
  return {
    paths: svg.querySelectorAll("path, use").length,
    lost: ids.filter((id) => document.querySelectorAll(`[id="${id}"]`).length !== 1),
    ratio: (box.width / box.height) / (width / height),
  };
}"""
TILED = """place => [...document.querySelectorAll(`.tally tbody td:nth-child(${place}) .tile`)].map(
  (tile) => document.querySelector(tile.hash).dataset.verdict)"""
LINKED = """[...document.querySelectorAll("#ledger tbody tr")].map((row) => {
  const trace = document.querySelector(row.querySelector("th a").hash);
  const cells = [...trace.cells];
  const to = (cell) => document.querySelector(cell.querySelector("a").hash);
  return {
    row: row.id, trace: trace.id, back: to(cells[0]).id, figure: to(cells[2]).tagName,
    statement: cells[0].textContent.trim(), numbers: to(cells[3]).cells[0].textContent.trim(),
    places: [...trace.querySelectorAll("td:nth-child(5) code, td:nth-child(6) code")].map(
      (code) => code.textContent),
    command: cells[6].textContent.trim(),
  };
})"""
# smallest contrast of a text with what is behind it, by WCAG 2.2
CONTRAST = """() => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const seen = new Map();
  const rgba = (color) => {
    if (!seen.has(color)) {
      paint.clearRect(0, 0, 1, 1); paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
      seen.set(color, [...paint.getImageData(0, 0, 1, 1).data]);
    }
    return seen.get(color);
  };
  const light = (color) => {
    const [r, g, b] = rgba(color).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (rgba(color)[3] === 255) return color;
      if (rgba(color)[3] > 0) throw new Error("a background that is seen through: " + e.className);
    }
    return "Canvas";
  };
  let least = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || e.closest("script, style")) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 200)];
  }
  return least;
}"""


def texts(page, query: str) -> list[str]:
    return [text.strip() for text in page.locator(query).all_inner_texts()]


def column(page, name: str) -> list[str]:
    """Cells of the rows that are shown, from above."""
    return texts(page, f'{SHOWN} [data-label="{name}"]')


def verdicts(page) -> list[str]:
    """The verdicts of the rows that are shown, without the mark of exploratory ones."""
    return [text.removesuffix(" (exploratory)") for text in column(page, "corrected")]


def tab_to(page, query: str) -> None:
    """With the tabulator alone."""
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("q => document.activeElement.matches(q)", query):
            return
    pytest.fail(f"the keyboard does not reach {query}")


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_nothing_is_reported_or_requested_and_nothing_overflows(visit, summary, width):
    assert summary.stat().st_size <= 5_000_000
    visited = visit(summary, width)
    assert visited.page.evaluate(OVERFLOW) <= 0
    assert visited.said == []
    assert {url for url in visited.asked if not url.startswith("data:")} == {summary.as_uri()}


@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_is_seen(visit, summary, width):
    page = visit(summary, width).page
    drawings = page.locator("figure .drawing")
    assert drawings.count() > 0
    for drawing in drawings.all():
        drawing.scroll_into_view_if_needed()
        assert drawing.is_visible()
        assert drawing.get_attribute("aria-label")
        seen = drawing.evaluate(DRAWN)
        assert seen["paths"] > 10
        assert seen["lost"] == []  # references that lead nowhere draw nothing
        assert seen["ratio"] == pytest.approx(1, abs=0.02)


def test_the_first_screen_says_what_was_found(visit, summary):
    """As many tiles as statements, at the verdicts of the ledger; those lead to their rows.

    A demonstration says on its first screen that it has no findings, and has the tiles below.
    """
    for width, height in ((1280, 900), (390, 844)):
        page = visit(summary, width).page
        tiles = page.locator(".tally .tile")
        assert tiles.count() == page.locator("#ledger tbody tr").count()
        notice = page.locator("strong", has_text="This is a demonstration")
        first = notice if notice.count() else page.locator(".tally tbody")
        box = first.bounding_box()
        assert box["y"] + box["height"] <= height
        sizes = [tile.bounding_box() for tile in tiles.all()]
        assert min(min(size["width"], size["height"]) for size in sizes) >= 24  # WCAG 2.2, 2.5.8
    heads = texts(page, ".tally thead th")
    for place, head in enumerate(heads[1:], start=2):
        rows = page.evaluate(TILED, place)
        assert {verdict.split(":")[0] for verdict in rows} <= {head}


def test_every_link_of_every_statement_leads_somewhere(visit, summary):
    page = visit(summary).page
    for row in page.evaluate(LINKED):
        assert row["trace"]
        assert row["back"] == row["row"]
        assert row["figure"] == "FIGURE"
        assert row["numbers"] == row["statement"]
        entries = [place for place in row["places"] if place.startswith("data/claims/")]
        ((path, _, key),) = {place.partition(": ") for place in entries}
        assert f"\n  {key}:\n" in (ROOT / path).read_text()
        functions = [place for place in row["places"] if place.startswith("normscope.")]
        assert functions
        for name in functions:
            module, _, function = name.rpartition(".")
            path = ROOT / "src" / f"{module.replace('.', '/')}.py"
            assert f"def {function}(" in path.read_text(), name
        assert row["command"].startswith("snakemake --cores 4 results/")


def test_rows_are_chosen_by_mouse(visit, summary):
    page = visit(summary).page
    every = verdicts(page)
    for verdict in ("holds", "fails", "undecided"):
        chip = page.locator("label.chip", has=page.locator(f'input[value="{verdict}"]'))
        chip.click()
        assert verdicts(page) == [one for one in every if one == verdict]
        count = every.count(verdict)
        assert page.inner_text("#shown") == f"{count} of {len(every)} statements shown"
        chip.click()
    sources = page.locator('input[name="document"]')
    for index in range(sources.count()):
        box = sources.nth(index)
        box.check()
        shown = column(page, "source")
        assert shown
        assert all(one.startswith(str(box.get_attribute("value"))) for one in shown)
        box.uncheck()
    page.fill("#words", "no such words")
    assert page.inner_text("#shown").startswith("0 of ")
    page.click("text=Show all")
    page.locator(SHOWN).nth(len(every) - 1).wait_for()
    assert verdicts(page) == every


@pytest.mark.parametrize("name", ["p (Holm)", "Hedges g"])
def test_rows_are_sorted_by_mouse(visit, summary, name):
    page = visit(summary).page
    before = column(page, "statement")
    head = page.locator("#ledger thead th", has_text=name)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        assert f", by {name}, {direction}" in page.inner_text("#shown")
        values = column(page, name)
        known = [float(v.replace("−", "-").replace(",", "")) for v in values if v != "–"]
        assert known == sorted(known, key=lambda number: sign * number)
        assert set(values[len(known) :]) <= {"–"}
    page.click("text=Show all")
    page.locator("#ledger thead:not(:has([aria-sort=descending]))").wait_for()
    assert column(page, "statement") == before


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_are_chosen_and_sorted_by_keyboard(visit, summary, width):
    page = visit(summary, width).page
    rows = page.locator("#ledger tbody tr").count()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to(page, "#words")
    page.keyboard.type("gradient")
    assert 0 < len(column(page, "statement")) < rows
    verdict = verdicts(page)[0]
    tab_to(page, f'input[value="{verdict}"]')
    page.keyboard.press("Space")
    assert set(verdicts(page)) == {verdict}
    tab_to(page, "#ledger thead th:first-child button")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    shown = column(page, "statement")
    assert shown == sorted(shown, key=str.lower)
    tab_to(page, '#ledger tbody [data-label="figure"] a')
    page.keyboard.press("Enter")
    place = page.evaluate("decodeURIComponent(location.hash).slice(1)")
    assert page.locator(f"#{place}").evaluate("e => e.matches('figure:target')")


def test_a_row_is_a_card_on_a_phone(visit, summary):
    page = visit(summary, 390).page
    row = page.locator("#ledger tbody tr").first
    box = row.bounding_box()
    assert box["x"] >= 0
    assert 300 < box["width"] <= 390
    assert row.evaluate("e => getComputedStyle(e).display") == "block"
    assert row.locator("th").bounding_box()["width"] > 300
    cell = row.locator("td:not(.none)").first
    label = cell.evaluate("e => getComputedStyle(e, ':before').content")
    assert label.strip('"') == cell.get_attribute("data-label")


def test_links_lead_somewhere(visit, summary):
    page = visit(summary).page
    hashes = page.evaluate("[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash)")
    assert len(hashes) > 40
    assert page.evaluate("h => h.filter(x => !document.querySelector(x))", hashes) == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(visit, summary, scheme, width):
    page = visit(summary, width, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    page.locator("label.chip").first.click()
    least, where = page.evaluate(CONTRAST)
    assert least >= 4.5, where


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_whole_without_scripts(visit, summary, width):
    page = visit(summary, width, java_script_enabled=False).page
    assert page.locator("#ledger tbody tr").first.is_visible()
    assert not page.locator("#choose").is_visible()
    assert page.locator("#ledger thead button").count() == 0
    assert page.locator("#toc a").first.is_visible()
    every = [*page.locator(".tally .tile").all(), *page.locator("figure .drawing").all()]
    assert all(part.is_visible() for part in [*every, page.locator("#table-traces")])
    assert page.locator("figure use > title").count() > 100
    assert page.evaluate(OVERFLOW) <= 0


def test_a_hostile_page_runs_nothing(visit, recipes, tmp_path):
    for number, text in enumerate(recipes.HOSTILE):
        path = tmp_path / f"{number}.html"
        path.write_text(recipes.made(tmp_path, text))
        visited = visit(path, 390)
        visited.page.hover("#ledger tbody tr >> nth=0")
        assert visited.said == []
        assert {url for url in visited.asked if not url.startswith("data:")} == {path.as_uri()}
        assert visited.page.evaluate(OVERFLOW) <= 0
        every = column(visited.page, "statement")
        assert text in every
        visited.page.locator('input[name="verdict"][value="undecided"]').check()
        box = visited.page.locator('input[name="document"]')
        box.check()
        assert box.get_attribute("value") == text
        assert column(visited.page, "statement") == [every[1], text]  # both undecided


def test_no_other_script_may_run(visit, recipes, tmp_path):
    """Had escaping failed, the policy would stop it."""
    path = tmp_path / "page.html"
    path.write_text(
        recipes.made(tmp_path).replace(
            "</main>", "<script>alert(1)</script><img src=x onerror=alert(2)>"
        )
    )
    said = visit(path).said
    assert said
    assert not [line for line in said if line.startswith("dialog")]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark")])
def test_it_is_drawn(visit, summary, width, scheme):
    """For eyes: results/screenshots/, from above."""
    page = visit(summary, width, color_scheme=scheme).page
    height = page.evaluate("document.documentElement.scrollHeight")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SCREENSHOTS.glob(f"page-{width}-{scheme}-*.png"):
        old.unlink()
    for part, top in enumerate(range(0, height, TILE), start=1):
        clip = {"x": 0, "y": top, "width": width, "height": min(TILE, height - top)}
        path = SCREENSHOTS / f"page-{width}-{scheme}-{part:02}.png"
        page.screenshot(path=path, clip=clip, full_page=True)
        assert path.stat().st_size > 1000
