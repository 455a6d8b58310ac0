"""Write residual_gain.json in the format of the published notebook, from the study's tables."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import seal, write_json
from normscope.io.tables import Tables
from normscope.schema import Strict
from normscope.studies.pretrained.results import document
from normscope.studies.pretrained.tables import TABLES


class Flags(Strict):
    """Collect the tables of pretrained models in one JSON file."""

    tables: Path = Field(description="directory of the study's tables")
    out: Path


def main() -> None:
    flags = parse(Flags)
    write_json(flags.out, document(Tables(flags.tables, TABLES)))
    seal(flags.out)


if __name__ == "__main__":
    run_script(main)
