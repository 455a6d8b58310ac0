"""Keep the tables of the cards that the site shows, with the origin of their run."""

import json
import shutil
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import load
from normscope.errors import Explained, run_script
from normscope.io.files import write_json
from normscope.machine import run_record
from normscope.pilot import read_project
from normscope.schema import Strict
from normscope.studies.card import kept, pages
from normscope.studies.card.tables import TABLES


class Flags(Strict):
    """Keep the tables of the cards of a run."""

    results: Path = Path("results")
    out: Path = Path("evidence")
    name: str = Field(default="config/gallery.yaml", description="the run's configuration file")


def main() -> None:
    flags = parse(Flags)
    config = load(read_project(Path(), Path(flags.name)))
    if config.card is None:
        raise Explained(f"{flags.name} has no key card")
    made, out = flags.results / "card", flags.out / kept.FOLDER
    origin = json.loads((made / config.card.norm[0] / "card.json").read_text())["origin"]
    if origin["config_sha256"] != pages.origin(config.card, {}, {})["config_sha256"]:
        raise Explained(f"{made} has cards of other settings than {flags.name}: make gallery")
    files = [made / "tables" / f"{name}.csv" for name in TABLES] + [made / "speed" / kept.COSTS]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise Explained(f"{', '.join(missing)}: missing; remove {made}, then make gallery")
    run = kept.Run(
        card=config.card,
        level=config.level,
        **run_record(config, "card", flags.results),
        config_sha256=origin["config_sha256"],
        dataset=origin["dataset"],
        machine={key: origin[key] for key in kept.MACHINE},
    )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in files:
        shutil.copy(path, out)
    write_json(out / kept.RUN, run.model_dump(mode="json"))
    print(f"{out}: {sum(path.stat().st_size for path in out.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    run_script(main)
