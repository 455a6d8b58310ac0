"""Checks of the pages: no digits typed in prose, no broken links, nothing loaded from a network."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ALLOWED = (  # names, and the years of citations
    r"\bL05\b",
    r"\bGPT-2\b",
    r"(?:\bet al\.|& [A-Z][a-z]+) (?:19|20)\d\d\b",
)
FENCE = r"(?ms)^ *(`{3,})(?:\{([\w-]+)\}|(?=[^{]))[^\n]*\n.*?^ *\1`*$"
BLANKED = (  # parts whose digits are not prose, in this order
    r"\A---\n.*?\n---\n",  # front matter
    r"(?s)<!--.*?-->",
    r"(?m)^\d\. ",  # numbers of list items
    r"(?s)\{(?:eval|doc|ref|abbr)\}(`+).*?\1",
    r"(?s)(?<!\})(`+)(?!`)(?![\d.]+`).*?(?<!`)\1(?!`)",  # names in code, but not bare numbers
    r"(?<=\])\([^)\s]*\)",  # targets of links
    r"<https?://[^>\s]+>",
)
MATH = r"(?s)\$\$.*?\$\$|(?<![\\$])\$[^$\n]+\$"
DIGIT = r"[\d½⅓⅔¼¾⁰¹²³⁴-⁹₀-₉]"
LITERAL = r"(?s)\{eval\}(`+)\s*[\"'\d-].*?\1"  # an expression that is only a literal
MEASURED = r"\d{2,}|\d\.\d"  # not allowed in formulas: measured numbers come from the evidence


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blank_code(match: re.Match[str]) -> str:
    """Blank a fence of code or of a directive without prose; else only the fence markers."""
    is_prose = match[2] not in (None, "code-cell", "toctree", "result-figure")
    return match[0].replace("```", "   ") if is_prose else _blank(match)


def _lines(text: str, pattern: str) -> set[int]:
    return {text.count("\n", 0, m.start()) for m in re.finditer(pattern, text)}


def may_have_numbers(source: str) -> bool:
    """Whether a page's front matter states where the numbers in its prose come from."""
    return bool(re.match(r"---\n(?:(?!---).*\n)*?typed_numbers: \w", source))


def digits(source: str) -> list[tuple[int, str]]:
    """Lines of MyST markdown, with their line numbers, that contain a number typed by hand.

    This is a digit in prose, a measured number in math, or an ``eval`` of a literal.
    """
    text = re.sub(FENCE, _blank_code, source)
    for pattern in BLANKED:
        flags = re.DOTALL if pattern.startswith(r"\A") else 0
        text = re.sub(pattern, _blank, text, flags=flags)
    math = "".join(
        m[0] if re.match(MATH, m[0]) else _blank(m) for m in re.finditer(rf"{MATH}|(?s:.)", text)
    )
    prose = re.sub(MATH, _blank, text)
    for pattern in ALLOWED:
        prose = re.sub(pattern, _blank, prose)
    numbers = _lines(prose, DIGIT) | _lines(math, MEASURED) | _lines(source, LITERAL)
    lines = source.splitlines()
    return [(i + 1, lines[i].strip()) for i in sorted(numbers)]


class _Page(HTMLParser):
    """Anchors, links, and the URLs that a browser loads automatically."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag != "a":
            self.loaded += [given[key] for key in ("src", "href", "data", "poster") if key in given]
            self.loaded += [part.split()[0] for part in given.get("srcset", "").split(",") if part]
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))


def _is_online(url: str) -> bool:
    return bool(re.match(r"(https?:)?//", url))


def faults(site: Path) -> list[str]:
    """Broken local links in a built site, and everything that it would load from a network."""
    pages = {path: _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    lines = []
    for path, page in pages.items():
        name = path.relative_to(site)
        lines += [f"{name} loads {url}" for url in page.loaded if _is_online(url)]
        for url in [*page.links, *page.loaded]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                lines.append(f"{name} links to {url}, which does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                lines.append(f"{name} links to {url}, which has no such anchor")
    for path in sorted(site.rglob("*.css")):
        urls = re.findall(r"(?:url\(|@import )\s*['\"]?([^'\")\s]+)", path.read_text())
        lines += [f"{path.relative_to(site)} loads {url}" for url in urls if _is_online(url)]
    return lines
