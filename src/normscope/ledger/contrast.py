"""What a contrast finds: a measure of some cells, alone or beside that of others.

``find`` reads a statement's entry and tables, and knows no study. Models of one seed are pairs; a
side in which one has no measure, as it diverged, is a selection, and what is compared must meet the
entry's needs.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from normscope.ledger.case import Case, decide, exp, log, units
from normscope.ledger.cells import Rows, records, select
from normscope.ledger.claim import Evidence, Finding
from normscope.ledger.comparison import Cells, Contrast
from normscope.ledger.entry import Entry
from normscope.ledger.expression import mean, measure
from normscope.ledger.pairs import Pair, pairs
from normscope.ledger.vocabulary import Vocabulary
from normscope.words import significant_or_tiny

ALONE = "{effect}{interval}, {n}"
BESIDE = "{effect}{interval} ({first} against {second}), {n}"


def find(entry: Entry, evidence: Evidence, table: pd.DataFrame | None = None) -> Finding:
    """The cases of an entry's contrast, and its verdict under the published protocol.

    Args:
        entry: with a contrast.
        evidence: that it is judged by.
        table: in place of the contrast's own.

    Raises:
        Explained: a table is not there, or a cell has several rows of a seed.
    """
    c = entry.contrast
    assert c is not None, entry.statement
    vocabulary = evidence.studies[c.table.partition(".")[0]].vocabulary()
    rows = records(evidence.table(c.table) if table is None else table)
    published = entry.published.number or "no number"
    if entry.test == "fact":
        return _find_fact(entry, c, rows, vocabulary, published)
    now = list(pairs(c, rows, vocabulary, {}))
    cases = {pair.name: _tested(entry, pair, evidence.level) for pair in now}
    sentences = [_sentence(entry, pair, cases[pair.name]) for pair in now]
    own = ""
    if c.as_published is not None:
        was = list(pairs(c, rows, vocabulary, c.as_published))
        own, published = _read_means(entry, was), _told(entry, [_means(entry, p) for p in was])
    decisive = [] if c.primary is None else [c.primary, *vocabulary.cells(c.primary)]
    primary = [pair.name for pair in now if any(map(pair.is_at, decisive))]
    return Finding(
        cases, published, own, _told(entry, sentences), primary=primary[0] if primary else None
    )


def _find_fact(
    entry: Entry, c: Contrast, rows: Rows, vocabulary: Vocabulary, published: str
) -> Finding:
    """Every row is a case by itself: the worst decides."""

    def worst(cells: Cells) -> Case:
        values = [measure(c.measure, row) for row in select(rows, cells, vocabulary)]
        known = [v for v in values if not math.isnan(v)]
        if not known:
            return Case.unknown("no data")
        value = max(known) if entry.direction == "less" else min(known)
        return Case.known(_is_on_side(entry, value), value)

    case, own = worst(c.cells), ""
    if c.as_published is not None:
        was = worst(c.cells | c.as_published)
        own, published = was.reading(), _told(entry, [significant_or_tiny(was.effect)])
    return Finding({"": case}, published, own, _told(entry, [significant_or_tiny(case.effect)]))


def _tested(entry: Entry, pair: Pair, level: float) -> Case:
    """The entry's test of a case."""
    if why := pair.why_open():
        return Case.unknown(why)
    case = decide(entry, pair.values(infinite=entry.scale == "log"), level=level)
    return replace(case, models=pair.models)


def _read_means(entry: Entry, cases: list[Pair]) -> str:
    """Whether the means are on the statement's side: of these runs alone."""
    answers = []
    for pair in cases:
        effect = pair.effect_of_means()
        if why := pair.why_open() or ("no data" if math.isnan(effect) else ""):
            return why
        answers.append(_is_on_side(entry, effect))
    if not answers:
        return "no data"
    return "holds" if (any if entry.holds_in == "any" else all)(answers) else "fails"


def _is_on_side(entry: Entry, value: float) -> bool:
    """Whether a quantity is where the statement has it, beyond the margin if it has one."""
    low, high = entry.margins
    if entry.direction == "within":
        return low <= value <= high
    return value > high if entry.direction == "greater" else value < low


def _told(entry: Entry, parts: list[str]) -> str:
    """The quantity, and what it is in every case."""
    return f"{entry.quantity}: {'; '.join(parts)}" if parts else "–"


def _means(entry: Entry, pair: Pair) -> str:
    """The means of the sides, as words; geometric on a logarithmic scale."""
    words = " against ".join(_mean(entry, pair))
    return f"{pair.name}: {words}" if pair.name else words


def _mean(entry: Entry, pair: Pair) -> list[str]:
    means = pair.means()
    if entry.scale == "log":
        logs = [[log(measure(pair.contrast.measure, r)) for r in rows] for rows in pair.sides]
        means = [exp(mean(side)) for side in logs]
    return [significant_or_tiny(value) for value in means]


def _settings(counts: Mapping[str, int]) -> str:
    """What was chosen, and for how many; one setting needs no count."""
    return ", ".join(counts if len(counts) == 1 else (f"{s} ({n})" for s, n in counts.items()))


def _sentence(entry: Entry, pair: Pair, case: Case) -> str:
    """A case in words: by the entry's sentence, or by the one that all share."""
    words = case.open
    if not words:
        first, *others = _mean(entry, pair)
        low, high = (significant_or_tiny(v) for v in (case.low, case.high))
        words = (pair.contrast.sentence or (BESIDE if others else ALONE)).format(
            first=first,
            second="".join(others),
            effect=significant_or_tiny(case.effect),
            interval="" if math.isnan(case.low) else f" [{low}, {high}]",
            n=units(case.n, case.unit),
        )
        if pair.contrast.best:
            names = ", ".join(pair.contrast.best.columns).replace("_", " ")
            words += f" at {names} {' against '.join(map(_settings, pair.chosen()))}"
    return f"{pair.name}: {words}" if pair.name else words
