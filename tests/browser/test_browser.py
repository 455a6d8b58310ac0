"""The page in a browser: what a reader sees and does, by mouse and by keyboard."""

import page_recipes
import pytest

OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
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


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_nothing_is_reported_or_requested_and_nothing_overflows(visit, summary, width):
    assert summary.stat().st_size <= 1_500_000
    visited = visit(summary, width)
    assert visited.page.evaluate(OVERFLOW) <= 0
    assert visited.said == []
    assert {url for url in visited.asked if not url.startswith("data:")} == {summary.as_uri()}


@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_is_seen(visit, summary, width):
    page = visit(summary, width).page
    drawings = page.locator("figure img")
    assert drawings.count() > 0
    for drawing in drawings.all():
        drawing.scroll_into_view_if_needed()
        assert drawing.get_attribute("alt")
        natural, box = drawing.evaluate("e => e.naturalWidth"), drawing.bounding_box()
        assert natural > 100
        assert box["width"] > 300


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_the_first_screen_says_what_was_found(visit, summary, width, height):
    page = visit(summary, width).page
    answers = page.locator(".pair").first.locator("ol > li")
    assert answers.count() == 3
    assert all(one.bounding_box()["y"] < height for one in answers.all())


@pytest.mark.parametrize("width", [1280, 390])
def test_a_card_opens_by_mouse_by_keyboard_and_by_its_link(visit, summary, width):
    page = visit(summary, width).page
    card, other = page.locator(".card").first, page.locator(".card").last
    assert not card.locator(".more").is_visible()
    card.locator("> summary").click()
    assert card.locator(".more").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert not card.locator(".more").is_visible()
    key = other.locator(".more").get_attribute("id")
    page.goto(f"{summary.as_uri()}#{key}")
    assert page.locator(f"#{key}").is_visible()


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
    least, where = page.evaluate(CONTRAST)
    assert least >= 4.5, where


def test_a_hostile_page_runs_nothing(visit, tmp_path):
    for number, text in enumerate(page_recipes.HOSTILE):
        path = tmp_path / f"{number}.html"
        path.write_text(page_recipes.make_page(tmp_path, text))
        visited = visit(path, 390)
        visited.page.locator(".card summary").first.click()
        assert visited.said == []
        assert {url for url in visited.asked if not url.startswith("data:")} == {path.as_uri()}
        assert visited.page.evaluate(OVERFLOW) <= 0
        assert text in texts(visited.page, ".card .stated strong")


def test_no_script_may_run(visit, tmp_path):
    """Had escaping failed, the policy would stop it."""
    path = tmp_path / "page.html"
    path.write_text(
        page_recipes.make_page(tmp_path).replace(
            "</main>", "<script>alert(1)</script><img src=x onerror=alert(2)>"
        )
    )
    said = visit(path).said
    assert said
    assert not [line for line in said if line.startswith("dialog")]
