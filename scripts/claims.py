"""Rule claims: every statement of data/claims.yaml, judged by the workflow's tables."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import Explained, report
from normscope.io.files import write_json
from normscope.io.readers import tables_in
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entries, Entry, load
from normscope.ledger.judgement import judge
from normscope.ledger.record import ledger
from normscope.schema import PositiveFloat, Strict
from normscope.studies.depth import pages as depth
from normscope.studies.depth.claims import Evidence
from normscope.studies.depth.grid import Depth
from normscope.studies.jacobian import claims as jacobian_claims
from normscope.studies.jacobian import pages as jacobian
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.main.pages import FIGURES
from normscope.studies.pretrained import claims as pretrained_claims
from normscope.studies.pretrained import pages as pretrained
from normscope.studies.recall import claims as recall_claims
from normscope.studies.recall.grid import Recall

JACOBIAN = ("layers", "layers_by_cell", "chosen", "costs", "expected", "predictions")
TEXTBOOK = ("scratch", "affine", "sharing", "batches", "wild_summary", "undo")
PRETRAINED = ("by_model", "by_norm", "h25", "h25_models", "sensitivity")


class Flags(Strict):
    """Judge the ledger."""

    claims: Path = Field(description="the statements, data/claims.yaml")
    tables: Path = Field(description="directory of runs.csv, gain.csv and recall.csv")
    recall: str = Field(description="the configuration of the decisive test as JSON")
    jacobian: Path = Field(description="directory of the tables of the norms' backward pass")
    grid: str = Field(description="the configuration of that part as JSON")
    depth: Path = Field(description="directory of the tables of signals by depth")
    depth_grid: str = Field(description="the configuration of that part as JSON")
    textbook: Path = Field(description="directory of the tables of LayerNorm from scratch")
    pretrained: Path = Field(description="directory of the tables of pretrained models")
    references: Path = Field(description="published residual gains")
    margin_sds: PositiveFloat = Field(
        description="standard deviations of a baseline that are a margin"
    )
    level: float = Field(description="confidence level")
    out: Path


def found(flags: Flags, entries: dict[str, Entry]) -> list[Claim]:
    of_runs = tables_in(flags.tables, ("runs", "gain", "recall"))
    by_depth = tables_in(flags.depth, ("rates", "losses"))
    of_depth = Depth.model_validate_json(flags.depth_grid)
    signals = Evidence(by_depth["rates"], by_depth["losses"], of_depth.kept, flags.level, entries)
    backward = jacobian.evidence(
        Jacobian.model_validate_json(flags.grid),
        tables_in(flags.jacobian, JACOBIAN),
        flags.level,
        entries,
        flags.margin_sds,
    )
    of_models = pretrained.evidence(
        tables_in(flags.pretrained, PRETRAINED),
        pd.read_csv(flags.references),
        of_runs["gain"],
        of_runs["runs"],
        entries=entries,
        level=flags.level,
    )
    recall = Recall.model_validate_json(flags.recall)
    return [
        *recall_claims.claims(of_runs["recall"], recall, entries, flags.level),
        *jacobian_claims.claims(backward),
        *pretrained_claims.claims(of_models),
        *depth.claimed(signals, tables_in(flags.textbook, TEXTBOOK)),
    ]


def main() -> None:
    flags = CliApp.run(Flags)
    claims = load(flags.claims)
    for key, entry in claims.claims.items():
        if entry.figure not in FIGURES:
            known = ", ".join(FIGURES)
            raise Explained(
                f"{flags.claims}: claims.{key}.figure: {entry.figure!r} is none of {known}"
            )
    judged = judge(found(flags, Entries(claims.claims)), 1 - flags.level)
    write_json(flags.out, ledger(claims, judged, flags.level))


if __name__ == "__main__":
    report(main)
