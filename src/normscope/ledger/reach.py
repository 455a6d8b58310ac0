"""How far a verdict reaches: sizes, trainings and texts, and how effects change over them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from normscope.ledger.case import Case, log
from normscope.ledger.judgement import Judgement
from normscope.ledger.reading import Reading
from normscope.ledger.vocabulary import Extent

ONE_SIZE, STAYS = "one size", "stays"
DECIDED = ("holds", "fails")
Place = tuple[str, str]  # a reading, and a case


@dataclass(frozen=True)
class Reach:
    """How far a verdict reaches.

    Args:
        extents: Those of the cases that agree with the verdict, or of all tested cases if it is
            *depends* or undecided.
        with_size: Whether the effect ``grows``, ``shrinks``, ``reverses`` or ``stays`` from the
            smallest size to the largest, all changes if there are several; ``one size``, or
            ``not compared`` if no two cases differ only in their size. Empty without extents.
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
        (_, _, smallest), *_, (reading, _, largest) = compared
        changes[tuple((name, case) for name, case, _ in compared)] = _change(
            judgement.claim.entry.readings[reading], smallest, largest
        )
    if len({extent.size for case in tested for extent in case.extents}) == 1:
        words = ONE_SIZE
    elif not changes:
        words = "not compared"
    else:
        words = " and ".join(sorted({*changes.values()} - {STAYS})) or STAYS
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


def _change(reading: Reading, smallest: Case, largest: Case) -> str:
    """How an effect, as its distance from no difference, changes where intervals do not overlap."""
    if smallest.low <= largest.high and largest.low <= smallest.high:
        return STAYS
    one, other = (
        log(case.effect) if reading.scale == "log" else case.effect for case in (smallest, largest)
    )
    if one * other < 0:
        return "reverses"
    return "grows" if abs(other) > abs(one) else "shrinks"
