"""Freeze the tests of the statements that read some studies, and the settings of these studies."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import load
from normscope.errors import Explained, run_script, suggest
from normscope.io.files import write_json
from normscope.pilot import read_project
from normscope.schema import Strict
from normscope.studies.statements import load_checked
from normscope.studies.study import Study
from normscope.verdicts.frozen import DECISIVE_PATHS, FROZEN, Frozen, digest, git, read_frozen


class Flags(Strict):
    """Write the digests of tests and settings of some studies, with the present commit."""

    studies: CliPositionalArg[list[str]] = Field(description="the studies that will run")
    name: Path = Field(
        default=Path("config/paper.yaml"), description="the configuration file of the run"
    )
    evidence: Path = Field(default=Path("evidence"), description="directory of frozen.json")
    results: Path = Path("results")


def check_untrained(study: Study, results: Path) -> None:
    """Check that no model exists whose test would not have been frozen before it was trained."""
    seeds = {seed for job in study.trainings().values() for seed in job.seeds}
    for path in sorted((results / study.name / "models").glob("*/metrics.csv")):
        if trained := sorted(seeds.intersection(pd.read_csv(path)["seed"])):
            raise Explained(
                f"{path.parent} was trained before the freeze, with the seeds "
                f"{', '.join(map(str, trained))}: choose seeds that no run has used"
            )


def main() -> None:
    flags = parse(Flags)
    if changed := git("status", "--porcelain", "--", *DECISIVE_PATHS):
        raise Explained(f"what is frozen must be a commit: commit these files first\n{changed}")
    config = load(read_project(Path(), flags.name))
    claims = load_checked(sorted(Path("data/claims").glob("*.yaml")), config.studies)
    frozen, commit = read_frozen(flags.evidence), git("rev-parse", "HEAD")
    for study in flags.studies:
        if study not in config.studies:
            raise Explained(f"{study} is not a study; {suggest(study, config.studies)}")
        check_untrained(config.studies[study], flags.results)
        tests = {key: digest(one) for _, key, one in claims if study in one.studies}
        settings = config.digests[study]
        frozen[study] = Frozen(commit=commit, settings=settings, statements=tests)
        print(f"{study}: {len(tests)} tests are frozen")
    out = flags.evidence / FROZEN
    write_json(out, {name: one.model_dump(mode="json") for name, one in frozen.items()})
    print(f"Commit {out} before the run.")


if __name__ == "__main__":
    run_script(main)
