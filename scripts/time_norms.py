"""Rule card_speed: measure what norms cost, in turn with torch's."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.tables import as_declared, write_tables
from normscope.schema import PositiveInt, Strict
from normscope.studies.card.recipe import Costs
from normscope.studies.card.speed import speed
from normscope.studies.card.tables import SPEED
from normscope.train.recipe import Device
from normscope.train.runtime import start


class Flags(Strict):
    """Measure the speed and the memory of norms."""

    recipe: Costs
    device: Device = "cpu"
    threads: PositiveInt = 1
    out: Path = Field(description="directory for speed.csv")


def main() -> None:
    flags = parse(Flags)
    runtime = start("fp32", flags.threads, flags.device)
    tables = {"speed": speed(flags.recipe, runtime.device)}
    write_tables(flags.out, as_declared(tables, {"speed": SPEED}))


if __name__ == "__main__":
    run_script(main)
