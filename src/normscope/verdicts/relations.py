"""Errors in what statements say of each other: ``contradicts`` and ``refines``. Needs no pandas."""

from collections.abc import Iterator, Mapping

from normscope.errors import suggest
from normscope.verdicts.entry import Claims, Statement

Faults = Iterator[tuple[str, str]]  # key of the statement, and the key of the entry with the fault


def faults(claims: Claims) -> Faults:
    """Unknown names, statements that name themselves, and circles of ``refines``."""
    statements = {key: entry for _, key, entry in claims.every}
    for key, entry in statements.items():
        others = [other for other in statements if other != key]
        for word in ("contradicts", "refines"):
            for other in getattr(entry, word):
                if other == key:
                    yield key, f".{word}: a statement cannot name itself: leave out {key}"
                elif other not in statements:
                    near = suggest(other, others)
                    yield key, f".{word}: {other!r} is no statement of the ledger; {near}"
    for circle in _circles(statements):
        path = " refines ".join(circle)
        yield circle[0], f".refines: {path}, which is a circle: remove one of these"


def _circles(statements: Mapping[str, Statement]) -> Iterator[list[str]]:
    """The keys of every circle of two or more statements, the first one again at the end."""
    done: set[str] = set()

    def walk(path: list[str]) -> Iterator[list[str]]:
        for other in statements[path[-1]].refines:
            if other in path[:-1]:
                yield [*path[path.index(other) :], other]
            elif other in statements and other not in {*done, path[-1]}:
                yield from walk([*path, other])
        done.add(path[-1])

    for key in statements:
        if key not in done:
            yield from walk([key])
