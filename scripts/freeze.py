"""Freeze the tests of the statements and the settings of the runs that they judge, beforehand."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import Config, load
from normscope.errors import Explained, run_script
from normscope.io.files import write_json
from normscope.pilot import read_project
from normscope.schema import Strict
from normscope.studies.statements import load_checked
from normscope.verdicts.frozen import DECISIVE_PATHS, FROZEN, Frozen, digests, git


class Flags(Strict):
    """Write the digests of every test and of the configurations, with the present commit."""

    names: CliPositionalArg[list[Path]] = Field(
        default=[Path("config.yaml"), Path("config/paper.yaml")],
        description="the configuration files of the runs",
    )
    evidence: Path = Field(default=Path("evidence"), description="directory of frozen.json")
    results: Path = Path("results")


def check_untrained(configs: Iterable[Config], results: Path) -> None:
    """Check that no model exists whose test would not have been frozen before it was trained."""
    for name, study in (pair for config in configs for pair in config.studies.items()):
        seeds = {seed for job in study.trainings().values() for seed in job.seeds}
        for path in sorted((results / name / "models").glob("*/metrics.csv")):
            if trained := sorted(seeds.intersection(pd.read_csv(path)["seed"])):
                raise Explained(
                    f"{path.parent} was trained before the freeze, with the seeds "
                    f"{', '.join(map(str, trained))}: choose seeds that no run has used"
                )


def main() -> None:
    flags = parse(Flags)
    if changed := git("status", "--porcelain", "--", *DECISIVE_PATHS):
        raise Explained(f"what is frozen must be a commit: commit these files first\n{changed}")
    configs = {str(name): load(read_project(Path(), name)) for name in flags.names}
    check_untrained(configs.values(), flags.results)
    claims = load_checked(
        sorted(Path("data/claims").glob("*.yaml")), next(iter(configs.values())).studies
    )
    frozen = Frozen(
        commit=git("rev-parse", "HEAD"),
        settings={name: config.digest for name, config in configs.items()},
        statements=digests(claims),
    )
    out = flags.evidence / FROZEN
    write_json(out, frozen.model_dump(mode="json"))
    print(f"{out}: {len(frozen.statements)} tests are frozen. Commit it before the run.")


if __name__ == "__main__":
    run_script(main)
