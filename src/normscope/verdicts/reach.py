"""How far a verdict reaches: sizes, trainings and texts, and how effects change over them."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normscope.verdicts.case import Case, log
from normscope.verdicts.judgement import Judgement
from normscope.verdicts.reading import Reading
from normscope.verdicts.vocabulary import Extent

ONE_SIZE, STAYS, CHANGES = "one size", "stays", "changes between"
DECIDED = ("holds", "fails")
Place = tuple[str, str]  # a reading, and a case


@dataclass(frozen=True)
class Reach:
    """How far a verdict reaches.

    Args:
        extents: Those of the cases that agree with the verdict, or of all tested cases if it is
            *depends* or undecided.
        with_size: Whether the effect ``grows``, ``shrinks``, ``reverses`` or ``stays`` from the
            smallest size to the largest, or ``changes between`` two sizes without such a trend; all
            changes if there are several; ``one size``, or ``not compared`` if no two cases differ
            only in their size. Empty without extents.
        changing: The cases of each effect that changes, in the order of their size.
    """

    extents: tuple[Extent, ...]
    with_size: str
    changing: tuple[tuple[Place, ...], ...]


def reach_of(judgement: Judgement) -> Reach:
    """The reach of a verdict."""
    tested = [case for *_, case in _cases(judgement) if case.extents and case.n]
    agreeing = [case for case in tested if case.answer() == judgement.verdict]
    chosen = agreeing if judgement.verdict in DECIDED else tested
    reached = sorted({extent for case in chosen for extent in case.extents})
    if not reached:
        return Reach((), "", ())
    changes = {}
    for compared in _series(judgement):
        reading = judgement.claim.entry.readings[compared[0][0]]
        places = tuple((name, case) for name, case, _ in compared)
        changes[places] = _change(reading, [case for *_, case in compared])
    if len({extent.size for case in tested for extent in case.extents}) == 1:
        words = ONE_SIZE
    elif not changes:
        words = "not compared"
    else:
        kinds = sorted({*changes.values()} - {STAYS}, key=lambda kind: (CHANGES in kind, kind))
        words = " and ".join(kinds) or STAYS
    changing = tuple(places for places, change in changes.items() if change != STAYS)
    return Reach(tuple(reached), words, changing)


def _cases(judgement: Judgement) -> Iterator[tuple[str, str, Case]]:
    """Reading, name and case of every case."""
    for reading, finding in judgement.claim.asked.items():
        for name, case in finding.cases.items():
            yield reading, name, case


def _series(judgement: Judgement) -> Iterator[list[tuple[str, str, Case]]]:
    """Cases that differ in their size only, smallest first; those with an interval."""
    alike: dict[tuple[str, str], list[tuple[str, str, Case]]] = {}
    for reading, name, case in _cases(judgement):
        if len(case.extents) == 1 and not math.isnan(case.low + case.high + case.p_holds):
            key = case.series, case.extents[0].text
            alike.setdefault(key, []).append((reading, name, case))
    for cases in alike.values():
        cases.sort(key=lambda one: one[2].extents[0].size)
        if cases[0][2].extents[0].size != cases[-1][2].extents[0].size:
            yield cases


def _change(reading: Reading, cases: Sequence[Case]) -> str:
    """How an effect changes over the sizes of these cases, where intervals do not overlap.

    It has a trend if it differs between the smallest and the largest size, and no two sizes differ
    in the other direction. The trend is that of its distance from no difference.
    """
    rises = {a.high < b.low for a, b in itertools.combinations(cases, 2) if _differ(a, b)}
    smallest, *_, largest = cases
    if not rises:
        return STAYS
    if len(rises) == 2 or not _differ(smallest, largest):
        ends = min(cases, key=lambda case: case.high), max(cases, key=lambda case: case.low)
        return f"{CHANGES} {' and '.join(_size(case) for case in cases if case in ends)}"
    one, other = (
        log(case.effect) if reading.scale == "log" else case.effect for case in (smallest, largest)
    )
    if one * other < 0:
        return "reverses"
    return "grows" if abs(other) > abs(one) else "shrinks"


def _differ(one: Case, other: Case) -> bool:
    return one.high < other.low or other.high < one.low


def _size(case: Case) -> str:
    extent = case.extents[0]
    return f"{extent.blocks} x {extent.d} ({extent.steps:,} steps)"
