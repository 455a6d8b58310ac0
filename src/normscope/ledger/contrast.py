"""The test of a contrast: a measure of some models, alone or compared with that of others.

``find`` reads a statement's entry and tables, and knows no study.
"""

import math
from dataclasses import replace

import pandas as pd

from normscope.ledger import sentences
from normscope.ledger.case import Case, decide
from normscope.ledger.claim import Evidence, Finding
from normscope.ledger.entry import Entry
from normscope.ledger.pairs import Pair, pairs


def find(entry: Entry, evidence: Evidence, table: pd.DataFrame | None = None) -> Finding:
    """The cases of an entry's contrast, and its verdict under the published protocol.

    Args:
        entry: An entry with a contrast.
        evidence: The tables on which it is tested.
        table: A table to use in place of the contrast's.

    Raises:
        Explained: A table is missing, or a cell has several rows of one seed.
    """
    c = entry.contrast
    assert c is not None, entry.statement
    vocabulary = evidence.studies[c.table.partition(".")[0]].vocabulary()
    rows = evidence.table(c.table) if table is None else table
    compared = list(pairs(c, rows, vocabulary))
    original = [] if c.as_published is None else list(pairs(c, rows, vocabulary, c.as_published))
    cases = {pair: _tested(entry, pair, evidence.level) for pair in compared}
    decisive = [] if c.primary is None else [c.primary, *vocabulary.cells(c.primary)]
    primary = [pair.name for pair in cases if any(map(pair.is_at, decisive))]
    return Finding(
        {pair.name: case for pair, case in cases.items()},
        published=sentences.of_published(entry, original),
        its_verdict=_read_means(entry, original) if c.as_published is not None else "",
        corrected=sentences.of_cases(entry, cases),
        primary=primary[0] if primary else None,
    )


def _tested(entry: Entry, pair: Pair, level: float) -> Case:
    """The entry's test of one case. A fact is decided by its worst row."""
    if entry.test == "fact":
        effect = pair.effect(entry)
        known = not math.isnan(effect)
        return Case.known(entry.agrees_with(effect), effect) if known else Case.unknown("no data")
    if why := pair.why_open():
        return Case.unknown(why)
    case = decide(entry, pair.values(infinite=entry.scale == "log"), level=level)
    return replace(case, models=pair.models)


def _read_means(entry: Entry, cases: list[Pair]) -> str:
    """The verdict from the means alone, which is about these runs and not about others."""
    answers = []
    for pair in cases:
        effect = pair.effect(entry)
        why = "" if entry.test == "fact" else pair.why_open()
        if why or math.isnan(effect):
            return why or "no data"
        answers.append(entry.agrees_with(effect))
    if not answers:
        return "no data"
    return "holds" if (any if entry.holds_in == "any" else all)(answers) else "fails"
