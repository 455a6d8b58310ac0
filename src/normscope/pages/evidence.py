"""The evidence: the verdicts of a run with more models, which the project keeps."""

from collections.abc import Collection

from normscope.verdicts.verdict import Verdicts


def complete(
    run: Verdicts, evidence: Verdicts | None, order: Collection[str]
) -> tuple[Verdicts, list[str]]:
    """The verdicts of a run, with the evidence's where it has no data; and the keys of these.

    Those in ``order`` come first. The evidence counts only where its test is the same.
    """
    known, places = evidence.by_key if evidence else {}, [*order, *run.by_key]
    ordered = sorted(run.verdicts, key=lambda one: places.index(one.key))
    pairs = [(one, known.get(one.key, one)) for one in ordered]
    same = [(one, other) for one, other in pairs if one.digest == other.digest]
    kept = [one.key for one, other in same if other.has_data and not one.has_data]
    whole = [other if one.key in kept else one for one, other in pairs]
    return run.model_copy(update={"verdicts": whole}), kept
