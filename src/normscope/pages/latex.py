r"""The frame for authors: tables, macros for numbers, and a small paper that shows them."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment

from normscope.pages.frame import LEDGER, Frame
from normscope.pages.table import Number
from normscope.pages.template import environment, fill
from normscope.pages.tex import Tex, escaped, macro_name, value
from normscope.pages.textable import breakable, tabular

EXAMPLE = "example.tex"


def files(frame: Frame, folder: Path) -> dict[str, str]:
    """All files by their paths.

    Args:
        folder: of the templates, ``example.tex`` and ``table.tex``.
    """
    templates = open_templates(folder)
    shown = {n: tabular(table, templates) for n, table in frame.tables.items() if n != LEDGER}
    return {
        "numbers.tex": numbers(frame.numbers),
        "claims.tex": tabular(frame.tables[LEDGER], templates, breaks=True),
        EXAMPLE: example(frame, shown, templates),
        **{f"{path(name)}.tex": text for name, text in shown.items()},
    }


def open_templates(folder: Path) -> Environment:
    """Templates with other marks than braces and percent signs, which TeX uses itself."""
    templates = environment(
        folder,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        finalize=lambda value: value if isinstance(value, Tex) else escaped(str(value)),
    )
    templates.filters["breakable"] = lambda text: Tex(breakable(text))
    templates.filters["plain"] = Tex
    # \url reads all other characters literally
    templates.filters["url"] = lambda link: Tex(quote(link, safe="/:?#[]@!$&'()*+,;=~%"))
    return templates


def path(table: str) -> str:
    """Path of a table without suffix: ``tables/recall/best`` for ``recall.best``."""
    return f"tables/{table.replace('.', '/')}"


def numbers(values: Mapping[str, Number]) -> str:
    r"""A macro for every number, as ``\newcommand{\normscopeClaims}{\num{38}}``."""
    lines = ["% numbers of the summary; needs siunitx"]
    for name, number in sorted(values.items()):
        lines.append(rf"\newcommand{{{macro_name(name)}}}{{{value(number)}}}")
    return "\n".join(lines)


def example(frame: Frame, shown: Mapping[str, str], templates: Environment) -> str:
    """A small paper: sentences with macros, the ledger, tables and figures."""
    tables = [
        (frame.tables[name].title, path(name), r"\begin{longtable}" in text)
        for name, text in shown.items()
    ]
    words = {
        "demonstration": frame.words.get("demonstration", False),
        "documents": frame.words.get("documents", []),
        "tables": tables,
        "figures": list(frame.figures.items()),
    }
    return fill(templates, EXAMPLE, words)
