"""Draw a figure of a study: ``draw.py STUDY FIGURE --tables ...``."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.custom_arms import CustomArms
from normscope.errors import Explained, run_script, suggest
from normscope.io.files import seal, write_text
from normscope.pages import style
from normscope.pages.drawing import Draw, Look
from normscope.schema import Strict
from normscope.studies.stage import FOLDER


class Flags(Strict):
    """Draw a figure of a study: ``draw.py STUDY FIGURE --tables ...``."""

    tables: dict[str, Path] = Field(description="CSV files by name: runs=path/to/runs.csv")
    params: dict[str, Any] = Field(default={}, description="other parameters of the drawing, JSON")
    arms: CustomArms = Field(default={}, description="arms with code of their own, JSON")
    look: Look
    caption: str = Field(default="", description="what the figure shows; sample sizes are added")
    out: Path = Field(description="path without suffix; .pdf, .svg and .txt (caption) are written")


def drawing(study: str, figure: str) -> Draw:
    """The function ``draw`` of a figure."""
    paths = FOLDER.glob("*/figures/[!_]*.py")
    known = [f"{path.parts[-3]} {path.stem}" for path in paths]
    if f"{study} {figure}" not in known:
        near = suggest(f"{study} {figure}", known)
        raise Explained(f"the first two arguments are a study and one of its figures; {near}")
    return import_module(f"normscope.studies.{study}.figures.{figure}").draw


def main() -> None:
    study, figure = [*sys.argv[1:3], "", ""][:2]
    draw, flags = drawing(study, figure), parse(Flags, sys.argv[3:])
    style.use(flags.look.font_pt)
    tables = {name: pd.read_csv(path) for name, path in flags.tables.items()}
    shown, sizes = draw(tables, flags.look, **flags.params)
    style.save(shown, flags.out)
    write_text(flags.out.with_suffix(".txt"), " ".join(f"{flags.caption} {sizes}".split()))
    seal(*(flags.out.with_suffix(suffix) for suffix in (".pdf", ".svg", ".txt")))


if __name__ == "__main__":
    run_script(main)
