"""The frame: every word and number of the paper.

summary.md, the page, the PDF and the files for LaTeX are made from the frame alone, so they
cannot disagree.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from normscope.formats import PERCENT, Format
from normscope.io.files import write_text
from normscope.paper.evidence import (
    Evidence,
    evidence_columns,
    evidence_numbers,
    evidence_words,
    verdict_table,
)
from normscope.paper.section import Section, Word, named, numbers_among
from normscope.paper.statements import claims_table, ledger_numbers, ledger_table
from normscope.paper.table import Column, Number, PageTable, Quantity
from normscope.paper.tally import documents, tally_table, tiles, totals, trace_table
from normscope.statistics.estimate import FEWEST

LEDGER, CLAIMS = "ledger", "claims"  # tables: all statements, and those of one study
TALLY, TRACES = "tally", "traces"  # tables: verdicts by document, and where statements come from
COUNTS = "verdicts"  # table: counts of verdicts
# values that JSON holds as objects, each recognized by its fields
KINDS = {
    frozenset(field.name for field in fields(kind)): kind
    for kind in (Format, Number, Quantity, Column)
}


class Figure(NamedTuple):
    """Title and caption of a figure."""

    title: str
    caption: str


@dataclass(frozen=True)
class Frame:
    """Words, tables, figures and numbers of the paper.

    Args:
        words: by the names that the summary's template uses.
        sections: the words of each study, in the paper's order.
        tables: by name, in the paper's order; ``recall.best`` is the table ``best`` of a study.
        figures: by name, in the paper's order.
        numbers: by name, such as "layernorm pre loss", in alphabetical order.
        tiles: the statements in the ledger's order; see ``normscope.paper.tally.tiles``.
    """

    words: Mapping[str, Word]
    sections: Mapping[str, Mapping[str, Word]]
    tables: Mapping[str, PageTable]
    figures: Mapping[str, Figure]
    numbers: Mapping[str, Number]
    tiles: Sequence[Mapping[str, Any]] = ()

    def write(self, path: Path) -> None:
        """Write the frame as JSON."""
        write_text(path, json.dumps(vars(self), default=vars, allow_nan=False))


def read(path: Path) -> Frame:
    """The frame in a file, equal to the one that was written."""
    raw = json.loads(path.read_text(), object_hook=_restored)
    tables = {
        name: PageTable(table["title"], tuple(table["columns"]), tuple(map(tuple, table["rows"])))
        for name, table in raw["tables"].items()
    }
    figures = {name: Figure(*figure) for name, figure in raw["figures"].items()}
    return Frame(**raw | {"tables": tables, "figures": figures})


def _restored(record: dict[str, Any]) -> Any:
    kind = KINDS.get(frozenset(record))
    return kind(**record) if kind else record


def collect(
    sections: Mapping[str, Section],
    ledger: Mapping[str, Any],
    figures: Mapping[str, Figure],
    *,
    level: float,
    traces: Mapping[str, Mapping[str, Any]],
    evidence: Evidence | None = None,
    demonstration: bool = False,
) -> Frame:
    """Collect the frame.

    Args:
        sections: those of the studies, in the paper's order.
        ledger: the contents of claims.json; every claim names its study.
        level: confidence level of every interval.
        traces: where every statement is tested and measured, by key.
        evidence: the results that the project keeps, if it has any.
        demonstration: whether the models are too small or too few to test a statement.

    Raises:
        Explained: two numbers have the same name.
    """
    words = {
        "level": Number(level, PERCENT),
        "alpha": Number(1 - level, PERCENT),
        "fewest": FEWEST,
    }
    numbers = [*numbers_among(words), *ledger_numbers(ledger)]
    compared, columns, configuration = None, [], None
    if evidence is not None:
        compared, columns = evidence_words(ledger, evidence), evidence_columns(evidence)
        numbers += evidence_numbers(evidence)
        configuration = evidence.configuration if evidence.is_same else None
    tables = {
        TALLY: tally_table(ledger),
        COUNTS: verdict_table(ledger, evidence),
        LEDGER: ledger_table(ledger, columns),
        TRACES: trace_table(ledger, traces, configuration),
    }
    for study, section in sections.items():
        claims = [claim for claim in ledger["claims"] if claim["study"] == study]
        one_by_one = claims_table(f"Statements one by one: {study}", claims)
        shown = {CLAIMS: one_by_one, **section.tables}
        tables |= {f"{study}.{name}": table for name, table in shown.items()}
        numbers += [*numbers_among(section.words, study), *section.numbers]
    others = {
        "claims_count": len(ledger["claims"]),
        "claims_tests": ledger["tests"],
        "demonstration": demonstration,
        "documents": documents(ledger),
        "evidence": compared,
        "totals": totals(ledger, {} if evidence is None else evidence.claims),
    }
    return Frame(
        words | others,
        {study: section.words for study, section in sections.items()},
        tables,
        figures,
        named(numbers),
        tiles(ledger),
    )
