"""Keep the tables of the cards that the site shows, with the origin of their run."""

import shutil
from pathlib import Path

from normscope.command import parse
from normscope.errors import Explained, run_script
from normscope.io.files import read_json, write_json
from normscope.io.yamlfile import read_config
from normscope.machine import run_record
from normscope.schema import Strict
from normscope.studies.card.grid import Card
from normscope.studies.card.pages import COSTS, KEPT, RUN
from normscope.studies.card.tables import TABLES


class Flags(Strict):
    """Keep the tables of the cards of a run."""

    results: Path = Path("results")
    out: Path = Path("evidence")
    name: Path = Path("config/gallery.yaml")


def main() -> None:
    flags = parse(Flags)
    card = Card.model_validate(read_config(flags.name)["card"])
    made, out = flags.results / KEPT, flags.out / KEPT
    content = read_json(made / card.norm[0] / "card.json")
    if content["card"] != card.model_dump(mode="json"):
        raise Explained(f"{made} has cards of other settings than {flags.name}: make gallery")
    files = [made / "tables" / f"{name}.csv" for name in TABLES] + [made / "speed" / COSTS]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise Explained(f"{', '.join(missing)}: missing; remove {made}, then make gallery")
    run = {key: content[key] for key in ("card", "level", "origin")}
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in files:
        shutil.copy(path, out)
    write_json(out / RUN, run | run_record(card, flags.results))
    print(f"{out}: {sum(path.stat().st_size for path in out.iterdir()) / 1e6:.1f} MB")


if __name__ == "__main__":
    run_script(main)
