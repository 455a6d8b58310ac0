"""Statements that cannot both hold, and the tests of both on the same models."""

from collections.abc import Iterator, Mapping
from typing import Any

from normscope.verdicts.entry import Claims
from normscope.verdicts.reading import Reading

NOT_COMPARED = {"needs", "as_published", "sentence"}  # keys that do not say what is compared


def disputes(claims: Claims, records: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The disputes of claims.json.

    Keys: statements, the two keys; shared, the cases that readings of both statements test, with
    the name of the reading on each side (``readings``), ``case``, the numbers, and what each
    reading makes of them (``reads``).

    Args:
        claims: the statements.
        records: those of claims.json, by key.
    """
    return [
        {"statements": list(pair), "shared": list(_shared(claims, records, pair))}
        for pair in claims.disputes
    ]


def _shared(
    claims: Claims, records: Mapping[str, Any], pair: tuple[str, str]
) -> Iterator[dict[str, Any]]:
    entries = claims.entries
    one, other = (entries[key].readings if key in entries else {} for key in pair)
    for first, reading in one.items():
        for second, opposite in other.items():
            if not _on_the_same_models(reading, opposite):
                continue
            cases, others = (
                records[key]["readings"][name]["cases"]
                for key, name in zip(pair, (first, second), strict=True)
            )
            for case, values in cases.items():
                if case in others:
                    reads = [values["reads"], others[case]["reads"]]
                    yield {"readings": [first, second], "case": case, **values, "reads": reads}


def _on_the_same_models(one: Reading, other: Reading) -> bool:
    if one.contrast is None or other.contrast is None or one.scale != other.scale:
        return False
    first, second = (r.model_dump(exclude=NOT_COMPARED) for r in (one.contrast, other.contrast))
    return first == second
