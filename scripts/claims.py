"""Rule claims: test every statement of data/claims/ on the tables of the workflow."""

import json
from pathlib import Path

from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.config import Studies
from normscope.errors import run_script
from normscope.io.files import write_text
from normscope.io.tables import Tables
from normscope.ledger.claim import Evidence
from normscope.ledger.frozen import Registry, read_frozen, read_history
from normscope.ledger.judgement import find_all, judge
from normscope.ledger.record import ledger
from normscope.schema import Strict
from normscope.studies.statements import digests_of, import_tests, load_checked


class Flags(Strict):
    """Judge the ledger."""

    config: Studies = Field(description="the configuration of all studies as JSON")
    claims: CliPositionalArg[list[Path]] = Field(
        description="the files of the documents, data/claims/*.yaml"
    )
    results: Path = Field(description="directory with one folder per study")
    history: Path = Field(description="the verdicts of all evidence runs, history.jsonl")
    frozen: Path | None = Field(default=None, description="the frozen tests, frozen.json")
    out: Path


def main() -> None:
    flags = parse(Flags)
    studies, level = flags.config.studies, flags.config.level
    claims = load_checked(flags.claims, studies)
    import_tests(studies)
    tables = {
        name: Tables(flags.results / name / "tables", study.TABLES)
        for name, study in studies.items()
    }
    judgements = judge(find_all(claims, Evidence(tables, studies, level)), 1 - level)
    frozen = None if flags.frozen is None else read_frozen(flags.frozen)
    registry = Registry(digests_of(claims), frozen, read_history(flags.history))
    content = ledger(claims, judgements, level, registry)
    write_text(flags.out, json.dumps(content, indent=2, allow_nan=False))  # readings in their order


if __name__ == "__main__":
    run_script(main)
