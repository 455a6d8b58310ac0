"""Measure the trained models of one probing job of a study."""

import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.tables import write_tables
from normscope.studies.stage import ProbeInputs, recipe_type, stage
from normscope.train.runtime import start


class Flags(ProbeInputs):
    """Measure trained models: ``probe.py STUDY --recipe JSON ...``."""

    recipe: Any
    out: Path = Field(description="directory for the tables of the probe")


def main() -> None:
    probe = stage("probe")
    flags = parse(Flags, sys.argv[2:], recipe=recipe_type(probe))
    device = start("fp32", flags.threads, flags.recipe.device).device
    write_tables(flags.out, probe(flags.recipe, flags, device))


if __name__ == "__main__":
    run_script(main)
