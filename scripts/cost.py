"""Rule cost: the core-hours of a configuration."""

from collections import defaultdict
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import Config
from normscope.cost.projection import jobs, once, read_reference
from normscope.errors import run_script
from normscope.paper import figures
from normscope.schema import Strict
from normscope.studies.folder import FOLDER


class Flags(Strict):
    """Print core-hours by rule."""

    config: str = Field(description="the validated configuration as JSON")
    reference: Path = Field(description="what jobs cost on another machine")


def main() -> None:
    flags = parse(Flags)
    reference = read_reference(flags.reference)
    config = Config.model_validate_json(flags.config)
    planned = defaultdict(list)
    for job in jobs(config):
        planned[job.rule].append(job)
    drawn = figures.drawn(figures.load(FOLDER, config.studies), config)
    planned["figures"] = [once("figures") for _ in (*figures.OF_LEDGER, *drawn)]
    if config.card:
        for rule in ("card_figure", "card_page"):
            planned[rule] = [once(rule) for _ in config.card.norm]
    for rule in sorted({rule for rule, *_ in reference.jobs} - planned.keys()):
        if config.card or not rule.startswith("card_"):
            planned["one job each"].append(once(rule))
    print(f"Core-hours, projected from {reference.machine}:\n")
    print("| rule | jobs | core-hours |\n| --- | ---: | ---: |")
    planned["total"] = [job for of_rule in planned.values() for job in of_rule]
    for rule, of_rule in planned.items():
        hours = sum(map(reference.seconds, of_rule)) / 3600
        print(f"| {rule} | {len(of_rule):,} | {hours:.2f} |")


if __name__ == "__main__":
    run_script(main)
