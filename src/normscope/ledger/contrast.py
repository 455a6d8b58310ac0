"""The test of a contrast: a measure of some models, alone or compared with that of others.

``find`` reads a statement's entry and tables, and knows no study.
"""

import math
from dataclasses import replace

import pandas as pd

from normscope.ledger import sentences
from normscope.ledger.case import Case, decide
from normscope.ledger.claim import Evidence, Finding
from normscope.ledger.comparison import Cells, Contrast
from normscope.ledger.entry import Entry
from normscope.ledger.expression import measure
from normscope.ledger.pairs import Pair, objects, pairs, select
from normscope.ledger.vocabulary import Vocabulary


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
    if entry.test == "fact":
        return _find_fact(entry, c, rows, vocabulary)
    tested = [(pair, _tested(entry, pair, evidence.level)) for pair in pairs(c, rows, vocabulary)]
    published, its_verdict = entry.published.number or "no number", ""
    if c.as_published is not None:
        original = list(pairs(c, rows, vocabulary, c.as_published))
        its_verdict = _read_means(entry, original)
        published = sentences.joined(entry, [sentences.of_means(entry, p) for p in original])
    decisive = [] if c.primary is None else [c.primary, *vocabulary.cells(c.primary)]
    primary = [pair.name for pair, _ in tested if any(map(pair.is_at, decisive))]
    return Finding(
        {pair.name: case for pair, case in tested},
        published,
        its_verdict,
        sentences.joined(entry, [sentences.of_case(entry, pair, case) for pair, case in tested]),
        primary=primary[0] if primary else None,
    )


def _find_fact(entry: Entry, c: Contrast, table: pd.DataFrame, vocabulary: Vocabulary) -> Finding:
    """Test every row, of which the worst decides."""
    rows = objects(table)

    def worst(cells: Cells) -> Case:
        values = measure(c.measure, select(rows, cells, vocabulary)).dropna()
        if values.empty:
            return Case.unknown("no data")
        value = float(values.max() if entry.direction == "less" else values.min())
        return Case.known(_is_as_stated(entry, value), value)

    case = worst(c.cells)
    published, its_verdict = entry.published.number or "no number", ""
    if c.as_published is not None:
        original = worst(c.cells | c.as_published)
        its_verdict, published = original.reading(), sentences.of_fact(entry, original)
    return Finding({"": case}, published, its_verdict, sentences.of_fact(entry, case))


def _tested(entry: Entry, pair: Pair, level: float) -> Case:
    """The entry's test of one case."""
    if why := pair.why_open():
        return Case.unknown(why)
    case = decide(entry, pair.values(infinite=entry.scale == "log"), level=level)
    return replace(case, models=pair.models)


def _read_means(entry: Entry, cases: list[Pair]) -> str:
    """The verdict from the means alone, which is about these runs and not about others."""
    answers = []
    for pair in cases:
        effect = pair.effect_of_means()
        if why := pair.why_open() or ("no data" if math.isnan(effect) else ""):
            return why
        answers.append(_is_as_stated(entry, effect))
    if not answers:
        return "no data"
    return "holds" if (any if entry.holds_in == "any" else all)(answers) else "fails"


def _is_as_stated(entry: Entry, value: float) -> bool:
    """Whether a quantity is where the statement says, beyond the margin if it has one."""
    low, high = entry.margins
    if entry.direction == "within":
        return low <= value <= high
    return value > high if entry.direction == "greater" else value < low
