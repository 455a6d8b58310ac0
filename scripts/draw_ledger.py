"""Rules forest and reach: draw a figure of the whole ledger."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import read_json, seal, write_text
from normscope.pages import forest, reach, style
from normscope.pages.drawing import Look
from normscope.schema import Strict

DRAWINGS = {"forest": forest, "reach": reach}


class Flags(Strict):
    """Draw a figure of the whole ledger."""

    figure: CliPositionalArg[Literal["forest", "reach"]]
    claims: Path = Field(description="the ledger, claims.json")
    look: Look
    out: Path = Field(description="path without suffix; .pdf, .svg and .txt (caption) are written")


def main() -> None:
    flags = parse(Flags)
    drawing = DRAWINGS[flags.figure]
    style.use(flags.look.font_pt)
    shown, sizes = drawing.draw(read_json(flags.claims), flags.look)
    style.save(shown, flags.out)
    write_text(flags.out.with_suffix(".txt"), " ".join(f"{drawing.CAPTION} {sizes}".split()))
    seal(*(flags.out.with_suffix(suffix) for suffix in (".pdf", ".svg", ".txt")))


if __name__ == "__main__":
    run_script(main)
