"""The frame: every word and number that is printed, once.

summary.md, its page, its print and the files for LaTeX are made from it and from nothing else, so
that no two of them can disagree.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from normscope.io.files import write_json
from normscope.paper.evidence import (
    Evidence,
    evidence_columns,
    evidence_numbers,
    evidence_words,
    verdict_table,
)
from normscope.paper.section import Section, Word, named, numbers_among
from normscope.paper.statements import claims_table, ledger_numbers, ledger_table
from normscope.paper.table import PageTable
from normscope.paper.tally import documents, tally_table, tiles, totals, trace_table
from normscope.statistics.estimate import FEWEST

LEDGER, CLAIMS = "ledger", "claims"  # tables: of all statements, and of those of one study
TALLY, TRACES = "tally", "traces"  # the same statements by document, and where they come from
COUNTS = "verdicts"  # how many statements have each verdict


class Figure(NamedTuple):
    """What stands beside a figure."""

    title: str
    caption: str


@dataclass(frozen=True)
class Frame:
    """What is printed.

    Args:
        words: by the names that the summary's template gives them.
        sections: the words of each study, in the paper's order.
        tables: by name, in the paper's order; ``recall.best`` is the table ``best`` of a study.
        figures: by name, in the paper's order.
        numbers: single numbers by the words that name them: "layernorm pre loss".
        tiles: of every statement, in the ledger's order; see ``normscope.paper.tally.tiles``.
    """

    words: Mapping[str, Word]
    sections: Mapping[str, Mapping[str, Word]]
    tables: Mapping[str, PageTable]
    figures: Mapping[str, Figure]
    numbers: Mapping[str, str]
    tiles: Sequence[Mapping[str, Any]] = ()

    def write(self, path: Path) -> None:
        """As JSON; what has an order is a list."""
        write_json(
            path,
            {
                "words": self.words,
                "sections": [{"name": n, "words": words} for n, words in self.sections.items()],
                "tables": [{"name": n, **asdict(table)} for n, table in self.tables.items()],
                "figures": [{"name": n, **f._asdict()} for n, f in self.figures.items()],
                "numbers": self.numbers,
                "tiles": self.tiles,
            },
        )


def read(path: Path) -> Frame:
    """The frame of a file."""
    raw = json.loads(path.read_text())
    tables = {
        t["name"]: PageTable(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])))
        for t in raw["tables"]
    }
    sections = {s["name"]: s["words"] for s in raw["sections"]}
    figures = {f["name"]: Figure(f["title"], f["caption"]) for f in raw["figures"]}
    return Frame(raw["words"], sections, tables, figures, raw["numbers"], raw["tiles"])


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
    """All that is printed.

    Args:
        sections: what the studies hand over, in the paper's order.
        ledger: what claims.json holds; every claim names its study.
        level: confidence level of every interval.
        traces: where every statement is tested and measured, by its key.
        evidence: the ledger that the project keeps, if it has one.
        demonstration: whether the models are too small or too few to test a statement.

    Raises:
        Explained: two numbers have one name.
    """
    words = {"level": f"{level:.0%}", "alpha": f"{1 - level:.0%}", "fewest": str(FEWEST)}
    numbers = [*numbers_among(words), *ledger_numbers(ledger)]
    beside, columns, configuration = None, [], None
    if evidence is not None:
        beside, columns = evidence_words(ledger, evidence), evidence_columns(evidence)
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
    counts = {"claims_count": len(ledger["claims"]), "claims_tests": ledger["tests"]}
    others = {
        "demonstration": demonstration,
        "documents": documents(ledger),
        "evidence": beside,
        "totals": totals(ledger, {} if evidence is None else evidence.claims),
    }
    return Frame(
        words | counts | others,
        {study: section.words for study, section in sections.items()},
        tables,
        figures,
        named(numbers),
        tiles(ledger),
    )
