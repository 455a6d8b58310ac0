"""Rule forest: draw the forest plot of the whole ledger."""

import json
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import write_text
from normscope.paper import forest, style
from normscope.paper.drawing import Look
from normscope.schema import Strict


class Flags(Strict):
    """Draw the forest plot of the whole ledger."""

    claims: Path = Field(description="the ledger, claims.json")
    look: Look
    out: Path = Field(description="path without suffix; .pdf, .svg and .txt (caption) are written")


def main() -> None:
    flags = parse(Flags)
    style.use(flags.look.font_pt)
    shown, sizes = forest.draw(json.loads(flags.claims.read_text()), flags.look)
    style.save(shown, flags.out)
    write_text(flags.out.with_suffix(".txt"), " ".join(f"{forest.CAPTION} {sizes}".split()))


if __name__ == "__main__":
    run_script(main)
