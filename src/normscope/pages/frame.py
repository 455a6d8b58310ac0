"""The frame: every word and number of the paper.

The page, the PDF and the files for LaTeX are made from the frame alone, so they cannot disagree.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from normscope.formats import PERCENT, Format
from normscope.io.files import seal, write_text
from normscope.pages.cards import cards
from normscope.pages.evidence import Evidence, evidence_words
from normscope.pages.section import Section, Word
from normscope.pages.statements import claims_table, dispute_table, numbers, scoreboard, totals
from normscope.pages.table import Column, Number, PageTable, Quantity
from normscope.statistics.levels import DECISIVE_P, FEWEST
from normscope.verdicts.verdict import Verdicts

# tables: all statements, how the claims fared here and in the evidence, and disputed ones
CLAIMS, SCOREBOARD, DISPUTES = "claims", "scoreboard", "disputes"
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
        numbers: those that LaTeX has as macros, by names such as "nanogpt layernorm pre loss".
        cards: the statements in the ledger's order; see ``normscope.pages.cards.cards``.
    """

    words: Mapping[str, Word]
    sections: Mapping[str, Mapping[str, Word]]
    tables: Mapping[str, PageTable]
    figures: Mapping[str, Figure]
    numbers: Mapping[str, Number]
    cards: Sequence[Mapping[str, Any]] = ()

    def write(self, path: Path) -> None:
        """Write the frame as JSON."""
        write_text(path, json.dumps(vars(self), default=vars, allow_nan=False))
        seal(path)


def read(path: Path) -> Frame:
    """The frame in a file, equal to the one that was written."""
    raw = json.loads(path.read_text(), object_hook=_restore)
    tables = {
        name: PageTable(table["title"], tuple(table["columns"]), tuple(map(tuple, table["rows"])))
        for name, table in raw["tables"].items()
    }
    figures = {name: Figure(*figure) for name, figure in raw["figures"].items()}
    return Frame(**raw | {"tables": tables, "figures": figures})


def _restore(record: dict[str, Any]) -> Any:
    kind = KINDS.get(frozenset(record))
    return kind(**record) if kind else record


def collect(
    sections: Mapping[str, Section],
    verdicts: Verdicts,
    figures: Mapping[str, Figure],
    *,
    traces: Mapping[str, Mapping[str, Any]],
    evidence: Evidence | None = None,
    demonstration: bool = False,
) -> Frame:
    """Collect the frame.

    Args:
        sections: those of the studies, in the paper's order.
        verdicts: the contents of claims.json.
        figures: by name, in the paper's order.
        traces: where every statement is tested and measured, by key.
        evidence: the results that the project keeps, if it has any.
        demonstration: whether the models are too small or too few to test a statement.
    """
    tables = {
        SCOREBOARD: scoreboard(
            {"this run": verdicts} | ({"the evidence": evidence.verdicts} if evidence else {})
        ),
        DISPUTES: dispute_table(verdicts),
        CLAIMS: claims_table(verdicts),
    }
    macros = {**numbers(verdicts)}
    for study, section in sections.items():
        tables |= {f"{study}.{name}": table for name, table in section.tables.items()}
        macros |= section.numbers
    stated = dict.fromkeys(one.document for one in verdicts.verdicts)
    documents = [{"key": key, "name": verdicts.documents[key].name} for key in stated]
    counts = totals(verdicts)
    words = {
        "level": Number(verdicts.level, PERCENT),
        "decisive_p": DECISIVE_P,
        "false_decisions": round(DECISIVE_P * counts["comparisons"], 1),
        "fewest": FEWEST,
        "demonstration": demonstration,
        "documents": [one | verdicts.documents[one["key"]].model_dump() for one in documents],
        "evidence": None if evidence is None else evidence_words(verdicts, evidence),
        "totals": counts,
    }
    return Frame(
        words,
        {study: section.words for study, section in sections.items()},
        tables,
        figures,
        macros,
        cards(verdicts, traces, evidence),
    )
