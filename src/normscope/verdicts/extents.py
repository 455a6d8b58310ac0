"""The size, training and text of the models of a case, and what cases of several sizes share."""

import json

from normscope.verdicts.pairs import Pair
from normscope.verdicts.reading import Reading
from normscope.verdicts.vocabulary import Extent, Vocabulary


def extents(pair: Pair, vocabulary: Vocabulary) -> tuple[Extent, ...]:
    """The extents of the models on the sides of a case; none if a side has no models."""
    if any(rows.empty for rows in pair.sides):
        return ()
    table = pair.contrast.table.partition(".")[2]
    compared = (
        extent
        for cell, extent in vocabulary.extents.get(table, ())
        for rows in pair.sides
        if (rows[list(cell)] == list(cell.values())).all(axis="columns").any()
    )
    return tuple(dict.fromkeys(compared))


def series(reading: Reading, pair: Pair, vocabulary: Vocabulary) -> str:
    """What a case compares, without the size, training and text of its models.

    The effects of cases with the same text can be compared across sizes.
    """
    parts = {
        "contrast": pair.contrast.without(vocabulary.sized),
        "where": {k: v for k, v in pair.where.items() if k not in vocabulary.sized},
        "of": [reading.quantity, reading.test, reading.scale],
    }
    return json.dumps(parts, sort_keys=True, default=str)
