"""Rule claims: test every statement of data/claims/ on the tables of the workflow."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import Studies
from normscope.errors import run_script
from normscope.io.files import seal
from normscope.schema import Strict
from normscope.studies.statements import load_checked
from normscope.studies.verdicts import verdicts
from normscope.verdicts.frozen import Plan, read_frozen


class Flags(Strict):
    """Write claims.json."""

    config: Studies = Field(description="the configuration of all studies as JSON")
    claims: CliPositionalArg[list[Path]] = Field(
        description="the files of the documents, data/claims/*.yaml"
    )
    results: Path = Field(description="directory with one folder per study")
    settings: dict[str, str] = Field(description="the digest of each study's settings, as JSON")
    evidence: Path = Field(description="directory of frozen.json")
    out: Path


def main() -> None:
    flags = parse(Flags)
    studies = flags.config.studies
    claims = load_checked(flags.claims, studies)
    folders = {name: flags.results / name / "tables" for name in studies}
    plan = Plan(flags.settings, read_frozen(flags.evidence))
    verdicts(claims, studies, flags.config.level, folders, plan).write(flags.out)
    seal(flags.out)


if __name__ == "__main__":
    run_script(main)
