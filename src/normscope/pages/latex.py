r"""The frame for authors: tables and macros for numbers, which a LaTeX document inputs."""

import re
from pathlib import Path

from normscope.pages.frame import CLAIMS, Frame
from normscope.pages.markdown import escape_word, titled_table
from normscope.pages.pandoc import convert

EXAMPLE = "example.tex"
DIGITS = "Zero One Two Three Four Five Six Seven Eight Nine".split()
TABLE = re.compile(r"\\begin\{longtable\}.*?\\end\{longtable\}", re.DOTALL)


def latex_files(frame: Frame, folder: Path) -> dict[str, str]:
    """The files by their paths; tables without rows have none.

    Args:
        folder: of the templates.
    """
    tables = {name: table for name, table in frame.tables.items() if table.rows}
    text = "\n\n".join(titled_table(name, table) for name, table in tables.items())
    written = TABLE.findall(latex(text, folder))
    return {
        "numbers.tex": numbers(frame, folder),
        EXAMPLE: (folder / EXAMPLE).read_text(),
        **{f"{path(n)}.tex": f"{tex}\n" for n, tex in zip(tables, written, strict=True)},
    }


def latex(text: str, folder: Path) -> str:
    """Markdown as LaTeX, with the minus sign that every engine knows."""
    return convert(text, "latex", folder).replace("−", "$-$")


def path(table: str) -> str:
    """Path of a table without suffix: ``tables/recall/best`` for ``recall.best``."""
    return "claims" if table == CLAIMS else f"tables/{table.replace('.', '/')}"


def numbers(frame: Frame, folder: Path) -> str:
    r"""A macro for every number, as ``\newcommand{\normscopeClaims}{38}``."""
    known = dict(sorted(frame.numbers.items()))
    text = "\n\n".join(map(escape_word, map(str, known.values())))
    written = latex(text, folder).split("\n\n")
    lines = [
        rf"\newcommand{{{macro_name(name)}}}{{{tex.strip()}}}"
        for name, tex in zip(known, written, strict=True)
    ]
    return "\n".join(["% numbers of the summary", *lines, ""])


def macro_name(name: str) -> str:
    r"""``\normscopeLayernormPreLoss`` for "layernorm pre loss": letters only, digits spelled."""
    spelled = re.sub(r"[0-9]", lambda m: DIGITS[int(m[0])], name)
    return r"\normscope" + "".join(part.title() for part in re.split(r"[^A-Za-z]+", spelled))
