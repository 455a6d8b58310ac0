"""The words of the summary that count verdicts, and state how sure they are."""

from collections.abc import Mapping
from typing import Any

from normscope.formats import PERCENT
from normscope.pages.statements import (
    DECIDED,
    OUTCOMES,
    VERDICTS,
    assertions,
    counts,
    document_name,
    every,
    is_asserted,
    is_negative,
    is_post_hoc,
    is_unasked,
    outcome,
)
from normscope.pages.table import Number


def documents(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents with statements: key, name, and what their files say about them."""
    stated = {claim["document"]: claim for claim in every(ledger)}
    return [
        {"key": key, "name": document_name(ledger, claim), **ledger["documents"][key]}
        for key, claim in stated.items()
    ]


def totals(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """What became of the assertions, and how sure the verdicts are.

    Keys: the counts of ``statements.counts``, which leave out quotes that are not compared;
    ``off_label``, the outcomes of what was tested so; ``unasked``, what cannot be;
    ``uncompared`` assertions; ``negative``, results of authors that are confirmed;
    ``documents`` of the assertions that were tested; ``questions`` of this project, and their
    ``answers`` by verdict; ``tested``, decided by a test; ``facts``, decided deterministically;
    ``post_hoc`` of the decided; ``families`` with tests, and the ``family`` error rate over them,
    at most, from those of each; None above 1.
    """
    alpha = 1 - ledger["level"]
    counted = assertions(ledger)
    asserted = [claim for claim in counted if not is_unasked(claim)]
    off_label = [outcome(claim) for claim in asserted if claim["off_label"]]
    stated = [claim for claim in every(ledger) if is_asserted(ledger, claim)]
    questions = [claim for claim in ledger["claims"] if not is_asserted(ledger, claim)]
    answers = [claim["verdict"] for claim in questions]
    decided = [claim for claim in ledger["claims"] if claim["verdict"] in DECIDED]
    tested = [claim for claim in decided if claim["p"] is not None]
    families = {claim["document"] for claim in ledger["claims"] if claim["p"] is not None}
    family = alpha * len(families)
    return counts(counted) | {
        "off_label": {name: off_label.count(name) for name in OUTCOMES if name in off_label},
        "unasked": len(counted) - len(asserted),
        "uncompared": len(stated) - len(counted),
        "count": len(ledger["claims"]),
        "negative": sum(map(is_negative, asserted)),
        "documents": len({claim["document"] for claim in asserted}),
        "questions": len(questions),
        "answers": {verdict: answers.count(verdict) for verdict in VERDICTS if verdict in answers},
        "tested": len(tested),
        "facts": len(decided) - len(tested),
        "decided": len(decided),
        "post_hoc": sum(map(is_post_hoc, decided)),
        "families": len(families),
        "family": Number(family, PERCENT) if family < 1 else None,
    }
