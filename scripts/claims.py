"""Rule claims: every statement of data/claims.yaml, judged by the workflow's tables."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import Studies
from normscope.errors import report
from normscope.io.files import write_json
from normscope.io.readers import tables_of
from normscope.ledger.claim import Evidence
from normscope.ledger.entry import load
from normscope.ledger.judgement import find_all, judge
from normscope.ledger.record import ledger
from normscope.schema import Strict
from normscope.studies.statements import import_tests


class Flags(Strict):
    """Judge the ledger."""

    config: Studies = Field(description="the whole configuration as JSON")
    claims: Path = Field(description="the statements, data/claims.yaml")
    results: Path = Field(description="directory with a directory tables for each study")
    out: Path


def main() -> None:
    flags = parse(Flags)
    studies = flags.config.studies
    import_tests(studies)
    claims = load(flags.claims)
    evidence = Evidence(tables_of(flags.results, studies), studies, flags.config.level)
    judgements = judge(find_all(claims, evidence), 1 - flags.config.level)
    write_json(flags.out, ledger(claims, judgements, flags.config.level))


if __name__ == "__main__":
    report(main)
