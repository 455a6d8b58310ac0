"""The frame: every word and number of the paper.

The page, the PDF and the files for LaTeX are made from the frame alone, so they cannot disagree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from normscope.formats import PERCENT
from normscope.pages import findings as questions
from normscope.pages.cards import cards
from normscope.pages.evidence import complete
from normscope.pages.section import Section, Word
from normscope.pages.statements import claims_table, numbers, scoreboard, totals
from normscope.pages.table import Number, PageTable
from normscope.statistics.levels import DECISIVE_P, FEWEST
from normscope.verdicts.findings import Findings
from normscope.verdicts.verdict import Verdicts

# tables: all statements, and how the claims fared here and in the evidence
CLAIMS, SCOREBOARD = "claims", "scoreboard"
EVIDENCE = "the evidence"


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
        cards: the statements in the order of the questions; see ``normscope.pages.cards.cards``.
    """

    words: Mapping[str, Word]
    sections: Mapping[str, Mapping[str, Word]]
    tables: Mapping[str, PageTable]
    figures: Mapping[str, Figure]
    numbers: Mapping[str, Number]
    cards: Sequence[Mapping[str, Any]] = ()


def collect(
    sections: Mapping[str, Section],
    verdicts: Verdicts,
    figures: Mapping[str, Figure],
    *,
    findings: Findings,
    scale: str,
    traces: Mapping[str, Mapping[str, Any]],
    evidence: Verdicts | None = None,
    demonstration: bool = False,
) -> Frame:
    """Collect the frame.

    Args:
        sections: those of the studies, in the paper's order.
        verdicts: the contents of claims.json.
        figures: by name, in the paper's order.
        findings: the questions, and their answers.
        scale: how large the models are, in words.
        traces: where every statement is tested and measured, by key.
        evidence: the verdicts that the project keeps, if it has any.
        demonstration: whether the models are too small or too few to test a statement.
    """
    whole, kept = complete(verdicts, evidence, findings.of_statements)
    runs = {"this run": verdicts}
    if evidence and evidence != verdicts:
        runs[EVIDENCE] = evidence
    tables = {
        SCOREBOARD: scoreboard(runs),
        CLAIMS: claims_table(whole, runs.get(EVIDENCE)),
    }
    macros = {**numbers(verdicts)}
    for study, section in sections.items():
        tables |= {f"{study}.{name}": table for name, table in section.tables.items()}
        macros |= section.numbers
    counts = totals(whole)
    words = {
        "level": Number(verdicts.level, PERCENT),
        "decisive_p": DECISIVE_P,
        "false_decisions": round(DECISIVE_P * counts["comparisons"], 1),
        "fewest": FEWEST,
        "demonstration": demonstration,
        "scale": scale,
        "kept": len(kept),
        "totals": counts,
        **questions.words(findings, verdicts, evidence, figures),
    }
    return Frame(
        words,
        {study: section.words for study, section in sections.items()},
        tables,
        figures,
        macros,
        cards(whole, traces, findings, kept),
    )
