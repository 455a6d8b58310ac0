"""The test of a contrast: a measure of some models, alone or compared with that of others.

``find`` takes a reading and the tables, and knows no study.
"""

import math
from dataclasses import replace

import pandas as pd

from normscope.verdicts import sentences
from normscope.verdicts.case import MIXTURE, SELECTION, Case, decide
from normscope.verdicts.claim import Evidence, Finding
from normscope.verdicts.extents import extents, series
from normscope.verdicts.pairs import Pair, absent, pairs
from normscope.verdicts.reading import BY_T, Reading


def find(reading: Reading, evidence: Evidence, table: pd.DataFrame | None = None) -> Finding:
    """The cases of a reading's contrast, and its verdict under the published protocol.

    Args:
        reading: A reading with a contrast.
        evidence: The tables on which it is tested.
        table: A table to use in place of the contrast's.

    Raises:
        Explained: A table is missing, or a cell has several rows of one seed.
    """
    c = reading.contrast
    assert c is not None, reading.quantity
    vocabulary = evidence.studies[c.table.partition(".")[0]].vocabulary()
    rows = evidence.table(c.table) if table is None else table
    compared = list(pairs(c, rows, vocabulary))
    original = [] if c.as_published is None else list(pairs(c, rows, vocabulary, c.as_published))
    cases = {
        pair: replace(
            _tested(reading, pair, evidence.level),
            extents=extents(pair, vocabulary),
            series=series(reading, pair, vocabulary),
        )
        for pair in compared
    }
    return Finding(
        {pair.name: case for pair, case in cases.items()},
        published=sentences.of_published(reading, original),
        its_verdict=_read_means(reading, original) if c.as_published is not None else "",
        corrected=sentences.of_cases(reading, cases, absent(c, compared, vocabulary)),
    )


def _tested(reading: Reading, pair: Pair, level: float) -> Case:
    """The reading's test of one case. A fact is decided by its worst row."""
    if reading.test == "fact":
        effect = pair.effect(reading)
        known = not math.isnan(effect)
        if not known:
            return Case.unknown("no data")
        return Case.known(reading.agrees_with(effect), effect, pair.seeds)
    if why := pair.why_open(of_mean=reading.test in BY_T):
        # models that failed are data, on the seeds that they have
        return replace(Case.unknown(why), seeds=pair.seeds if why in (MIXTURE, SELECTION) else ())
    case = decide(reading, pair.values(infinite=reading.scale == "log"), level=level)
    return replace(case, seeds=pair.seeds)


def _read_means(reading: Reading, cases: list[Pair]) -> str:
    """The verdict from the means alone, which is about these runs and not about others."""
    answers = []
    for pair in cases:
        effect = pair.effect(reading)
        why = "" if reading.test == "fact" else pair.why_open()
        if why or math.isnan(effect):
            return why or "no data"
        answers.append(reading.agrees_with(effect))
    if not answers:
        return "no data"
    return "holds" if (any if reading.holds_in == "any" else all)(answers) else "fails"
