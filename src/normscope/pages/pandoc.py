"""What pandoc and Typst make of the Markdown of a page: HTML, LaTeX, PDF, Markdown of GitHub.

pandoc reads CommonMark with a few extensions, as data: it opens no file that the text names.
"""

import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pypandoc
import typst

from normscope.errors import Explained

PROGRAM = files(pypandoc) / "files" / "pandoc"
FONTS = files("matplotlib") / "mpl-data" / "fonts" / "ttf"  # those of the figures
READER = (
    "commonmark-raw_html+pipe_tables+fenced_divs+bracketed_spans+attributes+gfm_auto_identifiers"
)


def convert(text: str, form: str, folder: Path, *options: str) -> str:
    """A text in another format.

    Args:
        text: Markdown.
        form: as pandoc calls it: html, latex or typst.
        folder: of the templates, with ``pages.lua``, which shapes tables, figures and cards.
        options: further options of pandoc.

    Raises:
        Explained: a template is in error.
    """
    return _pandoc(text, form, f"--lua-filter={folder / 'pages.lua'}", *options)


def github(text: str) -> str:
    """A text as Markdown that GitHub and most editors show."""
    return _pandoc(text, "gfm")


def pdf(text: str, folder: Path, svgs: Mapping[str, bytes]) -> bytes:
    """A text as PDF, the same bytes for the same inputs.

    Args:
        text: Markdown.
        folder: of the templates, with ``summary.typ`` and ``pages.lua``.
        svgs: figures by name.

    Raises:
        Explained: a template is in error.
    """
    layout = f"--template={folder / 'summary.typ'}"
    sources: Any = {  # typst's stubs do not know of several files
        "main.typ": convert(text, "typst", folder, layout).encode(),
        **{f"figures/{name}.svg": svg for name, svg in svgs.items()},
    }
    try:
        return typst.compile(
            sources, font_paths=[str(FONTS)], ignore_system_fonts=True, format="pdf"
        )
    except typst.TypstError as e:
        raise Explained(f"Typst cannot set the page: {e.message}; {e.diagnostic}") from e


def _pandoc(text: str, form: str, *options: str) -> str:
    command = [str(PROGRAM), "--sandbox", "--wrap=none", f"--from={READER}", f"--to={form}"]
    done = subprocess.run(
        [*command, *options], input=text.encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise Explained(f"pandoc cannot write {form}: {done.stderr.decode().strip()}")
    return done.stdout.decode()
