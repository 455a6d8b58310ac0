"""Checks of the pages: no digits typed in prose, nothing loaded from a network, no dead link."""

import html
import re
from collections.abc import Iterator
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

# a URL of a tag other than <a>, or of a style
LOADED = (
    r"""(?:<(?!a\b)[^>]*?\b(?:src|href|data|poster|srcset)=["']|url\(["']?|@import ["'])"""
    r"""((?:https?:)?//[^"') ]+)"""
)


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


def loaded(site: Path) -> list[str]:
    """Everything that the pages and styles of a built site would load from a network."""
    lines = []
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        urls = re.findall(LOADED, path.read_text())
        lines += [f"{path.relative_to(site)} loads {url}" for url in urls]
    return lines


def dead_links(site: Path) -> Iterator[str]:
    """Links between the pages of a built site whose file or anchor is missing."""
    pages = {path.resolve(): path.read_text() for path in sorted(site.rglob("*.html"))}
    anchors = {
        path: set(re.findall(r"""\bid=["']([^"']+)""", text)) for path, text in pages.items()
    }
    for path, text in pages.items():
        for url in dict.fromkeys(re.findall(r"""<a\b[^>]*?\bhref=["']([^"']*)""", text)):
            link = urlsplit(html.unescape(url))
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            anchor = unquote(link.fragment)
            if link.scheme or link.netloc or (not anchor and target.is_file()):
                continue
            if anchor not in anchors.get(target, ()):
                yield f"{path.relative_to(site.resolve())} links to {url}"
